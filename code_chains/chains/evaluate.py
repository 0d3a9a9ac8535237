"""execution -> verdict."""

from __future__ import annotations

from code_chains.chains.base import Config, Piece, Program, State
from code_chains.state import Execution, Verdict

__all__ = ["EvaluateChain"]


class EvaluateChain(Piece):
    """Says whether an outcome is an answer. Adds `verdict`.

    A program that failed, or whose outcome nobody would see, is no answer (`failed`). One that ran and said something is
    `unverified`: nothing was there to check it against.
    """

    name: str | None = "evaluate"

    @property
    def input_keys(self) -> list[str]:
        """It judges a run."""
        return ["execution"]

    @property
    def output_keys(self) -> list[str]:
        """It adds its verdict."""
        return ["verdict"]

    def _program(self, values: State, config: Config) -> Program:
        yield {"verdict": _judge(values["execution"])}


def _judge(execution: Execution) -> Verdict:
    if not execution.ok:
        return Verdict("failed", "none", execution.summary)
    if not execution.output.strip() and not execution.artifacts:
        return Verdict("failed", "none", "The program ran but printed nothing.")
    return Verdict("unverified", "none", "The program ran; nothing checked its output.")
