"""An agent that evaluates its outcomes: sorting random numbers, and a missing file that is created and found."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import Judge, Repair, create_code_chain

TOTAL = "Print the total of the column amount of sales.csv."
TASKS = (
    "Make 10 random integers from 1 to 100, print them sorted, and print their average.",
    TOTAL,
    "Write a file sales.csv with the columns region and amount and three rows of sample data, and print its text.",
    TOTAL,
)


def main(model: str | BaseChatModel = "local") -> None:
    """Run the tasks in one conversation, so that files persist; a judge rejects outcomes, which are fed back."""
    with create_code_chain(model, solve=Repair(2), verify=[Judge()]) as agent:
        for task in TASKS:
            result = agent.invoke({"query": task, "session_id": "agent"})
            print(f"{task}\n{result['output']}")
            for attempt in result["attempts"]:
                print(f"  attempt {attempt.number}: {attempt.verdict.status}: {attempt.verdict.reason}")
            print(f"  {result['answer']}\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
