"""What it takes to begin: importing, `--help`, and a first answer from a model on another machine.

Usage: python -m benchmarks.start [ROUNDS]
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROGRAM, ANSWER = "```python\nprint(6 * 7)\n```", "It is 42."


class Server(BaseHTTPRequestHandler):
    """Speaks as much of OpenAI's protocol as a question needs."""

    def do_POST(self) -> None:
        """Answer at once."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        told = "Output of the program:" in str(asked["messages"][-1]["content"])
        choice = {
            "index": 0,
            "finish_reason": None,
            "delta": {"role": "assistant", "content": ANSWER if told else PROGRAM},
        }
        last: dict[str, object] = {"index": 0, "finish_reason": "stop", "delta": {}}
        if asked.get("stream"):
            body = (
                "".join(f"data: {json.dumps(_chunk(one))}\n\n" for one in (choice, last)) + "data: [DONE]\n\n"
            )
            kind = "text/event-stream"
        else:
            whole = {"index": 0, "finish_reason": "stop", "message": choice["delta"]}
            body, kind = json.dumps({**_chunk(whole), "object": "chat.completion"}), "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _chunk(choice: Mapping[str, object]) -> dict[str, object]:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}


@contextmanager
def serving() -> Iterator[str]:
    """The address of a model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def took(command: list[str]) -> tuple[float, float]:
    """Milliseconds on the clock and of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "OPENAI_API_KEY": "of the benchmark"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.perf_counter() - began) * 1e3, cpu * 1e3


def main(rounds: int) -> None:
    """Measure and print."""
    python = [sys.executable, "-c"]
    with serving() as address:
        ask = [
            sys.executable,
            "-m",
            "code_chains",
            "ask",
            "What is 6 times 7?",
            "-m",
            "test",
            "--base-url",
            address,
        ]
        commands = {
            "an empty program": [*python, ""],
            "**`import code_chains`**": [*python, "import code_chains"],
            "`from code_chains import create_code_chain`": [
                *python,
                "from code_chains import create_code_chain",
            ],
            "`import langchain_classic.chains`": [*python, "import langchain_classic.chains"],
            "`from langchain_openai import ChatOpenAI`": [*python, "from langchain_openai import ChatOpenAI"],
            "`import langgraph.graph`": [*python, "import langgraph.graph"],
            "**`code-chains --help`**": [sys.executable, "-m", "code_chains", "--help"],
            "**first `code-chains ask`**, a model that answers at once": ask,
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, command in commands.items():
                value = took(command)
                if number:  # The first round fills the caches of the disk.
                    measured[name].append(value)
    print("| | ms | CPU ms |\n|---|---|---|")
    for name, values in measured.items():
        print("| {} | {:.0f} | {:.0f} |".format(name, *map(statistics.median, zip(*values, strict=True))))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
