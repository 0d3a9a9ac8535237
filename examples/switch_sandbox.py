"""The same question in three places: own namespaces, Landlock alone, and an interpreter without any way out."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor, create_code_chain
from code_chains.errors import IsolationError
from code_chains.executors import Executor
from code_chains.executors.monty import MontyExecutor


def main(model: str | BaseChatModel = "local") -> None:
    """Ask in each; a place that this machine cannot give says so, and nothing runs there."""
    places: tuple[Executor, ...] = (
        SandboxExecutor(),
        SandboxExecutor(require="landlock", launcher="landlock"),
        MontyExecutor(),
    )
    for place in places:
        with place, create_code_chain(model, executor=place, interpret=False) as chain:
            try:
                result = chain.invoke("Print the sum of the squares of 1 to 10.")
            except IsolationError as error:
                print(f"{type(place).__name__}: {error}")
                continue
        isolation = result["execution"].isolation
        print(f"{type(place).__name__}: {result['output']} ({isolation.level}, by {isolation.launcher})")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
