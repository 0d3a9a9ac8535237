"""The reflection loop: the model replies in tags, the program runs, its error is fed back, the model rewrites it."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor
from code_chains.chains import (
    AttemptChain,
    EvaluateChain,
    ExecuteChain,
    GenerateChain,
    RepairChain,
    ValidateChain,
)
from code_chains.models import resolve_model

PROMPT = """\
You answer questions by writing one Python program.
Reply with the program between <execute_python> and </execute_python>, and nothing else."""
QUESTION = {"query": "Write a function mean(numbers).", "examples": [([1, 2, 6], 3), ([4], 4), ([], 0)]}


def main(model: str | BaseChatModel = "local") -> None:
    """Build the loop from single chains and print each attempt."""
    with SandboxExecutor() as sandbox:
        attempt = AttemptChain(
            chains=[
                GenerateChain(model=resolve_model(model), prompt=PROMPT, examples=()),
                ValidateChain("none"),
                ExecuteChain(sandbox),
                EvaluateChain(executor=sandbox),
            ],
            input_variables=["query"],
        )
        result = RepairChain(attempt=attempt, max_attempts=3).invoke(QUESTION)

    for attempt in result["attempts"]:
        print(f"--- attempt {attempt.number} ({attempt.strategy})\n{attempt.code}-> {attempt.verdict.reason}")
    print(f"{result['verdict'].status}; ended because: {result['stop_reason']}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
