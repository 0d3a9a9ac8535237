"""A simulation with NumPy that can be repeated: with a seed, chance is the same in every run, and so is the answer."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor, create_code_chain

QUESTION = "Use numpy to throw two dice 100000 times. Print the share of throws whose sum is 7."


def main(model: str | BaseChatModel = "local") -> None:
    """Ask once, then run the program again."""
    with SandboxExecutor(seed=7) as box, create_code_chain(model, executor=box) as chain:
        result = chain.invoke(QUESTION)
        again = box.run(result["code"])
    print(result["code"], result["output"], result["answer"], sep="\n")
    print("The same again:", again.output == result["output"], "- exactly it would be", round(1 / 6, 4))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
