"""Answers that a judge decides on, each judged once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from code_chains.batch.results_file import ResultsFile
from code_chains.chains.judge import JudgeChain
from code_chains.state import Verdict


class Judgements:
    """The judgements of answers, which are kept beside the results file, as each costs a call of a model.

    A context manager. Judgements that are not clear are not kept: the judge is asked again.

    Args:
        judge: The judge; None if no case needs one.
        results_file: The file of the answers; `PATH.judged` beside it holds the judgements. None keeps none.
    """

    def __init__(self, judge: JudgeChain | None, results_file: ResultsFile | None) -> None:
        self._judge = judge
        is_kept = judge is not None and results_file is not None
        self._file = (
            ResultsFile(f"{results_file.path}.judged", resume=True) if is_kept and results_file else None
        )
        self._stack = ExitStack()
        self._known: dict[str, Verdict] = {}

    def __enter__(self) -> Judgements:
        if self._file is not None:
            self._stack.enter_context(self._file)
            records = self._file.records()
            self._known = {
                record["id"]: Verdict.from_dict(record["computed"]["verdict"]) for record in records
            }
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def judge(self, case_id: str, result: Mapping[str, Any]) -> Verdict:
        """Return the judgement of an answer."""
        if case_id not in self._known:
            assert self._judge is not None  # Checked before the first case was asked.
            self._known[case_id] = self._judge.invoke(
                {key: result.get(key) or "" for key in ("query", "code", "output")}
            )["verdict"]
            self._keep(case_id)
        return self._known[case_id]

    def _keep(self, case_id: str) -> None:
        verdict = self._known[case_id]
        if self._file is not None and verdict.status != "unverified":
            record = {"given": {"digest": ""}, "computed": {"verdict": verdict.to_dict()}}
            self._file.add({"id": case_id, **record})
