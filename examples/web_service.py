"""A web service that streams: programs, their output and the answer as server-sent events; disconnecting ends the work.

Needs FastAPI: pip install "fastapi[standard]". Then: curl -N "http://127.0.0.1:8000/answer?query=What+is+6+times+7"
"""

import argparse
import json
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse

from code_chains import Budget, CodeChain, InputError, create_code_chain
from code_chains.inputs import check_query
from code_chains.state import as_json

SHOWN = ("programs", "stdout", "code", "output", "verdict", "answer")


def create_app(chain: CodeChain) -> FastAPI:
    """Create the service: one route, a question in, events out."""
    app = FastAPI()

    @app.get("/answer")
    async def answer(query: str) -> StreamingResponse:
        try:
            check_query(query)
        except InputError as error:  # Before the first event, so that it is a status.
            raise HTTPException(422, str(error)) from error
        return StreamingResponse(events(query), media_type="text/event-stream")

    async def events(query: str) -> AsyncIterator[str]:
        async for chunk in chain.astream({"query": query}):
            for key, value in as_json({key: chunk[key] for key in SHOWN if key in chunk}).items():
                yield f"event: {key}\ndata: {json.dumps(value)}\n\n"

    return app


def main(model: Any = "local") -> None:
    """Serve on this machine until Ctrl-C."""
    with create_code_chain(model, budget=Budget(model_calls=4, per="question")) as chain:
        uvicorn.run(create_app(chain), host="127.0.0.1", port=8000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local")
    main(parser.parse_args().model)
