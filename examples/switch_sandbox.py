"""The same question with three executors: namespaces, Landlock alone, and an interpreter without system access."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor, create_code_chain
from code_chains.errors import IsolationError
from code_chains.executors import Executor
from code_chains.executors.monty import MontyExecutor


def main(model: str | BaseChatModel = "local") -> None:
    """Ask with each; an executor that is not available here raises, and nothing runs."""
    executors: tuple[Executor, ...] = (
        SandboxExecutor(),
        SandboxExecutor(min_isolation="landlock", launcher="landlock"),
        MontyExecutor(),
    )
    for executor in executors:
        with executor, create_code_chain(model, executor=executor, interpret=False) as chain:
            try:
                result = chain.invoke("Print the sum of the squares of 1 to 10.")
            except IsolationError as error:
                print(f"{type(executor).__name__}: {error}")
                continue
        isolation = result["execution"].isolation
        assert isolation is not None  # Only what ran in no executor has none.
        print(f"{type(executor).__name__}: {result['output']} ({isolation.level}, by {isolation.launcher})")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
