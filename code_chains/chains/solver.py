"""The chain that solves a question: attempts, samples, repair, escalation and steps, as far as they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.chains.attempt import OUTCOME_KEYS, AttemptChain
from code_chains.chains.base import Chain
from code_chains.chains.escalate import EscalateChain
from code_chains.chains.evaluate import EvaluateChain
from code_chains.chains.execute import ExecuteChain
from code_chains.chains.generate import GenerateChain
from code_chains.chains.iterate import IterateChain
from code_chains.chains.judge import JudgeChain
from code_chains.chains.plan import PlanChain
from code_chains.chains.repair import OnFailedTests, RepairChain
from code_chains.chains.sample import SampleChain
from code_chains.chains.steps import StepsChain
from code_chains.chains.validate import ValidateChain
from code_chains.chains.verify import VerifyChain
from code_chains.errors import ConfigurationError
from code_chains.executors.base import Executor
from code_chains.toolbox import Toolbox

__all__ = ["Iterate", "Plan", "create_solver"]

Plan = bool | Literal["auto"]
Iterate = bool | Literal["auto"]


def create_solver(
    generate: Mapping[str, GenerateChain],
    model: Runnable[LanguageModelInput, Any],
    executor: Executor,
    validate: ValidateChain,
    *,
    max_attempts: int,
    samples: int,
    judge: bool | Runnable[LanguageModelInput, Any],
    plan: Plan,
    tools: Toolbox | None = None,
    sanity_checks: bool = False,
    repeat_effects: bool = False,
    write_cells: Mapping[str, GenerateChain] | None = None,
    iterate: Iterate = False,
    max_iterations: int = 8,
    vision: bool = False,
    write_again: Sequence[GenerateChain] = (),
    is_independent: bool = True,
    restart_on_failed_tests: Collection[str] = (),
) -> Chain:
    """Create the chain that writes, runs and evaluates programs until one succeeds.

    Args:
        generate: The chains that write programs, by the names of their models; the others are for failed verdicts.
        model: What plans, and judges if `judge` is True.
        executor: Where programs run.
        validate: The static checks.
        max_attempts: Maximum number of programs of each model.
        samples: Number of programs per attempt.
        judge: Whether a model, this one or another, judges outcomes that no test verifies.
        plan: Whether tasks are solved in steps.
        tools: What programs may call.
        sanity_checks: Whether outcomes that no test verifies must pass sanity checks; see `EvaluateChain`.
        repeat_effects: Whether there is another attempt after a program that called a tool with effects, and failed.
        write_cells: The chains that write cells, by the names of their models; required for `iterate`.
        iterate: Whether a model writes one cell after the other and sees what each shows.
        max_iterations: Maximum number of cells.
        vision: Whether models are shown the figures of their cells.
        write_again: Chains that write programs in other ways; if there are any, outcomes that nothing else checks are
            checked by these.
        is_independent: See `VerifyChain`.
        restart_on_failed_tests: Names of the models that do not repair such programs; see `RepairChain`.

    Raises:
        ConfigurationError: `judge` is neither a truth value nor a model.
    """
    if not isinstance(judge, bool | Runnable):
        raise ConfigurationError("judge", judge, "True, False or a chat model")
    judge_chain = None if judge is False else JudgeChain(model=model if judge is True else judge)

    def make_attempt(write: GenerateChain) -> AttemptChain:
        evaluate = EvaluateChain(
            executor=executor,
            judge=judge_chain if samples == 1 else None,
            tools=tools,
            sanity_checks=sanity_checks,
        )
        return AttemptChain(
            chains=[write, validate, ExecuteChain(executor, tools=tools), evaluate],
            input_variables=["query"],
            output_variables=list(OUTCOME_KEYS),
            autofix=executor.language == "python",
        )

    solvers: list[tuple[str, Chain]] = []
    for name, write in generate.items():
        attempt: Chain = make_attempt(write)
        if samples > 1:
            attempt = SampleChain(attempt=attempt, samples=samples, judge=judge_chain)
        on_failed_tests: OnFailedTests = "restart" if name in restart_on_failed_tests else "repair"
        solver: Chain = RepairChain(
            attempt=attempt,
            max_attempts=max_attempts,
            on_failed_tests=on_failed_tests,
            repeat_effects=repeat_effects,
        )
        if iterate:
            solver = IterateChain(
                write=(write_cells or generate)[name],
                validate_cell=validate,
                execute=ExecuteChain(executor, tools=tools),
                evaluate=EvaluateChain(
                    executor=executor, judge=judge_chain, tools=tools, sanity_checks=sanity_checks
                ),
                open_session=executor.session,
                otherwise=solver if iterate == "auto" else None,
                when="auto" if iterate == "auto" else "always",
                max_iterations=max_iterations,
                vision=vision,
                repeat_effects=repeat_effects,
            )
        solvers.append((name, solver))
    solve: Chain = solvers[0][1] if len(solvers) == 1 else EscalateChain(solvers)
    if write_again:
        others = [make_attempt(write) for write in write_again]
        solve = VerifyChain(solve=solve, others=others, is_independent=is_independent)
    if not plan:
        return solve
    return StepsChain(
        solve=solve,
        plan=PlanChain(model=model),
        open_session=executor.session,
        when="always" if plan is True else "auto",
        evaluate=EvaluateChain(executor=executor, tools=tools),
    )
