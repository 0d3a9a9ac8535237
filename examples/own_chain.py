"""Compose chains yourself: generate, validate, a step of your own that counts lines, execute; then a plain pipe."""

import argparse
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableLambda

from code_chains import SandboxExecutor
from code_chains.chains import (
    ExecuteChain,
    GenerateChain,
    StreamingSequentialChain,
    StreamingTransformChain,
    ValidateChain,
)
from code_chains.models import for_code, resolve_model


def count_lines(state: dict[str, Any]) -> dict[str, int]:
    """Count lines: read `code`, add `lines`."""
    return {"lines": len(state["code"].splitlines())}


def main(model: str | BaseChatModel = "local") -> None:
    """Generate, validate, count, execute."""
    with SandboxExecutor() as sandbox:
        chain = StreamingSequentialChain(
            chains=[
                GenerateChain(model=for_code(resolve_model(model))),
                ValidateChain(),
                StreamingTransformChain(
                    input_variables=["code"], output_variables=["lines"], transform=count_lines
                ),
                ExecuteChain(sandbox),
            ],
            input_variables=["query"],
            output_variables=["code", "lines", "output"],
        )
        pipe = chain | RunnableLambda(lambda state: f"{state['output']}  ({state['lines']} lines)")
        print(pipe.invoke({"query": "What is 6 times 7?"}))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
