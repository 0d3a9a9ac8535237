"""A safety chain between generate and execute: it reads `code` and adds `problems`, which keep a program from running."""

import argparse
import re
from typing import Any

from langchain_core.language_models import BaseChatModel

from code_chains import Problem, SandboxExecutor
from code_chains.chains import ExecuteChain, GenerateChain, StreamingSequentialChain, StreamingTransformChain
from code_chains.models import for_code, resolve_model


def no_loops_forever(state: dict[str, Any]) -> dict[str, list[Problem]]:
    """Reject `while True`."""
    lines = enumerate(state["code"].splitlines(), 1)
    endless = [number for number, line in lines if re.match(r"\s*while (True|1)\b", line)]
    return {"problems": [Problem("no_loops_forever", "Use a loop that ends", line) for line in endless]}


def main(model: str | BaseChatModel = "local") -> None:
    """Ask for a program that ends, and for one that does not."""
    safety = StreamingTransformChain(
        input_variables=["code"], output_variables=["problems"], transform=no_loops_forever
    )
    with SandboxExecutor() as sandbox:
        chain = StreamingSequentialChain(
            chains=[GenerateChain(model=for_code(resolve_model(model))), safety, ExecuteChain(sandbox)],
            input_variables=["query"],
            output_variables=["code", "problems", "execution"],
        )
        for question in ("Print the squares of 1 to 5.", "Print the word tick forever with while True."):
            done = chain.invoke({"query": question})["execution"]
            print(f"{question}\n  {done.status}: {' '.join(done.output.split()) or done.summary}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
