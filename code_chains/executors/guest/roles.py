"""What a process is asked to run: a program alone, tests that call one in another sandbox, or one that serves those."""

from __future__ import annotations

from . import cell, figures, harness, rpc
from .wire import Json


def run(
    request: Json,
    names: Json,
    channel: rpc.RpcChannel | None,
    *,
    source: str,
    ends: bool,
    max_view_bytes: int,
) -> Json:
    """Run what a request asks for, and return the outcome; see `cell.run`.

    Args:
        request: The request.
        names: The namespace of the program.
        channel: The connection to the tests, or of tests to the program; None if there are none.
        source: The name of the source in tracebacks.
        ends: Whether the process ends with it.
        max_view_bytes: Bytes of figures and rich views.
    """
    code = request["code"]
    if channel is None:
        returns = request["return_value"]
        return cell.run(
            code, names, source=source, ends=ends, max_view_bytes=max_view_bytes, return_value=returns
        )
    channel.seconds = request.get("seconds", 0.0)
    if request["is_harness"]:
        namespace = harness.HarnessNamespace(names, channel)
        outcome = cell.run(code, namespace, source=source, max_view_bytes=max_view_bytes, may_exit=False)
        return outcome | {"result": namespace.bench.report()}
    rpc.limit_processor_time(channel.seconds)
    figures.SHOWN.keeps = True
    outcome = cell.run(code, names, source=source, ends=False, max_view_bytes=max_view_bytes)
    if outcome["status"] in ("ok", "error"):  # What it defined before an error can be tested.
        figures.SHOWN.reopen()
        figures.SHOWN.stay_open = True
        rpc.serve(channel, names)
    cell.call_exit_handlers()
    cell.flush()
    return outcome
