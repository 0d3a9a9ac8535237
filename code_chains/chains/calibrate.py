"""What an inner chain yields, with what its verdicts were worth in an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, State
from code_chains.errors import InputError
from code_chains.records import Record
from code_chains.state import Verdict
from code_chains.storage.foreign import parse_json, read_text

_MIN_CASES = 5
"""Fewer cases of a kind say nothing about it."""
_MAX_NAME_CHARS = 100


@dataclass(frozen=True)
class Calibration:
    """How often answers with a verdict were right in an evaluation.

    Attributes:
        model: The model that was evaluated.
        cases: Of each case the status of its verdict, who decided, how many attempts it took, and whether it was right.
    """

    model: str
    cases: tuple[tuple[str, str, int, bool], ...]

    @classmethod
    def of(cls, evaluation: str | Path | Record) -> Calibration:
        """Count an evaluation, or the file of one.

        Raises:
            InputError: The file cannot be read, or this is no evaluation that says who decided.
        """
        try:
            saved = _saved(evaluation)
            cases = [
                (str(score["status"]), str(score["by"]), int(score["attempts"]), bool(score["right"]))
                for score in saved["scores"]
            ]
            return cls(str(saved["model"]), tuple(cases))
        except (InputError, ValueError, KeyError, TypeError, OverflowError) as error:
            remedy = (
                "Give what `evaluate` returns, or the path of what `code-chains eval --json FILE` has written"
            )
            named = str(evaluation)[:_MAX_NAME_CHARS]
            raise InputError(f"{named!r} is no evaluation: {error!r}. {remedy}.") from error

    def worth(self, verdict: Verdict, attempts: int) -> str:
        """Return how many answers with such a verdict were right, in words; empty if too few are known.

        Such answers took repair if this one did; if these are too few, all with such a verdict count.
        """
        of_kind = [case for case in self.cases if case[:2] == (verdict.status, verdict.by)]
        alike = [case for case in of_kind if (case[2] > 1) == (attempts > 1)]
        return _share(alike) or _share(of_kind)


def _saved(evaluation: str | Path | Record) -> Mapping[str, Any]:
    if isinstance(evaluation, Record):
        return evaluation.to_dict()
    saved: Mapping[str, Any] = parse_json(read_text(Path(evaluation)))
    return saved


def _share(cases: Iterable[tuple[str, str, int, bool]]) -> str:
    rights = [is_right for *_, is_right in cases]
    return f"right in {sum(rights)} of {len(rights)} such cases" if len(rights) >= _MIN_CASES else ""


class CalibrateChain(EnclosingChain):
    """Add to each verdict what such verdicts were worth.

    Args:
        solve: The chain that answers.
        calibration: How often its answers were right.
    """

    inner: ClassVar[str] = "solve"

    name: str | None = "calibrate"
    solve: Chain
    calibration: Calibration

    @property
    def output_keys(self) -> list[str]:
        """Those of the other chain."""
        return self.solve.output_keys

    def _flow(self, values: State, config: Config) -> Flow:
        return (yield Invoke(self.solve, values, config, self._calibrated))

    def _calibrated(self, chunk: State) -> State:
        verdict: Verdict | None = chunk.get("verdict")
        if verdict is None or not verdict.ok:
            return chunk
        worth = self.calibration.worth(verdict, len(chunk.get("attempts") or ()))
        return {**chunk, "verdict": replace(verdict, worth=worth)}
