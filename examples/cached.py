"""The same question is free the second time, in this process or the next: "(cache hit)" instead of "(cache miss)"."""

import argparse
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain


def main(model: str | BaseChatModel = "local") -> None:
    """Ask the same question twice."""
    with TemporaryDirectory() as folder, create_code_chain(model, cache=f"{folder}/answers.sqlite") as chain:
        for _ in range(2):
            result = chain.invoke("What is the sum of the numbers from 1 to 5?")
            how = "(cache hit)" if result["cached"] else "(cache miss)"
            print(result["answer"], how, result["usage"].model_calls, "model calls")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
