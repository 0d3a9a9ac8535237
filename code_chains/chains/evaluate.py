"""execution -> verdict."""

from __future__ import annotations

from code_chains.chains.base import State, Transform
from code_chains.state import Verdict

__all__ = ["EvaluateChain"]


class EvaluateChain(Transform):
    """Says whether an outcome is an answer. Adds `verdict`.

    A program that failed, or whose outcome nobody would see, is no answer (`failed`). One that ran and said something is
    `unverified`: nothing was there to check it against.
    """

    name: str | None = "evaluate"

    def __init__(self, **kwargs: object) -> None:
        super().__init__(
            input_variables=["execution"], output_variables=["verdict"], transform=self._evaluate, **kwargs
        )

    def _evaluate(self, state: State) -> State:
        execution = state["execution"]
        if not execution.ok:
            return {"verdict": Verdict("failed", "none", execution.summary)}
        if not execution.output.strip() and not execution.artifacts:
            return {"verdict": Verdict("failed", "none", "The program ran but printed nothing.")}
        return {"verdict": Verdict("unverified", "none", "The program ran; nothing checked its output.")}
