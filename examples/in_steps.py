"""A task in steps: each is written, run and evaluated in the same session, and builds on the previous ones."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import Budget, Plan, create_code_chain

TASK = (
    "Create grades.csv with the columns name and grade and five rows, then read it and print the mean grade."
)


def main(model: str | BaseChatModel = "local") -> None:
    """Plan, solve each step, print the outcomes."""
    with create_code_chain(
        model, budget=Budget(model_calls=8), interpret=False, solve=Plan(when="auto")
    ) as chain:
        result = chain.invoke({"query": TASK})

    # A sandbox without sessions, such as Monty, solves the task in one step.
    for number, step in enumerate(result.get("steps", [TASK]), 1):
        tries = [attempt for attempt in result["attempts"] if attempt.step in (number, None)]
        print(f"{number}. {step} ({len(tries)} attempts)")
    print(result["code"], result["output"], sep="\n")
    calls = result["usage"].model_calls
    print(f"{result['verdict'].status}; {calls} model calls; ended because: {result['stop_reason']}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
