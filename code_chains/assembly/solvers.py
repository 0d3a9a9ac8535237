"""How questions are solved: the values of `solve=`, which build the chain that writes, runs and evaluates programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from langchain_core.runnables import Runnable

from code_chains import chains
from code_chains.assembly.parts import Model, Parts, accepts_images, restarts_on_failed_tests
from code_chains.chains.base import Chain
from code_chains.errors import ConfigurationError, check_int
from code_chains.models.sampling import can_be_sampled

When = Literal["always", "auto"]


class Solver(ABC):
    """How a question is solved. A solver of your own implements `build`."""

    def check(self, parts: Parts) -> None:  # noqa: B027 - Most need nothing.
        """Raise if the parts of a chain do not allow it, before a model is loaded.

        Raises:
            ConfigurationError: They do not; the message names the remedy.
        """

    def with_attempts(self, attempts: int) -> Solver:
        """Return this solver with another maximum number of attempts.

        Raises:
            ConfigurationError: It has none.
        """
        because = f"{type(self).__name__} makes no attempts"
        raise ConfigurationError(
            "max_attempts", attempts, "it where solve=Repair(…) is used", because=because
        )

    @abstractmethod
    def build(self, parts: Parts) -> Chain:
        """Return the chain that makes attempts, which adds what a `RepairChain` adds."""

    def build_verified(self, parts: Parts) -> Chain:
        """Return the chain, with the verifiers that solve a question again around it."""
        return parts.verified(self.build(parts))


@dataclass(frozen=True)
class Repair(Solver):
    """Write a program, and repair it with what went wrong, up to a number of attempts; see `RepairChain`.

    Attributes:
        attempts: Maximum number of attempts of a model, one after the other.
        samples: Number of programs per attempt, of whose outcomes the most common one is selected; see `SampleChain`.
        repeat_limits: Whether there is another attempt after a program that reached the limit of time or of output.
    """

    attempts: int = 3
    samples: int = 1
    repeat_limits: bool = True

    def __post_init__(self) -> None:
        for name in ("attempts", "samples"):
            check_int(f"Repair.{name}", getattr(self, name), "a whole number, at least 1", minimum=1)

    def with_attempts(self, attempts: int) -> Repair:
        """Return this solver with another maximum number of attempts."""
        check_int("max_attempts", attempts, "a whole number, at least 1", minimum=1)
        return replace(self, attempts=attempts)

    def check(self, parts: Parts) -> None:
        """Raise if several programs would call tools with effects."""
        if self.samples > 1 and parts.tools is not None and not parts.tools.is_read_only:
            remedy = 'samples=1, or tools that have metadata={"read_only": True}'
            because = "each sample would call the tools"
            raise ConfigurationError("Repair.samples", self.samples, remedy, because=because)

    def build(self, parts: Parts) -> Chain:
        """Return a `RepairChain` around an attempt, or around samples of it."""
        attempt: Chain = parts.attempt(parts.generate(parts.model), asks_verifiers=self.samples == 1)
        if self.samples > 1:
            verifiers = parts.chains_of_verifiers()
            attempt = chains.SampleChain(
                attempt=attempt,
                samples=self.samples,
                verifiers=verifiers,
                is_independent=can_be_sampled(parts.model),
            )
        return chains.RepairChain(
            attempt=attempt,
            max_attempts=self.attempts,
            on_failed_tests="restart" if restarts_on_failed_tests(parts.model) else "repair",
            repeat_effects=parts.repeats_effects,
            repeat_limits=self.repeat_limits,
        )


@dataclass(frozen=True)
class Iterate(Solver):
    """Look before computing: write one cell after the other, see what each shows, and declare the answer.

    See `IterateChain`. It needs an executor with sessions.

    Attributes:
        cells: Maximum number of cells.
        vision: Whether the model is shown the figures of its cells; None if its profile says that it accepts images.
        when: `"always"`, or `"auto"` for questions with files or tables, and for open-ended ones.
        otherwise: What solves the other questions if `when` is `"auto"`.
    """

    cells: int = 8
    vision: bool | None = None
    when: When = "always"
    otherwise: Repair = Repair()

    def __post_init__(self) -> None:
        check_int("Iterate.cells", self.cells, "a whole number, at least 1", minimum=1)
        _check_when("Iterate", self.when)
        if not isinstance(self.otherwise, Repair):
            raise ConfigurationError("Iterate.otherwise", self.otherwise, "a Repair, e.g. Repair(5)")

    def with_attempts(self, attempts: int) -> Solver:
        """Return this solver with other attempts at the questions that it does not look at cell by cell."""
        if self.when == "always":
            return super().with_attempts(attempts)
        return replace(self, otherwise=self.otherwise.with_attempts(attempts))

    def check(self, parts: Parts) -> None:
        """Raise if the model must not see what cells show, or cells would share no state."""
        self.otherwise.check(parts)
        if parts.schema_only:
            remedy = "Repair() or Data(schema_only=False)"
            raise ConfigurationError("solve", self, remedy, because="the model sees what its cells show")
        if self.when == "always":
            _check_has_sessions(self, parts)

    def build(self, parts: Parts) -> Chain:
        """Return an `IterateChain`; without sessions the chain of `otherwise`."""
        otherwise = self.otherwise.build(parts)
        if not parts.executor.has_sessions:
            return otherwise
        return chains.IterateChain(
            write=parts.write_cell(parts.model),
            validate_cell=parts.validate,
            execute=parts.execute(),
            evaluate=parts.evaluate(),
            open_session=parts.executor.session,
            otherwise=otherwise if self.when == "auto" else None,
            when=self.when,
            max_iterations=self.cells,
            vision=accepts_images(parts.model) if self.vision is None else self.vision,
            repeat_effects=parts.repeats_effects,
        )


@dataclass(frozen=True)
class Escalate(Solver):
    """Let further models try while the verdict is `failed`, from the cheapest to the strongest; see `EscalateChain`.

    Exceptions of a model are not among the reasons; for those LangChain has `with_fallbacks`.

    Attributes:
        models: Names of models, or chat models, after the chain's own.
        solver: How each of them solves a question, within the same budget.
    """

    models: Sequence[str | Model]
    solver: Solver = Repair()

    def __post_init__(self) -> None:
        models: object = self.models
        is_list = isinstance(models, Sequence) and not isinstance(models, str)
        if not is_list or not all(isinstance(model, str | Runnable) for model in self.models):
            raise ConfigurationError(
                "Escalate.models", models, 'a list of models, e.g. ["openai:gpt-5-mini"]'
            )
        if not isinstance(self.solver, Solver) or isinstance(self.solver, Plan | Escalate):
            raise ConfigurationError("Escalate.solver", self.solver, "a Repair or an Iterate")

    def with_attempts(self, attempts: int) -> Escalate:
        """Return this solver with another maximum number of attempts of each model."""
        return replace(self, solver=self.solver.with_attempts(attempts))

    def check(self, parts: Parts) -> None:
        """Raise if its solver cannot work."""
        self.solver.check(parts)

    def build(self, parts: Parts) -> Chain:
        """Return an `EscalateChain` of the chain's model and the further ones."""
        solvers = [(next(iter(parts.models)), self.solver.build(parts))]
        for given in self.models:
            model = parts.resolve("Escalate.models", given)
            name = parts.name_model(given, model)
            solvers.append((name, self.solver.build(replace(parts, given=model))))
        return chains.EscalateChain(solvers) if len(solvers) > 1 else solvers[0][1]


