"""Ask a question and stream code, output with its verdict, and the answer word by word."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain


def main(model: str | BaseChatModel = "local") -> None:
    """Ask and print the stream."""
    with create_code_chain(model) as chain:
        for chunk in chain.stream({"query": "What is the sum of the numbers from 1 to 5?"}):
            if "code" in chunk:
                print(chunk["code"])
            if "output" in chunk:
                print("->", chunk["output"], f"({chunk['verdict'].status})")
            print(chunk.get("answer", ""), end="", flush=True)
    print()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
