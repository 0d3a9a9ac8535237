"""A repeatable simulation with NumPy: with a seed, random numbers and the answer are the same in every run."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor, create_code_chain

QUESTION = "With numpy, throw a first and a second die 100000 times each, add them, and print how often the sum is 7."


def main(model: str | BaseChatModel = "local") -> None:
    """Ask once, then run the program again."""
    with (
        SandboxExecutor(seed=7) as sandbox,
        create_code_chain(model, executor=sandbox, interpret=False) as chain,
    ):
        result = chain.invoke(QUESTION)
        again = sandbox.run(result["code"])
    print(result["code"], result["output"], sep="\n")
    print("The same again:", again.output == result["output"], "- to be expected:", 100_000 // 6)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
