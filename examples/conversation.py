"""A conversation with memory: the second question refers to the first, even in a new process; another session does not."""

import argparse
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain

QUESTIONS = (
    "Put the numbers 3, 5 and 10 into a list named prices and print their sum.",
    "Now print their average.",
)


def main(model: str | BaseChatModel = "local") -> None:
    """Ask each question with a new chain; both share a memory file."""
    with TemporaryDirectory() as folder:
        for question in QUESTIONS:
            with create_code_chain(model, memory=f"{folder}/talks.sqlite") as chain:
                result = chain.invoke({"query": question, "session_id": "ann"})
                print(f"ann: {question}\n{result['code']}-> {result['output']}\n{result['answer']}")
                print(
                    "Turns of ann:",
                    len(chain.turns("ann")),
                    "- turns of bob:",
                    len(chain.turns("bob")),
                    end="\n\n",
                )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
