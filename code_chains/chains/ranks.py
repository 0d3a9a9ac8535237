"""Verifiers in the order of their declared ranks: which are asked about an outcome, and what they make of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from code_chains.chains.base import Chain, Config, Flow, Invoke, State
from code_chains.errors import BudgetError, InputError
from code_chains.records import Execution, Verdict

UNCHECKED = Verdict("unverified", "none", "The program ran; nothing checked its output.")
"""What is said of a program if nothing else can be."""


class Rank(IntEnum):
    """What a verifier can know; those of a lower rank are asked first.

    Attributes:
        DOUBT: It can only doubt an outcome, so it is asked before what may speak for that, and not about what is in doubt.
        KNOWLEDGE: It may know, as a verifier of the user's own does unless it says otherwise.
        OPINION: A model has an opinion, which makes right nothing that was made up.
    """

    DOUBT = 1
    KNOWLEDGE = 2
    OPINION = 3


def rank_of(verifier: Chain) -> Rank:
    """Return the rank that a chain declares; a stock chain of LangChain declares none."""
    rank: Rank = getattr(verifier, "rank", Rank.KNOWLEDGE)
    return rank


def _is_asked(verifier: Chain, verdict: Verdict) -> bool:
    """Return whether a verifier may change what is said of an outcome so far."""
    rank = rank_of(verifier)
    if verdict.by == "provenance" and rank is not Rank.KNOWLEDGE:
        return False
    return not (verdict.is_doubt and rank is Rank.DOUBT)


def required(values: State, key: str, user: str) -> str:
    """Return an input that only some outcomes need."""
    if values.get(key) is None:
        raise InputError(f"EvaluateChain: {user} cannot decide without {key!r}. Pass it with the execution.")
    return str(values[key])


def ask_verifiers(verifiers: Sequence[Chain], outcome: State, config: Config) -> Flow:
    """Return the verdict of the first verifier that decides; what is said of the outcome so far if none does.

    Invariant: no opinion of a model makes right what was made up, and none is paid for; verifiers of one's own may know.
    """
    verdict: Verdict = outcome["verdict"]
    state = {**outcome, "output": _output_and_artifacts(outcome["execution"])}
    for verifier in verifiers:
        if not _is_asked(verifier, verdict):
            continue
        for key in verifier.input_keys:
            required(state, key, verifier.get_name())
        try:
            said: Verdict = (yield Invoke(verifier, state, config))["verdict"]
        except BudgetError as error:  # Invariant: what a program has shown is not lost.
            said = Verdict("unverified", "none", f"{verifier.get_name()} was not asked: {error}")
            return said if verdict == UNCHECKED else verdict
        if said.status != "unverified":
            return said
        if verdict == UNCHECKED or said.is_doubt:  # Else more is known, such as a vote.
            verdict = said
    return verdict


def _output_and_artifacts(execution: Execution) -> str:
    """Return the output and the names of artifacts."""
    artifacts = "\n".join(
        f"(It made {artifact.name}, {artifact.media_type})" for artifact in execution.artifacts
    )
    return "\n".join(part for part in (execution.output, artifacts) if part)
