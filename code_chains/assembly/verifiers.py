"""The values of `verify=`, tried in order; a new verifier goes here: each builds the chain that decides on an outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.runnables import Runnable

from code_chains import chains
from code_chains.assembly.parts import Model, Parts, embedded
from code_chains.chains.base import Chain, State, StreamingTransformChain
from code_chains.chains.ranks import UNCHECKED
from code_chains.errors import ConfigurationError, check_int
from code_chains.models import for_code
from code_chains.models.sampling import can_be_sampled
from code_chains.records import Record
from code_chains.state import Verdict

Check = Callable[[State], Verdict | None]
_MAX_LEAD = 9


class Verifier:
    """What may decide on an outcome that tests do not decide. One of your own implements `build`."""

    solves_again: bool = False
    """Whether it solves a question again. Verifiers after it decide on what it leaves open, and no attempt follows."""

    def check(self, parts: Parts) -> None:
        """Raise if the parts of a chain do not allow it, before a model is loaded.

        Raises:
            ConfigurationError: They do not; the message names the remedy.
        """

    def before(self, parts: Parts) -> Chain | None:
        """Return a stage that runs before the question is solved; None without one."""
        return None

    def build(self, parts: Parts) -> Chain | None:
        """Return a chain from `query`, `code`, `output` and what else it needs to `verdict`; `unverified` leaves it open.

        A verdict `failed` leads to another attempt.
        """
        return None

    def around(self, solve: Chain, parts: Parts) -> Chain:
        """Return the chain that solves questions, within one that verifies it."""
        return solve


@dataclass(frozen=True)
class GeneratedTests(Verifier):
    """Let a model write tests first; passing them makes an outcome `plausible`, and failing them means nothing.

    They run before anything else is asked; see `WriteTestsChain`.

    Attributes:
        model: Who writes them; None for the chain's model.
    """

    model: str | Model | None = None

    def __post_init__(self) -> None:
        _check_model(self, self.model)

    def check(self, parts: Parts) -> None:
        """Raise if tests cannot be run apart from the program."""
        from code_chains.executors import ProcessExecutor

        executor = parts.executor
        if isinstance(executor, ProcessExecutor) or not executor.runs_tests:
            because = f"{type(executor).__name__} does not isolate tests"
            remedy = "an executor that does, such as SandboxExecutor()"
            raise ConfigurationError("verify", self, remedy, because=because)

    def before(self, parts: Parts) -> Chain:
        """Return the chain that writes the tests, which `EvaluateChain` runs."""
        model = parts.resolve("GeneratedTests.model", self.model)
        return chains.WriteTestsChain(model=for_code(model), validate_tests=parts.validate)


@dataclass(frozen=True)
class Judge(Verifier):
    """Ask a model whether an output answers the question: `plausible` for yes, `failed` for no; see `JudgeChain`.

    Attributes:
        model: Who is asked; None for the chain's model.
    """

    model: str | Model | None = None

    def __post_init__(self) -> None:
        _check_model(self, self.model)

    def check(self, parts: Parts) -> None:
        """Raise if models must not see the data."""
        if parts.schema_only:
            because = "with schema_only a judge would see the data"
            raise ConfigurationError(
                "verify", self, "Data(schema_only=False), or no Judge()", because=because
            )

    def build(self, parts: Parts) -> Chain:
        """Return the chain that asks."""
        return chains.JudgeChain(model=parts.resolve("Judge.model", self.model))


@dataclass(frozen=True)
class Answerability(Verifier):
    """Ask a model whether the question states what its answer needs: a doubt if it does not; see `AnswerabilityChain`.

    Attributes:
        model: Who is asked; None for the chain's model.
        when: `"always"`, or `"auto"`, which each chain with `checks` has: where `local:1.5b` writes the programs, which
            computes with numbers of its own instead of saying so, without tools or a database.
    """

    model: str | Model | None = None
    when: Literal["always", "auto"] = "always"

    def __post_init__(self) -> None:
        _check_model(self, self.model)
        _check_when(self, self.when)

    def check(self, parts: Parts) -> None:
        """Raise if a question need not state what its answer needs."""
        if self.when == "always" and _has_sources(parts):
            because = "tools or a database may hold what a question lacks"
            raise ConfigurationError("verify", self, "no Answerability()", because=because)

    def build(self, parts: Parts) -> Chain | None:
        """Return the chain that asks; None where the model does not need it, or cannot tell."""
        if self.when == "auto" and (_has_sources(parts) or not _invents(parts)):
            return None
        return chains.AnswerabilityChain(model=parts.resolve("Answerability.model", self.model))


@dataclass(frozen=True)
class Agreement(Verifier):
    """Solve a question again, by further programs, until one outcome leads: then it is `plausible`; see `VerifyChain`.

    Attributes:
        model: Who writes these programs; None for the chain's model at a higher temperature.
        lead: Programs, the first included, by which an outcome must lead.
        when: `"always"`, or `"auto"` to leave it out where it has side effects or means nothing: not with tools that have
            effects, nor with `local:0.5b`, whose programs agree on wrong answers.
    """

    model: str | Model | None = None
    lead: int = 3
    when: Literal["always", "auto"] = "always"

    solves_again = True

    def __post_init__(self) -> None:
        _check_model(self, self.model)
        remedy = f"a whole number from 2 to {_MAX_LEAD}"
        check_int("Agreement.lead", self.lead, remedy, minimum=2, maximum=_MAX_LEAD)
        _check_when(self, self.when)

    def check(self, parts: Parts) -> None:
        """Raise if further programs would call tools with effects again."""
        if self.when == "always" and _has_effects(parts):
            remedy = 'Agreement(when="auto"), or tools that have metadata={"read_only": True}'
            because = "further programs would call the tools again"
            raise ConfigurationError("verify", self, remedy, because=because)

    def around(self, solve: Chain, parts: Parts) -> Chain:
        """Return a `VerifyChain` around the chain that solves questions."""
        verifier = parts.resolve("Agreement.model", self.model)
        weights = embedded(verifier)
        is_unreliable = weights is not None and not weights.can_verify
        if self.when == "auto" and (is_unreliable or _has_effects(parts)):
            return solve
        if is_unreliable and weights is not None:
            because = f"programs of {weights.name} agree on wrong answers"
            remedy = 'a larger model, e.g. Agreement("local:1.5b")'
            raise ConfigurationError("verify", self, remedy, because=because)
        from code_chains.chains.verify import ANOTHER_WAY

        write = parts.generate(verifier)
        instructions = "\n".join(filter(None, [write.instructions, ANOTHER_WAY]))
        another = write.model_copy(update={"instructions": instructions})
        # Twice as before, then in turn in another way.
        turns = [write, *[write, another] * (self.lead - 1)]
        return chains.VerifyChain(
            solve=solve,
            others=[parts.attempt(turn, asks_verifiers=False) for turn in turns],
            lead=self.lead,
            is_independent=verifier is not parts.model or can_be_sampled(parts.model),
            verifiers=parts.chains_of_verifiers(after=self),
        )


@dataclass(frozen=True)
class Calibrated(Verifier):
    """Say in each verdict what such verdicts were worth: "right in 43 of 51 such cases" (`verdict.worth`).

    Attributes:
        evaluation: What `evaluate` has returned for the same model and options, or the file that `code-chains eval --json
            FILE` has written.
    """

    evaluation: str | Path | Record

    def check(self, parts: Parts) -> None:
        """Raise if the evaluation is that of another model."""
        from code_chains.chains.calibrate import Calibration

        calibration = Calibration.of(self.evaluation)
        evaluated, model = calibration.model, parts.name_of(parts.given, parts.model)
        if evaluated not in ("", "local", model):
            because = f"it is an evaluation of {evaluated}, and the model is {model}"
            raise ConfigurationError("verify", self, "an evaluation of this model", because=because)

    def around(self, solve: Chain, parts: Parts) -> Chain:
        """Return the chain that adds it."""
        from code_chains.chains.calibrate import CalibrateChain, Calibration

        return CalibrateChain(solve=solve, calibration=Calibration.of(self.evaluation))


@dataclass(frozen=True)
class _Own(Verifier):
    """A chain or a function of the user's own."""

    chain: Chain

    def build(self, parts: Parts) -> Chain:
        return self.chain


