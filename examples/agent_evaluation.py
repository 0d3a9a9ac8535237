"""A small agent whose work is evaluated: sorted random numbers with their average, and a file that is missing at first."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain

TASKS = (
    "Make 10 random integers from 1 to 100, print them sorted, and print their average.",
    "Print the total of the column amount of sales.csv. If there is no such file, write one with three rows first.",
)


def main(model: str | BaseChatModel = "local") -> None:
    """Do both tasks; the model judges its own outcomes, and a no goes back to it."""
    with create_code_chain(model, judge=True) as agent:
        for task in TASKS:
            result = agent.invoke(task)
            print(f"{task}\n{result['output']}")
            for attempt in result["attempts"]:
                print(
                    f"  attempt {attempt.number}: {attempt.summary} {attempt.verdict.status}: {attempt.verdict.reason}"
                )
            files = [artifact.name for artifact in result["execution"].artifacts]
            print(f"  {result['verdict'].status}, files made: {files}\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
