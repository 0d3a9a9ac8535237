"""query, (files, variables, context, history) -> the outcome of a solver, compared with other programs: `Agreement`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from code_chains.analysis.skeletons import is_same_program
from code_chains.callbacks.budget import count_attempt
from code_chains.chains.attempt import LIVE_KEYS, OUTCOME_KEYS, record_attempt
from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, State
from code_chains.chains.execute import undo
from code_chains.chains.ranks import ask_verifiers
from code_chains.chains.sample import outcome_text
from code_chains.errors import BudgetError
from code_chains.state import Verdict
from code_chains.verification.comparison import group
from code_chains.verification.numbers import values_in

ANOTHER_WAY = "- Begin with a comment that lists what is given and what is asked for, with units. Then compute step by step."
"""A rule for some of the further programs."""


class VerifyChain(EnclosingChain):
    """Solve a question, and have further programs solve it again until one outcome leads.

    An outcome that tests verified, or that failed, stays as it is. Otherwise further programs are written without knowledge
    of the first: by the same model at a higher temperature, or by another model. As soon as `lead` more programs state one
    outcome than any other, that is the answer, and `plausible`, unless it is zero, which programs that miss their data give
    as well. In a session, whose state holds the effects of the first program, this only holds if that is one of those
    programs. Otherwise the answer is the outcome of most programs, or the first, `unverified`; no program is written once
    the others could not change that.

    Answers on which independent programs agree are more often right: self-consistency (Wang et al. 2022,
    arXiv:2203.11171). How often depends on the model; `docs/benchmarks.md` has measurements.

    Args:
        solve: A chain that adds what a `RepairChain` adds.
        others: Chains that make one attempt each, such as `AttemptChain`s, asked one after the other.
        lead: Programs, the first included, by which an outcome must lead. With less than three, more were wrong.
        verifiers: Chains to `verdict`, which decide on what stays open; see `EvaluateChain`. No attempt follows.
        is_independent: Whether others that write the same program again confirm it, as those of another model and those of
            a model at a higher temperature do. False for a model that gives the same reply again.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "attempts", "stop_reason"]

    inner: ClassVar[str] = "solve"
    name: str | None = "verify"
    solve: Chain
    others: Sequence[Chain]
    lead: int = Field(default=3, ge=2)  # With less, more were wrong (`docs/benchmarks.md`).
    verifiers: Sequence[Chain] = ()
    is_independent: bool = True

    def _flow(self, values: State, config: Config) -> Flow:
        solved = yield Invoke(self.solve, values, config, _select_solved)
        final = solved
        if _can_be_checked(solved, values):
            final = yield from self._check(solved, values, config)
        if final["verdict"].status == "unverified":
            verdict = yield from ask_verifiers(self.verifiers, {**values, **final}, config)
            final = {**final, "verdict": verdict}
        yield {**{key: final[key] for key in OUTCOME_KEYS}, "stop_reason": solved["stop_reason"]}

    def _check(self, solved: State, values: State, config: Config) -> Flow:
        """Return the outcome that leads by enough programs, or that of most of them, unverified."""
        outcomes, lead, shared = [solved], 1, solved
        for number, other in enumerate(self.others, start=1):
            try:
                count_attempt(config)
                outcome = yield Invoke(other, {**values, "sample_index": number}, config)
            except BudgetError as error:  # Invariant: what a program has shown is not lost.
                return _with_verdict(solved, "unverified", f"No other program checked it: {error}")
            yield from undo(values, outcome, config)
            yield _live(outcome, len(solved["attempts"]) + number)
            if not self._is_copy(outcome, outcomes):
                outcomes.append(outcome)
                lead, shared = _leading(outcomes, values)
            if lead >= self.lead:
                return shared
            if lead + len(self.others) - number < self.lead:
                break
        reason = "Other programs were the same, failed, or gave other outcomes."
        return _with_verdict(shared, "unverified", reason)

    def _is_copy(self, outcome: State, earlier: Sequence[State]) -> bool:
        """Return whether a program is an earlier one again, which is no confirmation."""
        return not self.is_independent and any(
            is_same_program(outcome["code"], other["code"]) for other in earlier
        )


def _select_solved(chunk: State) -> State:
    return {key: chunk[key] for key in (*LIVE_KEYS, "attempts") if key in chunk}


def _can_be_checked(solved: State, values: State) -> bool:
    """Return whether an outcome is one that nothing has checked, and that can be compared with others."""
    is_open = solved["verdict"].is_open and not solved["execution"].has_effects
    return is_open and bool(outcome_text(solved, values))


def _has_vote(verdict: Verdict) -> bool:
    """Return whether an outcome counts in a vote: that programs make up the same says nothing."""
    return verdict.ok and verdict.by != "provenance"


def _live(outcome: State, number: int) -> State:
    """Return what a stream yields of another program."""
    return {"programs": [outcome["code"]], "attempts": [record_attempt(outcome, number, "verify")]}


def _leading(outcomes: Sequence[State], values: State) -> tuple[int, State]:
    """Return by how many programs the most frequent outcome leads, and the first of these with its verdict."""
    shown = [
        outcome for outcome in outcomes if _has_vote(outcome["verdict"]) and outcome_text(outcome, values)
    ]
    texts = [outcome_text(outcome, values) for outcome in shown]
    groups = group(texts, str(values.get("query") or ""))
    if not groups:
        return 0, outcomes[0]
    chosen = shown[groups[0][0]]
    # Invariant: a session holds the effects of the first program, so no other may be its answer.
    if values.get("session") is not None and chosen is not outcomes[0]:
        return 0, outcomes[0]
    lead = len(groups[0]) - max(map(len, groups[1:]), default=0)
    count = f"{len(groups[0])} of {len(outcomes)} programs"
    if _is_zero(texts[groups[0][0]]):
        verdict = Verdict("unverified", "vote", f"{count} gave zero, which is also what mistakes give.")
    else:
        verdict = Verdict("plausible", "vote", f"{count} gave the same outcome.")
    return lead, {**chosen, "verdict": verdict}


def _is_zero(text: str) -> bool:
    """Return whether an outcome is zero, which programs that miss their data in different ways give as well."""
    values = values_in(text.replace("\N{MINUS SIGN}", "-"))
    return len(values) == 1 and values[0] == 0


def _with_verdict(outcome: State, status: Literal["plausible", "unverified"], reason: str) -> State:
    return {**outcome, "verdict": Verdict(status, "vote", reason)}
