"""query, … -> code, problems, execution, output, verdict, mends: the one of several programs that most agree with."""

from __future__ import annotations

from collections.abc import Sequence as Several
from functools import partial
from hashlib import sha256
from typing import Any

from langchain_core.runnables.graph import Graph
from pydantic import Field

from code_chains.chains.attempt import KEPT
from code_chains.chains.base import Call, Chain, Config, Do, Piece, Program, State
from code_chains.chains.execute import undo
from code_chains.outcomes import group
from code_chains.state import Execution, Verdict

__all__ = ["SampleChain"]


class SampleChain(Piece):
    """Makes several attempts at once, and keeps one whose outcome most of them share.

    The first is asked for as ever, the others at a raised temperature; among groups of equal size the earlier wins. A
    program that passes tests that were given is kept at once. Otherwise outcomes are grouped, numbers by tolerance: if more
    than half of all agree, the outcome is `plausible` by vote; a tie or a smaller group leaves it `unverified`. The idea is
    self-consistency (Wang et al., 2022), applied to what programs print.

    Args:
        attempt: One attempt, e.g. an `AttemptChain`; it is run as a batch.
        samples: How many there are.
        ordered: Whether lists in another order are another outcome.
        judge: A chain from `query`, `code` and `output` to `verdict` that has the last word on the one that is kept.
    """

    name: str | None = "sample"
    attempt: Chain
    samples: int = Field(default=5, ge=1)
    ordered: bool = True
    judge: Chain | None = None

    @property
    def input_keys(self) -> list[str]:
        """What an attempt needs."""
        return self.attempt.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """What an attempt uses."""
        return list(getattr(self.attempt, "optional_keys", []))

    @property
    def output_keys(self) -> list[str]:
        """What is known of the attempt that is kept."""
        return [*KEPT, "mends"]

    def _program(self, values: State, config: Config) -> Program:
        first = int(values.get("variation") or 0) * self.samples
        asked = [{**values, "variation": first + number} for number in range(self.samples)]
        if values.get("session") is not None:
            outcomes = _usable((yield from self._one_by_one(asked, config)))
        else:
            batch = partial(self.attempt.batch, config=config, return_exceptions=True)
            abatch = partial(self.attempt.abatch, config=config, return_exceptions=True)
            outcomes = _usable((yield Do(batch, asked, config, abatch)))
        kept = self._choose(outcomes, str(values.get("query") or ""))
        if self.judge is not None and kept["verdict"].ok and kept["verdict"].by != "tests":
            state = {"query": values["query"], "code": kept["code"], "output": kept["output"]}
            judged = (yield Call(self.judge, state, config))["verdict"]
            kept = kept if judged.status == "unverified" else {**kept, "verdict": judged}
        if values.get("session") is not None and kept["execution"].ok:
            kept = {**kept, **(yield from self._again(kept, values, config))}
        yield {key: kept[key] for key in self.output_keys}

    def _one_by_one(self, asked: list[State], config: Config) -> Program:
        """In a session each program starts from the same state, and leaves it as it was."""
        outcomes: list[State | Exception] = []
        for values in asked:
            try:
                outcome = yield Call(self.attempt, values, config)
            except Exception as error:
                outcomes.append(error)
                continue
            yield from undo(values, outcome, config)
            outcomes.append(outcome)
        return outcomes

    def _again(self, kept: State, values: State, config: Config) -> Program:
        """Run the one that is kept once more, in the session, for good."""
        given = {"files": values.get("files"), "variables": values.get("variables")}
        run = partial(values["session"].run, **given)
        execution: Execution = yield Do(run, kept["code"], config, partial(values["session"].arun, **given))
        verdict = kept["verdict"] if execution.ok else Verdict("failed", "none", execution.summary)
        return {"execution": execution, "output": execution.output, "verdict": verdict}

    def _choose(self, outcomes: list[State], query: str) -> State:
        """The outcome to keep, with the verdict of the vote where nothing stronger is known."""
        verified = [outcome for outcome in outcomes if outcome["verdict"].status == "verified"]
        fine = [outcome for outcome in outcomes if outcome["verdict"].ok]
        if verified or not fine:
            return verified[0] if verified else max(outcomes, key=lambda outcome: outcome["execution"].ok)
        groups = group([_said(outcome["execution"]) for outcome in fine], query, ordered=self.ordered)
        kept = fine[groups[0][0]]
        if kept["verdict"].rank > 1:
            return kept
        return {**kept, "verdict": self._vote([len(one) for one in groups])}

    def _vote(self, sizes: list[int]) -> Verdict:
        count = f"{sizes[0]} of {self.samples} programs gave the same outcome"
        if 2 * sizes[0] > self.samples > 1:
            return Verdict("plausible", "vote", f"{count}.")
        tie = ", and as many another one" if len(sizes) > 1 and sizes[0] == sizes[1] else ""
        return Verdict("unverified", "vote", f"Only {count}{tie}.")

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages of an attempt."""
        return self.attempt.get_graph(config)


def _usable(outcomes: Several[Any]) -> list[State]:
    """Those that came about: what stopped some of them, such as a limit of the budget, does not lose the others."""
    usable = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    if not usable:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    return usable


def _said(execution: Execution) -> str:
    """What a run says: what it printed, without the value of a last line that comes on top; else the files it made."""
    files = sorted(f"{artifact.name} {sha256(artifact.data).hexdigest()}" for artifact in execution.artifacts)
    return execution.stdout.strip() or execution.output or "\n".join(files)