@dataclass(frozen=True)
class Plan(Solver):
    """Solve tasks in steps, in one session; see `PlanChain` and `StepsChain`. It needs an executor with sessions.

    Attributes:
        solver: How each step is solved.
        when: `"always"` if the model decides whether a task needs steps, or `"auto"` if the task describes a sequence of
            actions.
    """

    solver: Solver = Repair()
    when: When = "always"

    def __post_init__(self) -> None:
        _check_when("Plan", self.when)
        if not isinstance(self.solver, Solver) or isinstance(self.solver, Plan):
            raise ConfigurationError("Plan.solver", self.solver, "a Repair, an Iterate or an Escalate")

    def with_attempts(self, attempts: int) -> Plan:
        """Return this solver with another maximum number of attempts at each step."""
        return replace(self, solver=self.solver.with_attempts(attempts))

    def check(self, parts: Parts) -> None:
        """Raise if steps would share no state."""
        self.solver.check(parts)
        if self.when == "always":
            _check_has_sessions(self, parts)

    def build(self, parts: Parts) -> Chain:
        """Return a `StepsChain`; without sessions the chain of its solver."""
        solve = self.solver.build_verified(parts)
        if not parts.executor.has_sessions:
            return solve
        return chains.StepsChain(
            solve=solve,
            plan=chains.PlanChain(model=parts.model),
            open_session=parts.executor.session,
            when=self.when,
            evaluate=parts.evaluate(asks_verifiers=False).model_copy(update={"sanity_checks": False}),
        )

    def build_verified(self, parts: Parts) -> Chain:
        """Return the chain, in which each step is verified."""
        return self.build(parts)


@dataclass(frozen=True)
class _Own(Solver):
    """A chain of the user's own, which solves questions."""

    chain: Chain

    def build(self, parts: Parts) -> Chain:
        return self.chain


def resolve_solver(solve: object) -> Solver:
    """Return the solver that `solve=` stands for.

    Raises:
        ConfigurationError: It is none.
    """
    from code_chains.chains.attempt import OUTCOME_KEYS

    if isinstance(solve, Solver):
        return solve
    if isinstance(solve, Chain):
        needed = (*OUTCOME_KEYS, "attempts", "stop_reason")
        if missing := [key for key in needed if key not in solve.output_keys]:
            raise ConfigurationError(
                "solve", solve.get_name(), f"a chain that also adds {', '.join(missing)}"
            )
        return _Own(solve)
    remedy = "Repair(3), Iterate(), Plan(), Escalate([…]), or a chain that adds what a RepairChain adds"
    raise ConfigurationError("solve", solve, remedy)


def _check_when(kind: str, when: object) -> None:
    if when not in ("always", "auto"):
        raise ConfigurationError(f"{kind}.when", when, '"always" or "auto"')


def _check_has_sessions(solver: Solver, parts: Parts) -> None:
    if not parts.executor.has_sessions:
        because = f"{type(parts.executor).__name__} does not open sessions"
        remedy = 'an executor that does, such as SandboxExecutor(), or when="auto"'
        raise ConfigurationError("solve", solver, remedy, because=because)
