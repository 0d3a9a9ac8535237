"""Ask a question and watch the story arrive: attempts, code, verdict, and the answer word by word.

Usage: python examples/first_question.py [MODEL]
"""

import sys

from code_chains import create_code_chain


def main(model: str = "local") -> None:
    """Ask, and print what streams."""
    with create_code_chain(model) as chain:
        for chunk in chain.stream({"query": "What is the sum of the numbers from 1 to 5?"}):
            if "code" in chunk:
                print(chunk["code"])
            if "output" in chunk:
                print("->", chunk["output"], f"({chunk['verdict'].status})")
            print(chunk.get("answer", ""), end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
