"""Put pieces together yourself, with a check and a piece of your own, inside a plain LangChain pipe.

Usage: python examples/own_chain.py [MODEL]
"""

import sys
from typing import Any

from langchain_core.runnables import RunnableLambda

from code_chains import ExecuteChain, GenerateChain, Problem, SandboxExecutor, Sequence, Transform, ValidateChain
from code_chains.checks import names_defined, parses
from code_chains.models import for_code, resolve_model


def no_files(code: str) -> list[Problem]:
    """A check of one's own: programs here need no files."""
    return [Problem("no_files", "Do not open files")] if "open(" in code else []


def count_lines(state: dict[str, Any]) -> dict[str, int]:
    """A step of one's own: reads `code`, adds `lines`."""
    return {"lines": len(state["code"].splitlines())}


def main(model: Any = "local") -> None:
    """Generate, check, count, run."""
    with SandboxExecutor() as box:
        chain = Sequence(
            chains=[
                GenerateChain(model=for_code(resolve_model(model))),
                ValidateChain([parses, names_defined, no_files]),
                Transform(input_variables=["code"], output_variables=["lines"], transform=count_lines),
                ExecuteChain(box),
            ],
            input_variables=["query"],
            output_variables=["code", "lines", "output"],
        )
        told = chain | RunnableLambda(lambda state: f"{state['output']}  ({state['lines']} lines)")
        print(told.invoke({"query": "What is 6 times 7?"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