def resolve_verifiers(verify: object) -> list[Verifier]:
    """Return the verifiers that `verify=` stands for: a list of values, chains to `verdict`, or functions of the state.

    Raises:
        ConfigurationError: One is none of these.
    """
    given = verify if isinstance(verify, Sequence) and not isinstance(verify, str) else [verify]
    return [_resolve_verifier(each) for each in given]


def with_defaults(verifiers: Sequence[Verifier]) -> list[Verifier]:
    """Return verifiers with those that each chain has."""
    of_each_chain = [Answerability(when="auto")]
    kinds = set(map(type, verifiers))
    return [*(verifier for verifier in of_each_chain if type(verifier) not in kinds), *verifiers]


def _resolve_verifier(verifier: object) -> Verifier:
    if isinstance(verifier, Verifier):
        return verifier
    if isinstance(verifier, Chain) and "verdict" in verifier.output_keys:
        return _Own(verifier)
    if callable(verifier) and not isinstance(verifier, type | Runnable):
        return _Own(_from_function(cast("Check", verifier)))
    named = "GeneratedTests(), Judge(), Answerability(), Agreement(), Calibrated(…)"
    remedy = f"a list of {named}, chains that add `verdict`, or functions of the state"
    raise ConfigurationError("verify", verifier, remedy)


def _from_function(check: Check) -> Chain:
    """Return a chain around a function from the state to a verdict, or to None if it cannot decide."""

    def decide(state: State) -> State:
        verdict: Any = check(state)
        if verdict is None:
            return {"verdict": UNCHECKED}
        if not isinstance(verdict, Verdict):
            raise ConfigurationError("verify", verdict, "functions that return a Verdict or None")
        return {"verdict": verdict}

    return StreamingTransformChain(
        name=getattr(check, "__name__", "verifier"),
        input_variables=["code", "output"],
        output_variables=["verdict"],
        transform=decide,
    )


def _check_model(verifier: Verifier, model: object) -> None:
    """Raise unless the model of a verifier is one, or None for the chain's own."""
    if not isinstance(model, str | Runnable | None):
        argument = f"{type(verifier).__name__}.model"
        raise ConfigurationError(argument, model, "the name of a model, or a chat model")


def _check_when(verifier: Verifier, when: object) -> None:
    if when not in ("always", "auto"):
        raise ConfigurationError(f"{type(verifier).__name__}.when", when, '"always" or "auto"')


def _invents(parts: Parts) -> bool:
    """Return whether the model invents what a question lacks, and can tell what that is if it is asked."""
    weights = embedded(parts.model)
    return weights is not None and weights.can_tell_missing and parts.sanity_checks


def _has_sources(parts: Parts) -> bool:
    return parts.tools is not None or parts.executor.language != "python"


def _has_effects(parts: Parts) -> bool:
    return parts.tools is not None and not parts.tools.is_read_only
