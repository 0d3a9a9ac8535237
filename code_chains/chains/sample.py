"""query, … -> programs, stdout and the outcome that most of several programs agree with, with its autofixes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar

from pydantic import Field

from code_chains.analysis.skeletons import is_same_program
from code_chains.chains.answer_value import answer_value, format_value
from code_chains.chains.attempt import LIVE_KEYS, OUTCOME_KEYS, select_live
from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, RunFunction, State
from code_chains.chains.execute import commit, undo
from code_chains.chains.ranks import ask_verifiers
from code_chains.state import Execution, Verdict
from code_chains.verification.comparison import group


class SampleChain(EnclosingChain):
    """Make several attempts at once and select one whose outcome most of them share.

    The first sample uses the model's own settings, the others a higher temperature; ties are won by the
    earlier group. A program that passes the given tests is selected at once. Otherwise outcomes are grouped,
    with a tolerance for numbers: if more than half of all samples agree, the outcome is `plausible` by vote;
    otherwise it stays `unverified`. The idea is self-consistency (Wang et al., 2022), applied to the output
    of programs.

    Args:
        attempt: One attempt, e.g. an `AttemptChain`; it is run as a batch.
        samples: Number of attempts.
        ordered: Whether lists in another order count as another outcome.
        verifiers: Chains to `verdict` that have the last word on the selected outcome; see `EvaluateChain`.
        is_independent: Whether the same program twice has two votes, as with a model at another temperature.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "autofixes"]

    inner: ClassVar[str] = "attempt"
    name: str | None = "sample"
    attempt: Chain
    samples: int = Field(default=5, ge=1)
    ordered: bool = True
    verifiers: Sequence[Chain] = ()
    is_independent: bool = True

    def _flow(self, values: State, config: Config) -> Flow:
        first = int(values.get("sample_index") or 0) * self.samples
        inputs = [{**values, "sample_index": first + number} for number in range(self.samples)]
        if values.get("session") is not None:
            outcomes = yield from self._in_session(inputs, config)
        else:
            batch = partial(self.attempt.batch, config=config, return_exceptions=True)
            abatch = partial(self.attempt.abatch, config=config, return_exceptions=True)
            outcomes = yield RunFunction(batch, inputs, config, abatch)
        completed = _completed(outcomes)
        # Samples are made at once: their output would be torn if it were streamed.
        for outcome in completed:
            yield select_live(
                {"programs": [outcome["code"]], "stdout": outcome["execution"].stdout} | outcome
            )
        selected = yield RunFunction(partial(self._select, values=values), completed, config)
        verdict: Verdict = selected["verdict"]
        if verdict.ok and verdict.by != "tests":
            verdict = yield from ask_verifiers(self.verifiers, {**values, **selected}, config)
            selected = {**selected, "verdict": verdict}
        if values.get("session") is not None and selected["execution"].ok:
            selected = {**selected, **(yield from self._commit(selected, values, config))}
        yield {key: selected[key] for key in (*OUTCOME_KEYS, "autofixes")}

    def _in_session(self, inputs: list[State], config: Config) -> Flow:
        """Attempt one after the other; each starts from the same state of the session and is rolled back."""
        outcomes: list[State | Exception] = []
        for values in inputs:
            try:
                outcome = yield Invoke(self.attempt, values, config)
            except Exception as error:
                outcomes.append(error)
                continue
            yield from undo(values, outcome, config)
            outcomes.append(outcome)
        return outcomes

    def _commit(self, selected: State, values: State, config: Config) -> Flow:
        """Run the selected program again in the session, this time for good."""
        execution: Execution = yield from commit(values, selected["code"], config)
        verdict = selected["verdict"]
        if not execution.ok:
            verdict = Verdict("failed", "none", execution.summary)
        return {"execution": execution, "output": execution.output, "verdict": verdict}

    def _select(self, outcomes: list[State], values: State) -> State:
        """Return the best outcome, with the verdict of the vote unless a stronger one exists."""
        verified = [outcome for outcome in outcomes if outcome["verdict"].status == "verified"]
        if verified:
            return verified[0]
        candidates = [outcome for outcome in outcomes if outcome["verdict"].ok]
        if not candidates:
            return max(outcomes, key=lambda outcome: outcome["execution"].ok)
        best = max(outcome["verdict"].rank for outcome in candidates)
        candidates = [outcome for outcome in candidates if outcome["verdict"].rank == best]
        shown = [(text, outcome) for outcome in candidates if (text := outcome_text(outcome, values))]
        if not shown:  # Definitions alone cannot be compared.
            return candidates[0]
        texts, candidates = [text for text, _ in shown], [outcome for _, outcome in shown]
        groups = group(texts, str(values.get("query") or ""), ordered=self.ordered)
        selected = candidates[groups[0][0]]
        if not selected["verdict"].is_open:
            return selected
        sizes = [len(self._voters([candidates[member] for member in members])) for members in groups]
        return {**selected, "verdict": self._vote(sizes)}

    def _voters(self, outcomes: Sequence[State]) -> Sequence[State]:
        """Return the outcomes that have a vote: of a program that a model merely repeats, the first."""
        if self.is_independent:
            return outcomes
        voters: list[State] = []
        for outcome in outcomes:
            if not any(is_same_program(outcome["code"], voter["code"]) for voter in voters):
                voters.append(outcome)
        return voters

    def _vote(self, sizes: list[int]) -> Verdict:
        count = f"{sizes[0]} of {self.samples} programs gave the same outcome"
        if 2 * sizes[0] > self.samples > 1:
            return Verdict("plausible", "vote", f"{count}.")
        tie = ", and as many another one" if len(sizes) > 1 and sizes[0] == sizes[1] else ""
        return Verdict("unverified", "vote", f"Only {count}{tie}.")


def _completed(outcomes: Sequence[Any]) -> list[State]:
    """Return the attempts that completed: an error in some of them, such as a budget limit, does not lose the others."""
    completed = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    if not completed:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    return completed


def outcome_text(outcome: State, values: State) -> str:
    """Return the value as JSON if a type is asked for; else what was printed, without it; else names and hashes of files."""
    execution: Execution = outcome["execution"]
    if answer_type := values.get("answer_type"):
        return format_value(answer_value(execution, outcome["code"], answer_type), answer_type)
    files = sorted(f"{artifact.name} {sha256(artifact.data).hexdigest()}" for artifact in execution.artifacts)
    return execution.stdout.strip() or execution.output or "\n".join(files)
