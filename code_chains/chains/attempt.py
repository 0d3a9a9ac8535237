"""query, … -> programs, stdout, code, problems, execution, output, verdict, autofixes."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from code_chains.analysis.autofix import autofix
from code_chains.chains.base import Analyse, Config, Flow, Invoke, State, StreamingSequentialChain
from code_chains.chains.execute import undo
from code_chains.errors import ConfigurationError
from code_chains.inputs import shortened
from code_chains.records import Attempt, Execution, Strategy

LIVE_KEYS = ("programs", "stdout")
"""The keys that a stream yields while an attempt is made: its programs as they are written, and what they print."""

OUTCOME_KEYS = ("code", "problems", "execution", "output", "verdict")
"""The keys that describe the outcome of an attempt."""
_MAX_AUTOFIXES = 3
_MAX_OUTPUT_CHARS = 20_000


class AttemptChain(StreamingSequentialChain):
    """Make one attempt: the first chain writes a program, the others validate, execute and evaluate it.

    If the attempt fails and the cause is certain, such as a missing import that the `context` shows or of a
    well-known module, the program is fixed without asking a model and goes through the other chains again.
    The fixes are listed in `autofixes`. Streams `programs` and `stdout` while it works.

    Args:
        chains: `generate | validate | execute | evaluate`; together they must add `code`, `problems`,
            `execution`, `output` and `verdict`.
        autofix: Whether programs are fixed; applies to Python only.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "autofixes"]

    name: str | None = "attempt"
    autofix: bool = True

    def _flow(self, values: State, config: Config) -> Flow:
        outcome: State = {"autofixes": ()} | (yield Invoke(self.chains[0], values, config))
        outcome = yield from self._check(values, outcome, config)
        while self.autofix and not outcome["verdict"].ok and len(outcome["autofixes"]) < _MAX_AUTOFIXES:
            if outcome["execution"].has_effects:  # Fixing it would repeat them.
                break
            fix = partial(autofix, context=str(values.get("context") or ""), profiles=_read_lines(values))
            fixed = yield Analyse(fix, outcome, config)
            if fixed is None:
                break
            yield from undo(values, outcome, config)
            retry = {"code": fixed.code, "autofixes": (*outcome["autofixes"], *fixed.autofixes)}
            outcome = yield from self._check(values, retry, config)
        yield {
            "reply": "",
            **{key: outcome[key] for key in (*OUTCOME_KEYS, "autofixes", "reply") if key in outcome},
        }

    def _check(self, values: State, outcome: State, config: Config) -> Flow:
        yield {"programs": [code] if (code := outcome.get("code")) else []}
        for chain in self.chains[1:]:
            emit = select_live if "stdout" in chain.output_keys else None
            try:
                outcome = {**outcome, **(yield Invoke(chain, {**values, **outcome}, config, emit))}
            except Exception:
                # Invariant: a session keeps no effects of a program that was not accepted.
                if "execution" in outcome:
                    yield from undo(values, outcome, config)
                raise
        if missing := [key for key in OUTCOME_KEYS if key not in outcome]:
            raise ConfigurationError("chains", self.chains, f"chains that also add {', '.join(missing)}")
        if "stdout" not in outcome:
            yield {"stdout": outcome["execution"].stdout}
        # Words in place of a program are what is shown, and not that there was none.
        return outcome | ({"output": reply} if (reply := outcome["verdict"].reply) else {})


def _read_lines(values: State) -> str:
    """Return what the model was shown of files."""
    profiles = (values.get("profiles") or {}).get("files") or {}
    return "\n".join(map(str, profiles.values()))


def select_live(chunk: State) -> State:
    """Return the keys of a chunk that are streamed while an attempt is made."""
    return {key: chunk[key] for key in LIVE_KEYS if key in chunk}


def record_attempt(outcome: State, number: int, strategy: Strategy) -> Attempt:
    """Return the record of an attempt from its outcome."""
    execution: Execution = outcome["execution"]
    return Attempt(
        number,
        outcome["code"],
        tuple(outcome["problems"]),
        execution.status,
        execution.summary,
        outcome["verdict"],
        strategy,
        tuple(outcome.get("autofixes") or ()),
        **observation(execution),
    )


def observation(execution: Execution) -> dict[str, Any]:
    """Return what the record of an attempt holds of its run."""
    output = shortened(execution.output, _MAX_OUTPUT_CHARS)
    return {"tool_calls": execution.tool_calls, "output": output, "error": execution.error}
