"""Failures are values: problems before a run, the error with its line, the verdict; exceptions on request."""

import argparse
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from code_chains import CodeFailedError, InputError, Repair, SandboxExecutor, create_code_chain
from code_chains.chains import ValidateChain


def main(model: str | BaseChatModel = "local") -> None:
    """Validate without running, run a program that fails, ask for the impossible."""
    for problem in ValidateChain().invoke({"code": "totl = 3\nprint(total)"})["problems"]:
        print("Found before it ran:", problem)

    with SandboxExecutor() as sandbox:
        done = sandbox.run("prices = [3, 0]\nprint(6 / prices[1])")
        print("Found by running it:", done.error, "in line", done.error.line if done.error else None)
        try:
            done.raise_for_failure()
        except CodeFailedError as error:
            print("As an exception, on request:", error)

        with create_code_chain(model, executor=sandbox, solve=Repair(2)) as chain:
            try:
                chain.invoke({"query": "What is in it?", "files": {"sales.csv": Path("not there.csv")}})
            except InputError as error:
                print("Asked wrongly:", error)
            result = chain.invoke("Read the file sales.csv and print the total of its column amount.")
    print(f"{result['verdict'].status} after {len(result['attempts'])} attempts ({result['stop_reason']})")
    print(result["answer"])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
