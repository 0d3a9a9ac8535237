"""query, (files, variables, context, history) -> programs, stdout, attempts, stop_reason and the best outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from code_chains.chains.attempt import LIVE_KEYS, OUTCOME_KEYS, select_live
from code_chains.chains.base import Chain, Config, Flow, Invoke, State, StreamingChain
from code_chains.chains.repair import merit
from code_chains.errors import ConfigurationError
from code_chains.state import FINAL_STOPS


class EscalateChain(StreamingChain):
    """Have one model after the other solve a task, from the cheapest to the strongest, until a verdict is not `failed`.

    Each begins anew, without the failures of the one before. A model that raises ends the work, as
    `model.with_fallbacks` exists for that; so does a spent budget. The attempts of all are recorded, with their
    models. Streams what its chains stream, then the best outcome. Such cascades save most of the cost of a strong
    model where a weak one often suffices (FrugalGPT, Chen et al. 2023, arXiv:2305.05176).

    Args:
        solvers: Chains by the names of their models, e.g. each a `RepairChain`; the first one is the cheapest.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "attempts", "stop_reason"]

    name: str | None = "escalate"
    solvers: Sequence[tuple[str, Chain]]

    def __init__(self, solvers: Sequence[tuple[str, Chain]], **kwargs: object) -> None:
        if not solvers:
            raise ConfigurationError("solvers", solvers, "at least one pair of a model's name and a chain")
        for name, chain in solvers:
            if missing := [
                key for key in (*OUTCOME_KEYS, "attempts", "stop_reason") if key not in chain.output_keys
            ]:
                raise ConfigurationError("solvers", name, f"chains that also add {', '.join(missing)}")
        super().__init__(**{"solvers": tuple(solvers), **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """Keys that the first chain requires."""
        return self.solvers[0][1].input_keys

    @property
    def optional_keys(self) -> list[str]:
        """Keys that the first chain uses."""
        return list(getattr(self.solvers[0][1], "optional_keys", []))

    def _flow(self, values: State, config: Config) -> Flow:
        best: State = {}
        count = 0
        for model, solver in self.solvers:
            outcome = yield Invoke(solver, values, config, _emit(model, after=count))
            count += len(outcome["attempts"])
            if not best or merit(outcome) > merit(best):
                best = outcome
            if outcome["verdict"].ok or outcome["stop_reason"] in FINAL_STOPS:
                break
        yield {**{key: best[key] for key in OUTCOME_KEYS}, "stop_reason": outcome["stop_reason"]}


def _emit(model: str, *, after: int) -> Callable[[State], Mapping[str, object]]:
    """Return what maps chunks of a solver: what is live, and its attempts, numbered on after those of others."""

    def emit(chunk: State) -> State:
        live = select_live(chunk)
        if "attempts" not in chunk:
            return live
        attempts = [replace(made, number=made.number + after, model=model) for made in chunk["attempts"]]
        return {**live, "attempts": attempts}

    return emit
