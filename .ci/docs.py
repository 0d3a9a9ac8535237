"""Run the programs of README and docs, each in an environment made with exactly the command that its page shows.

A page that shows none is run in the README's. The model is a scripted server on this machine, the one of the tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.docs.test_docs import PAGES, blocks, reply  # noqa: E402

COMMAND = re.compile(r'^`*(pip install -e "[^"]+")', re.MULTILINE)

_RUN = """\
if __name__ == "__main__":  # Worker processes import this file again.
    exec(compile(open("program.py").read(), "program.py", "exec"))
"""


class Model(BaseHTTPRequestHandler):
    """Answers as OpenAI's API does, whole or as a stream."""

    def do_POST(self) -> None:
        """Reply to a chat completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text, usage = (
            reply(asked["messages"]),
            {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        )
        key = "delta" if asked.get("stream") else "message"
        choice = {"index": 0, key: {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body: dict[str, Any] = {"id": "1", "created": 0, "model": "test", "usage": usage, "choices": [choice]}
        body["object"] = "chat.completion.chunk" if asked.get("stream") else "chat.completion"
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if asked.get("stream") else "application/json")
        self.end_headers()
        self.wfile.write(b"data: " + data + b"\n\ndata: [DONE]\n\n" if asked.get("stream") else data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def environment(command: str, folder: Path) -> Path:
    """Make an environment with a page's command and return its Python."""
    python = folder / "bin/python"
    # With the pip that runs already, and nothing is compiled that no page imports: both take half of the time.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip, *words = command.replace('"', "").split()
    install = [sys.executable, "-m", pip, "--python", str(python), *words, "--no-compile", "-q"]
    subprocess.run(install, check=True, cwd=ROOT)
    return python


def failure(page: Path, python: Path, address: str) -> str:
    """Run a page's programs one after the other; return what went wrong."""
    program = "\n".join(blocks(page, "python")).replace(
        'create_code_chain("local"', 'create_code_chain("openai:test"'
    )
    variables = {
        "OPENAI_BASE_URL": address,
        "OPENAI_API_KEY": "of the tests",
        "CODE_CHAINS_LOCAL": "0.5b",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sales.csv").write_text("region,amount\nnorth,10\nsouth,32\n")
        Path(folder, "program.py").write_text(program)
        Path(folder, "page.py").write_text(_RUN)
        done = subprocess.run(
            [python, "page.py"],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    expected = [
        line.rpartition("  # ")[2]
        for line in program.splitlines()
        if line.lstrip().startswith("print(") and "  # " in line
    ]
    missing = [words for words in expected if words not in done.stdout]
    if done.returncode or "No module named" in done.stdout or missing:
        return f"{page.name}: {missing} {done.stdout[-800:]} {done.stderr[-2000:]}"
    return ""


def main() -> None:
    """Run all pages and print the failures."""
    readme = COMMAND.findall((ROOT / "README.md").read_text())[0]
    pages: dict[str, list[Path]] = {}
    for page in (ROOT / "README.md", *PAGES):
        if blocks(page, "python"):
            pages.setdefault((COMMAND.findall(page.read_text()) or [readme])[0], []).append(page)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    runs: list[Future[str]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        for number, (command, of_command) in enumerate(pages.items()):
            # One environment is made after the other, as each builds the package in this folder; pages run meanwhile.
            python = environment(command, Path(folder, str(number)))
            runs += [pool.submit(failure, page, python, address) for page in of_command]
            print(f"{command}: {', '.join(page.name for page in of_command)}")  # noqa: T201
    server.shutdown()
    sys.exit("\n".join(filter(None, (run.result() for run in runs))) or 0)


if __name__ == "__main__":
    main()
