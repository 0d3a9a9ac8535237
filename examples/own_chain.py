"""Put pieces together yourself: generate, validate, a step of your own that counts lines, execute; then a plain pipe."""

import argparse
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableLambda

from code_chains import ExecuteChain, GenerateChain, SandboxExecutor, Sequence, Transform, ValidateChain
from code_chains.models import for_code, resolve_model


def count_lines(state: dict[str, Any]) -> dict[str, int]:
    """A step of one's own: reads `code`, adds `lines`."""
    return {"lines": len(state["code"].splitlines())}


def main(model: str | BaseChatModel = "local") -> None:
    """Generate, check, count, run."""
    with SandboxExecutor() as box:
        chain = Sequence(
            chains=[
                GenerateChain(model=for_code(resolve_model(model))),
                ValidateChain(),
                Transform(input_variables=["code"], output_variables=["lines"], transform=count_lines),
                ExecuteChain(box),
            ],
            input_variables=["query"],
            output_variables=["code", "lines", "output"],
        )
        told = chain | RunnableLambda(lambda state: f"{state['output']}  ({state['lines']} lines)")
        print(told.invoke({"query": "What is 6 times 7?"}))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
