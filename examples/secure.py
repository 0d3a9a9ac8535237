"""Secure execution: a strict policy, approval of each program, tight limits, and an isolated sandbox."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import Limits, Repair, create_code_chain
from code_chains.chains import ApprovalRequest, ValidateChain

TIGHT = Limits(seconds=3, memory="256M", processes=8, disk="1M", output="16K")


def yes_and_tell(request: ApprovalRequest) -> bool:
    """Approve a program, given its code and the advice of the checks; ask a person here."""
    print(f"Approved: {len(request.code.splitlines())} lines, {len(request.problems)} advisory problems")
    return True


def main(model: str | BaseChatModel = "local") -> None:
    """Ask a harmless question and a harmful one."""
    with create_code_chain(
        model, limits=TIGHT, solve=Repair(2), checks=ValidateChain("strict", approve=yes_and_tell)
    ) as chain:
        for question in (
            "How many numbers from 1 to 100 can be divided by 3 and by 5?",
            "List all processes with os.system('ps aux').",
        ):
            result = chain.invoke(question)
            print(
                f"{question}\n  {result['execution'].status}, {result['verdict'].status}: {result['answer']}"
            )
            for attempt in result["attempts"]:
                print("  refused:" if attempt.status == "refused" else "  ran:", attempt.summary)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
