"""query, … -> code, problems, execution, output, verdict, mends."""

from __future__ import annotations

from code_chains.chains.base import Call, Config, Program, Sequence, State
from code_chains.chains.execute import undo
from code_chains.errors import ConfigurationError
from code_chains.mending import mend

__all__ = ["KEPT", "AttemptChain"]

KEPT = ("code", "problems", "execution", "output", "verdict")
"""What an attempt is known by."""
_MOST_MENDS = 3


class AttemptChain(Sequence):
    """One attempt: the first of its chains writes a program, the others check, run and judge it.

    Where that fails and what is missing is certain, such as the import of a well-known module, it is mended without asking a
    model, and the others go over it again. What was done is in `mends`.

    Args:
        chains: `generate | validate | execute | evaluate`; together they add `code`, `problems`, `execution`, `output` and
            `verdict`.
        mend: Whether anything is mended; only Python is.
    """

    name: str | None = "attempt"
    mend: bool = True

    @property
    def output_keys(self) -> list[str]:
        """What is known of the attempt."""
        return [*KEPT, "mends"]

    def _program(self, values: State, config: Config) -> Program:
        outcome: State = {"mends": ()} | (yield Call(self.chains[0], values, config))
        outcome = yield from self._check(values, outcome, config)
        while self.mend and not outcome["verdict"].ok and len(outcome["mends"]) < _MOST_MENDS:
            mended = mend(outcome)
            if mended is None:
                break
            yield from undo(values, outcome, config)
            again = {"code": mended.code, "mends": (*outcome["mends"], *mended.mends)}
            outcome = yield from self._check(values, again, config)
        yield {key: outcome[key] for key in self.output_keys}

    def _check(self, values: State, outcome: State, config: Config) -> Program:
        for chain in self.chains[1:]:
            try:
                outcome = {**outcome, **(yield Call(chain, {**values, **outcome}, config))}
            except Exception:
                if "execution" in outcome:  # What ran is not judged, and must not stay.
                    yield from undo(values, outcome, config)
                raise
        if missing := [key for key in KEPT if key not in outcome]:
            raise ConfigurationError("chains", self.chains, f"chains that also add {', '.join(missing)}")
        return outcome
