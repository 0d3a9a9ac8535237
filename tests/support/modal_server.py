"""A double of Modal on loopback that refuses each key: enough for what happens before there is a sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any


async def serve(command: list[str]) -> int:
    """Run a command whose client of Modal uses this double."""
    from grpclib import GRPCError
    from grpclib.const import Cardinality, Handler, Status
    from grpclib.server import Server, Stream
    from modal_proto.api_pb2 import AppGetOrCreateRequest, AppGetOrCreateResponse

    async def refuse(stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        raise GRPCError(Status.UNAUTHENTICATED, "no such token")

    class Double:
        def __mapping__(self) -> dict[str, Handler]:
            call = Handler(refuse, Cardinality.UNARY_UNARY, AppGetOrCreateRequest, AppGetOrCreateResponse)
            return dict.fromkeys(
                (f"/modal.client.ModalClient/{name}" for name in ("ClientHello", "AppGetOrCreate")), call
            )

    server = Server([Double()])
    await server.start("127.0.0.1", 0)
    port = server._server.sockets[0].getsockname()[1]  # type: ignore[union-attr,unused-ignore]
    environment = {**os.environ, "MODAL_SERVER_URL": f"http://127.0.0.1:{port}"}
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(sys.argv[1:])))
