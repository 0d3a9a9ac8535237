"""The first question of a process does not hold up the event loop with imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

PROGRAM = """
import asyncio, sys, threading
from code_chains import create_code_chain
from code_chains.testing import ScriptedModel, asks_for_code

imported = []

class Recorder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if threading.current_thread() is threading.main_thread():
            imported.append(name.partition(".")[0])

def reply(messages):
    return "```python\\nprint(6 * 7)\\n```" if asks_for_code(messages) else "42"

async def main():
    with create_code_chain(ScriptedModel(reply)) as chain:
        sys.meta_path.insert(0, Recorder)
        result = await chain.ainvoke("What is 6 * 7?")
        sys.meta_path.remove(Recorder)
    print(result["answer"], *sorted(set(imported) & {"genai_prices", "pyflakes", "pandas", "faiss", "openai"}))

asyncio.run(main())
"""


@pytest.mark.slow
def test_nothing_large_is_imported_on_the_event_loop() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "42\n"
