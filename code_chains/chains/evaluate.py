"""execution, (code, query, output, tests, examples, generated_tests, files, variables) -> verdict."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.chains.base import Call, Config, Do, Piece, Program, State
from code_chains.chains.judge import JudgeChain
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.base import Executor
from code_chains.expectations import Expectations, UntestableError, expect
from code_chains.state import ErrorReport, Execution, Verdict

__all__ = ["EvaluateChain", "expectations"]


class EvaluateChain(Piece):
    """Says whether an outcome is an answer. Adds `verdict`.

    A program that failed, or whose outcome nobody would see, is no answer (`failed`). Of one that ran and said something:

    - `tests` or `examples` were given: they decide, in a box of their own that the program cannot reach; `verified` or
      `failed`.
    - `generated_tests` are there: passing them makes it `plausible`. The model that wrote them may have misread the
      question, too, so that failing them says nothing.
    - there is a judge: `plausible` or `failed`.
    - otherwise it is `unverified`.

    Args:
        executor: Where tests run; needed for tests and examples alone.
        judge: A model, or a chain from `query`, `code` and `output` to `verdict`.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> box = SandboxExecutor()
        >>> state = {"code": "def double(x): return x + x", "execution": box.run("1"), "examples": [(2, 4), ("a", "aa")]}
        >>> EvaluateChain(executor=box).invoke(state)["verdict"].reason
        'The program gives what 2 examples expect.'
    """

    name: str | None = "evaluate"
    executor: Executor | None = None
    judge: Piece | None = None

    def __init__(
        self,
        *,
        executor: Executor | None = None,
        judge: Runnable[LanguageModelInput, Any] | Piece | None = None,
        **kwargs: Any,
    ) -> None:
        asked = judge if judge is None or isinstance(judge, Piece) else JudgeChain(model=judge)
        super().__init__(**{"executor": executor, "judge": asked, **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It judges a run."""
        return ["execution"]

    @property
    def optional_keys(self) -> list[str]:
        """It tests the program, or shows it to a judge."""
        return ["code", "query", "output", "tests", "examples", "generated_tests", "files", "variables", "session"]

    @property
    def output_keys(self) -> list[str]:
        """It adds its verdict."""
        return ["verdict"]

    def _program(self, values: State, config: Config) -> Program:
        execution: Execution = values["execution"]
        expected = expectations(values)
        verdict = _first_look(execution, tested=bool(expected))
        if verdict.ok and expected:
            verdict = yield from self._test(expected, values, config)
        elif verdict.ok:
            verdict = yield from self._believe(verdict, values, config)
        yield {"verdict": verdict}

    def _test(self, expected: Expectations, values: State, config: Config) -> Program:
        """The verdict of tests and examples."""
        output = values["execution"].output
        try:
            program = expected.program(values["code"], query=str(values.get("query") or ""), output=output)
        except UntestableError as error:
            return Verdict("failed", "tests", str(error))
        ran, tested = yield Do(self._examine, {**values, "tests": program}, config, self._aexamine)
        return _tested(ran, tested, expected)

    def _believe(self, verdict: Verdict, values: State, config: Config) -> Program:
        """What is believed of a program that nothing can verify."""
        written = values.get("generated_tests")
        if written and values.get("session") is None:
            found = yield from self._test(expect(written), values, config)
            if found.ok:
                verdict = Verdict("plausible", "tests", "The program passes tests that a model wrote.")
        if self.judge is not None and verdict.status == "unverified":
            state = {"query": values["query"], "code": values["code"], "output": _shown(values["execution"])}
            verdict = (yield Call(self.judge, state, config))["verdict"]
        return verdict

    def _place(self) -> Executor:
        if self.executor is None:
            raise ConfigurationError("executor", None, "an Executor to EvaluateChain: tests need a place to run")
        return self.executor

    def _examine(self, state: State) -> tuple[Execution, Execution]:
        given = {"files": state.get("files"), "variables": state.get("variables")}
        return self._place().examine(state["code"], state["tests"], **given)

    async def _aexamine(self, state: State) -> tuple[Execution, Execution]:
        given = {"files": state.get("files"), "variables": state.get("variables")}
        return await self._place().aexamine(state["code"], state["tests"], **given)


def expectations(values: State) -> Expectations:
    """The tests and examples of a question, checked.

    Raises:
        InputError: They cannot be used, or not together with a session.
    """
    expected = expect(values.get("tests"), values.get("examples"))
    if expected and values.get("session") is not None:
        raise InputError(
            "Tests run a program alone, without the session it was written for. Leave tests or session out."
        )
    return expected


def _first_look(execution: Execution, *, tested: bool) -> Verdict:
    if not execution.ok:
        return Verdict("failed", "none", execution.summary)
    if not tested and not execution.output.strip() and not execution.artifacts:
        return Verdict("failed", "none", "The program ran but printed nothing.")
    return Verdict("unverified", "none", "The program ran; nothing checked its output.")


def _tested(ran: Execution, tested: Execution, expected: Expectations) -> Verdict:
    if not ran.ok:
        return Verdict("failed", "tests", f"While it was tested: {ran.summary}")
    if not tested.ok:
        return Verdict("failed", "tests", _complaint(tested.error) if tested.error else tested.summary)
    if ran.isolation is None or ran.isolation.level == "none":
        return Verdict(
            "plausible",
            "tests",
            "The tests hold, but nothing kept the program from them in a place that isolates nothing.",
        )
    what = "tests" if expected.tests.body else "examples"
    several = f"{expected.count} {what}" if expected.count > 1 else f"the {what[:-1]}"
    return Verdict(
        "verified", "tests", f"The program gives what {several} {'expect' if expected.count > 1 else 'expects'}."
    )


def _complaint(error: ErrorReport) -> str:
    """What failed, with the place in the program where that is known."""
    if error.type == "AssertionError":
        return f"{error.message or 'An assertion does not hold'}."
    where = error.traceback.rpartition(error.message)[2].strip() if error.message else ""
    return f"A test ended with {error}{f', {where}' if where else ''}."


def _shown(execution: Execution) -> str:
    """What a judge sees of an outcome."""
    made = "\n".join(f"(It made {artifact.name}, {artifact.media_type})" for artifact in execution.artifacts)
    return "\n".join(part for part in (execution.output, made) if part)
