"""A web service: events as they happen, answers at once, uploads; a client that leaves a stream ends the work.

Needs FastAPI: pip install "fastapi[standard]". Then:
curl -N "http://127.0.0.1:8000/events?query=What+is+6+times+7"
curl -F query="What is the total amount?" -F files=@sales.csv http://127.0.0.1:8000/answer
"""

import argparse
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, File, Form, HTTPException, Request, Response, UploadFile
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel

from code_chains import Budget, CodeChain, InputError, create_code_chain
from code_chains.inputs import check_query
from code_chains.state import as_json

STAGES = {"generate", "validate", "execute", "evaluate", "interpret"}
SHOWN = ("programs", "stdout", "code", "output", "verdict", "answer")
MAX_BODY_BYTES = 20 << 20
HOSTS = ["127.0.0.1", "localhost"]
log = logging.getLogger(__name__)


class Answer(BaseModel):
    """What a client gets for a question."""

    answer: str
    status: str
    reason: str
    code: str
    output: str


async def uploaded(
    query: Annotated[str, Form()], files: Annotated[list[UploadFile] | None, File()] = None
) -> dict[str, Any]:
    """Return the inputs of the chain in a form; uploads are passed as bytes, so they need no temporary files."""
    contents = {file.filename or "file": await file.read() for file in files or ()}
    if len(contents) < len(files or ()):
        raise HTTPException(422, "Two files have the same name.")
    return {**asked(query), "files": contents}


def asked(query: str) -> dict[str, Any]:
    """Return the inputs of the chain for a question, or respond with 422 if it is none."""
    try:
        return {"query": check_query(query)}
    except InputError as error:
        raise HTTPException(422, str(error)) from error


def create_app(chain: CodeChain) -> FastAPI:
    """Create the service: a question in, events or an answer out; both take files."""
    app = FastAPI()
    app.middleware("http")(only_own)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)  # No foreign name that points here.

    @app.get("/events")
    async def events(inputs: Annotated[dict[str, Any], Depends(asked)]) -> StreamingResponse:
        return StreamingResponse(stream(chain, inputs), media_type="text/event-stream")

    @app.post("/events")
    async def events_with_files(inputs: Annotated[dict[str, Any], Depends(uploaded)]) -> StreamingResponse:
        return StreamingResponse(stream(chain, inputs), media_type="text/event-stream")

    @app.post("/answer")
    async def answer(inputs: Annotated[dict[str, Any], Depends(uploaded)]) -> Answer:
        try:
            result = await chain.ainvoke(inputs)
        except InputError as error:
            raise HTTPException(422, str(error)) from error
        except Exception as error:
            raise HTTPException(502, failed()) from error
        verdict, values = result["verdict"], {key: result[key] for key in ("answer", "code", "output")}
        return Answer(status=verdict.status, reason=verdict.reason, **values)

    return app


async def only_own(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse what pages of other sites ask, since each question costs money, and bodies without a limit."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    is_foreign = origin is not None and origin.partition("://")[2] != host
    if is_foreign or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return PlainTextResponse("Pages of other sites may not ask.", 403)
    if "transfer-encoding" in request.headers:
        return PlainTextResponse("Send a Content-Length.", 411)
    if int(request.headers.get("content-length", "0")) > MAX_BODY_BYTES:
        return PlainTextResponse(f"At most {MAX_BODY_BYTES >> 20} MB.", 413)
    return await call_next(request)


async def stream(chain: CodeChain, inputs: dict[str, Any]) -> AsyncIterator[str]:
    """Yield each stage when it begins, each program when it is written, what it prints, and errors, as events."""
    try:
        async for event in chain.astream_events(inputs):
            if event["event"] == "on_chain_start" and event["name"] in STAGES:
                yield server_sent("stage", event["name"])
            elif event["event"] == "on_chain_stream" and not event["parent_ids"]:
                chunk = as_json(event["data"]["chunk"])
                for key in [key for key in SHOWN if chunk.get(key)]:
                    yield server_sent(key, chunk[key])
    except InputError as error:
        yield server_sent("error", str(error))
    except Exception:
        yield server_sent("error", failed())


def failed() -> str:
    """Log the exception, whose words are for the operator, and return those for the client."""
    log.exception("A question failed")
    return "The model is not available. Try again later."


def server_sent(event: str, data: Any) -> str:
    """Return a server-sent event whose data is JSON."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


def main(model: Any = "local") -> None:
    """Serve on this machine until Ctrl-C."""
    with create_code_chain(model, budget=Budget(model_calls=4, per="question")) as chain:
        uvicorn.run(create_app(chain), host="127.0.0.1", port=8000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local")
    main(parser.parse_args().model)
