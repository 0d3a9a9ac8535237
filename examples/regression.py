"""A linear regression as a function that is tested on points of a known line, then applied to others."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import SandboxExecutor, create_code_chain

QUESTION = {
    "query": "Write a function fit(xs, ys) that returns slope and intercept of a line by numpy.polyfit of degree 1.",
    "tests": "assert abs(fit([0, 1, 2], [1, 3, 5])[0] - 2) < 1e-6\nassert abs(fit([0, 1, 2], [4, 2, 3])[1] - 3.5) < 1e-6",
}
USE = "slope, intercept = fit([1, 2, 3, 4], [2.1, 3.9, 6.2, 7.8])\nprint(f'y = {slope:.2f} x + {intercept:.2f}')"


def main(model: str | BaseChatModel = "local") -> None:
    """Ask for the function; use it only if it passes."""
    with SandboxExecutor() as sandbox, create_code_chain(model, executor=sandbox, interpret=False) as chain:
        result = chain.invoke(QUESTION)
        print(result["code"], f"{result['verdict'].status}: {result['verdict'].reason}", sep="\n")
        if result["verdict"].status == "verified":
            print(sandbox.run(f"{result['code']}\n{USE}").output)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
