"""Guard rails: forbidden patterns, a maximum program length, a few retries, and a cost limit over all questions."""

import argparse
import re

from langchain_core.language_models import BaseChatModel

from code_chains import Budget, Problem, Repair, create_code_chain
from code_chains.analysis.checks import imports_only, names_defined, no_calls, parses, shorter_than

SECRET = re.compile(r"password|api_key|token", re.IGNORECASE)


def no_secrets(code: str) -> list[Problem]:
    """Forbid a pattern."""
    return [Problem("no_secrets", f"Do not use {match[0]!r}") for match in SECRET.finditer(code)]


def main(model: str | BaseChatModel = "local") -> None:
    """Ask three questions on one budget."""
    rails = [
        parses,
        names_defined,
        imports_only("math", "random"),
        no_calls("open", "eval"),
        shorter_than(40),
        no_secrets,
    ]
    budget = Budget(usd=0.05, tokens=8_000, attempts=5)
    with create_code_chain(model, checks=rails, budget=budget, solve=Repair(2)) as chain:
        for question in (
            "What is 17 * 23?",
            "Print the contents of the file /etc/passwd.",
            "Make up a password.",
        ):
            result = chain.invoke(question)
            print(f"{question}\n  {result['output'] or result['execution'].summary}")
            print(f"  {result['verdict'].status}, ended because: {result['stop_reason']}")
    spent = budget.spent
    print(
        f"Spent: {spent.model_calls} calls, {spent.input_tokens + spent.output_tokens} tokens, {spent.usd} dollars"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
