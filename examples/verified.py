"""A function that is tested before it is accepted: the program can neither see nor patch its tests."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import Repair, create_code_chain

QUESTION = {
    "query": "Write a Python function `initials(name)`: the first letters of all words in a name, in upper case.",
    "examples": [("ada lovelace", "AL"), ("grace brewster murray hopper", "GBMH"), ("plato", "P")],
}


def main(model: str | BaseChatModel = "local") -> None:
    """Ask for three programs at once, select one that passes, print each attempt."""
    with create_code_chain(model, interpret=False, solve=Repair(samples=3)) as chain:
        result = chain.invoke(QUESTION)

    print(result["code"])
    print(f"{result['verdict'].status} by {result['verdict'].by}: {result['verdict'].reason}")
    for attempt in result["attempts"]:
        print(f"attempt {attempt.number} ({attempt.strategy}): {attempt.verdict.reason}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
