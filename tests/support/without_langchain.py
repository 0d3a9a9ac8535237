"""Run tests as where LangChain is not installed: `pytest -p tests.support.without_langchain`."""

from __future__ import annotations

import sys


class _Absent:
    def find_spec(self, name: str, *rest: object) -> None:
        if name.partition(".")[0].startswith(("langchain", "langsmith", "langgraph")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, _Absent())
