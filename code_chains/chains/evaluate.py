"""execution, (code, query, output, answer_type, tests, examples, generated_tests, files, variables) -> verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.replies.extraction import as_program
from code_chains.analysis.replies.syntax import top_level_names
from code_chains.analysis.work import is_brief
from code_chains.chains.base import Analyse, Chain, Config, Flow, RunFunction, State, StreamingChain
from code_chains.chains.execute import run_inputs
from code_chains.chains.ranks import UNCHECKED, Rank, ask_verifiers, rank_of, required
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.base import Executor
from code_chains.records import NOT_ANALYSED, Execution, Verdict
from code_chains.toolbox import Toolbox
from code_chains.verification.expectations import Expectations, expect, expectations_of
from code_chains.verification.expectations.given import UntestableError

if TYPE_CHECKING:
    from code_chains.chains.tested import Testing
    from code_chains.verification.expectations.examples import Example
    from code_chains.verification.values.answer_types import AnswerType


_OF_NOTHING = ("IndexError", "KeyError", "ValueError", "TypeError", "AttributeError", "ZeroDivisionError")
"""Errors of programs that go on with what was not found."""
_PASSED = ("verified", "plausible")
"""What tests say of a program that passes them; a broken test leaves it `unverified`."""
_MAX_COLUMNS = 6
_REJECTED = "The program ran; tests that a model wrote reject it, which may have misread the question:"
_UNTESTED = "The tests were not run, as they run the program again, and it called a tool that is not marked as read-only."


@dataclass
class Case:
    """An outcome, and what is said of it so far.

    Attributes:
        values: The state.
        config: The config of the run.
        expectations: Tests and examples of the question.
        verdict: What is said so far.
        is_doubted: Whether something speaks against it, which verifiers may dispel.
        is_settled: Whether nothing else is asked.
    """

    values: State
    config: Config
    expectations: Expectations
    verdict: Verdict = UNCHECKED
    is_doubted: bool = False
    is_settled: bool = False

    @property
    def execution(self) -> Execution:
        """The record of the run."""
        execution: Execution = self.values["execution"]
        return execution

    @property
    def query(self) -> str:
        """The question; empty if there is none."""
        return str(self.values.get("query") or "")

    def doubt(self, verdict: Verdict) -> None:
        """Say what speaks against the outcome."""
        self.verdict, self.is_doubted = verdict, True

    def settle(self, verdict: Verdict) -> None:
        """Say what holds, whatever others would say."""
        self.verdict, self.is_settled = verdict, True


class EvaluateChain(StreamingChain):
    """Decide whether an outcome answers the question. Adds `verdict`.

    A program that failed, or printed nothing and made no file, is not an answer (`failed`), unless it defines what the
    question asks for, such as a function. With an `answer_type`, a program without a value of that type, or with a number
    that has more decimals than the question asks for, is not an answer either. Otherwise:

    - If `tests` or `examples` are given, they decide, in a sandbox of their own that the program cannot
      reach: `verified` or `failed`.
    - If there are `generated_tests`, passing them makes the outcome `plausible`. Failing them means nothing,
      as the model that wrote them may have misread the question, too.
    - Otherwise the verifiers are asked in order, until one decides.
    - If none does, the outcome is `unverified`.

    A program, or a reply without one, that says `Not given: …` is no answer but a question back: `failed`, with what is
    missing in the `needs` of the verdict. In a conversation a reply without a program that begins with `Reply:` is
    `unverified`, and in the `reply` of the verdict: thanks, or what was said before.

    Of the optional keys, tests and examples need `code`, and verifiers what they read.

    Args:
        executor: Runs the tests; required for tests and examples only.
        verifiers: Chains to `verdict`, such as a `JudgeChain`; one that leaves the outcome `unverified` does not decide.
        tools: What the program may call while it is tested.
        words: Whether a reply in words may be an answer, `unverified`; see `verification.provenance.replies`.
        sanity_checks: Whether a program without tests must pass the checks of `verification.sanity`; those are for programs
            in Python.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> sandbox = SandboxExecutor()
        >>> code, examples = "def double(x): return x + x", [(2, 4), ("a", "aa")]
        >>> state = {"code": code, "execution": sandbox.run("1"), "examples": examples}
        >>> EvaluateChain(executor=sandbox).invoke(state)["verdict"].reason
        'The program gives what 2 examples expect.'
    """

    input_keys: ClassVar[list[str]] = ["execution"]
    optional_keys: ClassVar[list[str]] = [
        "code",
        "context",
        "history",
        "language",
        "previous_steps",
        "profiles",
        "query",
        "reply",
        "words",
        "failed_code",
        "translation",
        "output",
        "answer_type",
        "tests",
        "examples",
        "generated_tests",
        "stdin",
        "files",
        "variables",
        "session",
        "session_variables",
        "schema_only",
    ]
    output_keys: ClassVar[list[str]] = ["verdict"]

    name: str | None = "evaluate"
    executor: Executor | None = None
    verifiers: Sequence[Chain] = ()
    tools: Toolbox | None = None
    sanity_checks: bool = False
    words: bool = True

    def _flow(self, values: State, config: Config) -> Flow:
        inline = is_brief(str(values.get("tests") or ""))
        case = Case(values, config, (yield RunFunction(check_expectations, values, config, inline=inline)))
        for verify in _BUILT_IN:
            yield from verify(self, case)
            if case.is_settled:
                break
        yield {"verdict": case.verdict}

    # -- built-in verifiers, in the order of their ranks -----------------------------------------------------

    def _find_what_is_missing(self, case: Case) -> Flow:
        """Settle that a program or a reply says what is missing."""
        from code_chains.verification.provenance.needs import NOT_GIVEN

        if needs := (yield Analyse(_needs, case.values, case.config, otherwise=())):
            case.settle(Verdict("failed", "output", f"{NOT_GIVEN} {'; '.join(needs)}", needs))

    def _read_own_words(self, case: Case) -> Flow:
        """Settle that the model replied in words of its own."""
        from code_chains.verification.provenance.replies import OWN_WORDS, own_words

        if not self.words:
            return
        if not case.execution.ok and (
            reply := (yield Analyse(own_words, case.values, case.config, otherwise=""))
        ):
            case.settle(Verdict("unverified", "reply", OWN_WORDS, reply=reply))

    def _look_at_run(self, case: Case) -> Flow:
        """Say how the run ended, and whether its value has the type that is asked for."""
        case.verdict = _verdict_of_run(case.execution, is_tested=bool(case.expectations))
        if case.execution.ok and case.values.get("answer_type") is not None:
            case.verdict = yield RunFunction(_verdict_on_type, case.values, case.config)
        elif not case.verdict.ok and (
            (yield from _only_defines(case, case.query)) or (self.words and (yield from _defines_again(case)))
        ):
            reason = "The program defines what was asked for; nothing checked it."
            case.verdict = Verdict("unverified", "none", reason)

    def _test_what_was_defined(self, case: Case) -> Flow:
        """Settle by tests what a program had defined until it failed, or defines without showing anything."""
        expectations, verdict = case.expectations, case.verdict
        if case.execution.status == "error" and (expectations.are_calls or expectations.runs):
            # It may be right, and a program that lacked input may not lack it in an example.
            tested: Verdict = yield from self._test(expectations, case.values, case.config)
            case.settle(tested if tested.status in _PASSED or expectations.runs else verdict)
        elif not verdict.ok and verdict.by != "type" and (yield from _only_defines(case)):
            case.settle((yield from self._test_generated(case)))

    def _explain_failure(self, case: Case) -> Flow:
        """Settle that a program failed, with what it looked up in vain, if that may be why it found nothing."""
        if case.verdict.ok:
            return
        verdict, error = case.verdict, case.execution.error
        if self.sanity_checks and error is not None and error.type in _OF_NOTHING:
            reason: str = yield from self._lookups(case.values, "[]", case.config)
            verdict = replace(verdict, reason=f"{verdict.reason} {reason}".strip())
        case.settle(verdict)

    def _test_given(self, case: Case) -> Flow:
        """Settle by the tests and examples of the question."""
        if case.expectations:
            case.settle((yield from self._test(case.expectations, case.values, case.config)))

    @property
    def _language(self) -> str:
        return self.executor.language if self.executor else "python"

    def _check_sanity(self, case: Case) -> Flow:
        """Doubt a program that fails a sanity check; nobody agrees with what was not analysed."""
        from code_chains.verification.sanity import sanity_verdict

        if not self.sanity_checks:
            return
        if self._language == "sql":
            check = partial(sanity_verdict, code=str(case.values.get("code") or ""), language="sql")
            doubt = yield RunFunction(check, case.values, case.config)  # Reading SQL counts no steps.
        else:
            check = partial(sanity_verdict, code=as_program(str(case.values.get("code") or "")))
            doubt = yield Analyse(check, case.values, case.config, otherwise=NOT_ANALYSED)
        if doubt == NOT_ANALYSED:
            case.settle(doubt)
        elif doubt is not None:
            case.doubt(doubt)

    def _check_lookups(self, case: Case) -> Flow:
        """Doubt a program that looks up what stands in none of its files, which may be why else it is in doubt."""
        is_python = self._language == "python"
        if self.sanity_checks and is_python and (not case.is_doubted or case.verdict.by == "checks"):
            reason = yield from self._lookups(case.values, case.execution.output, case.config)
            others = case.verdict.reason if case.is_doubted else ""
            if reason:
                case.doubt(Verdict("failed", "checks", " ".join(filter(None, [reason, others]))))

    def _ask_verifiers(self, case: Case) -> Flow:
        """Ask the verifiers that were given: those that only doubt before generated tests may speak for an outcome."""
        doubting = [one for one in self.verifiers if rank_of(one) is Rank.DOUBT]
        others = [one for one in self.verifiers if rank_of(one) is not Rank.DOUBT]
        if case.is_doubted:
            case.verdict = yield from self._asked(self.verifiers, case)
            return
        case.verdict = yield from self._asked(doubting, case)
        if not case.verdict.is_doubt:
            case.verdict = yield from self._test_generated(case)
        if case.verdict.status == "unverified":
            case.verdict = yield from self._asked(others, case)

    def _asked(self, verifiers: Sequence[Chain], case: Case) -> Flow:
        return ask_verifiers(verifiers, {**case.values, "verdict": case.verdict}, case.config)

    def _name_columns(self, case: Case) -> Flow:
        """Say of what nothing has checked which columns it read."""
        if case.verdict == UNCHECKED:
            case.verdict = yield Analyse(_with_columns, case.values, case.config, otherwise=UNCHECKED)

    # -- tests, examples and lookups ---------------------------------------------------------------------------

    def _test(self, expectations: Expectations, values: State, config: Config) -> Flow:
        """Return the verdict of tests and examples."""
        from code_chains.chains.tested import testing, verdict_of_runs

        if values["execution"].has_effects:  # Tests run the program once more.
            return Verdict("unverified", "none", _UNTESTED)
        language = self.executor.language if self.executor else "python"
        output, code = values["execution"].output, as_program(required(values, "code", "a test"), language)
        query = str(values.get("query") or "")
        build = partial(expectations.program, code, query=query, output=output)
        state = {**values, "code": code}
        verdict = Verdict("verified", "tests", "")
        if expectations.tests.body or expectations.calls:
            try:
                verdict = yield from self._run_each(testing(expectations), build, state, config)
            except UntestableError as error:
                return Verdict("failed", "tests", str(error))
        if expectations.runs and verdict.status == "verified":
            runs = yield RunFunction(
                self._run_examples, (state, expectations.runs), config, self._arun_examples
            )
            verdict = verdict_of_runs(verdict, runs, expectations)
        return verdict

    def _run_each(self, steps: Testing, build: Callable[..., str], state: State, config: Config) -> Flow:
        """Run each harness that a test needs, and return the verdict."""
        skipped = next(steps)
        while True:
            harness = yield Analyse(lambda left_out: build(skipped=left_out), skipped, config)
            if harness is None:
                return replace(NOT_ANALYSED, by="tests")
            state = {**state, "tests": harness}
            runs = yield RunFunction(self._run_tests, state, config, self._arun_tests)
            try:
                skipped = steps.send(runs)
            except StopIteration as end:
                return end.value.verdict

    def _lookups(self, values: State, output: str, config: Config) -> Flow:
        """Return which texts a program looks up in vain; empty if that is not known to matter for its output."""
        from code_chains.verification.sanity.lookups import ignores_case, looked_up, missing_texts, read_found

        code = as_program(str(values.get("code") or ""))
        texts, whole_cells = yield Analyse(
            lambda source: (looked_up(source), looked_up(source, whole=True)),
            code,
            config,
            otherwise=((), ()),
        )
        if not texts or not values.get("files") or self.executor is None or values.get("session") is not None:
            return ""
        state = {
            "files": values["files"],
            "texts": texts,
            "whole_cells": whole_cells,
            "any_case": ignores_case(values["code"]),
        }
        probe: Execution = yield RunFunction(self._search, state, config, self._asearch)
        return missing_texts(read_found(probe.output if probe.ok else ""), output)

    def _search(self, state: State) -> Execution:
        from code_chains.verification.sanity.lookups import PROBE

        return self._test_executor().run(PROBE, **_probe_inputs(state))

    async def _asearch(self, state: State) -> Execution:
        from code_chains.verification.sanity.lookups import PROBE

        return await self._test_executor().arun(PROBE, **_probe_inputs(state))

    def _test_generated(self, case: Case) -> Flow:
        """Return `plausible` if the program passes generated tests; else that it fails them, which decides nothing."""
        generated, verdict = case.values.get("generated_tests"), case.verdict
        if not generated or case.values.get("session") is not None:
            return verdict
        expected = yield RunFunction(expect, generated, case.config, inline=is_brief(generated))
        passed: Verdict = yield from self._test(expected, case.values, case.config)
        if passed.status in _PASSED:
            verdict = Verdict("plausible", "tests", "The program passes tests that a model wrote.")
        elif passed.status == "failed" and verdict == UNCHECKED:
            verdict = replace(verdict, reason=f"{_REJECTED} {passed.reason}")
        return verdict

    def _test_executor(self) -> Executor:
        if self.executor is None:
            raise ConfigurationError("executor", None, "an Executor to EvaluateChain, which runs the tests")
        return self.executor

    def _run_tests(self, state: State) -> tuple[Execution, Execution]:
        inputs = run_inputs(state, self.tools)
        return self._test_executor().run_tests(state["code"], state["tests"], **inputs)

    def _run_examples(self, given: tuple[State, Sequence[Example]]) -> list[Execution]:
        state, examples = given
        inputs, executor = run_inputs(state, self.tools), self._test_executor()
        return [
            executor.run(state["code"], **{**inputs, "stdin": example.stdin or ""}) for example in examples
        ]

    async def _arun_examples(self, given: tuple[State, Sequence[Example]]) -> list[Execution]:
        state, examples = given
        inputs, executor = run_inputs(state, self.tools), self._test_executor()
        return [
            await executor.arun(state["code"], **{**inputs, "stdin": example.stdin or ""})
            for example in examples
        ]

    async def _arun_tests(self, state: State) -> tuple[Execution, Execution]:
        inputs = run_inputs(state, self.tools)
        return await self._test_executor().arun_tests(state["code"], state["tests"], **inputs)


def _probe_inputs(state: State) -> State:
    names = list(state["files"])
    variables = {"files": names} | {name: state[name] for name in ("texts", "whole_cells", "any_case")}
    return {"files": state["files"], "variables": variables}


def _needs(values: State) -> tuple[str, ...]:
    """Return what the program or the model says is missing."""
    from code_chains.verification.provenance.needs import missing_inputs

    execution, code = values["execution"], str(values.get("code") or "")
    printed, error = f"{execution.output}\n{execution.stderr}", execution.error
    output = printed if execution.ok else ""
    if error and execution.status != "refused":  # That quotes the reply, which is read itself.
        # A program that says what is missing may leave then, or ask for it.
        output = printed if error.type in ("SystemExit", "EOFError") else error.message
    query, reply = str(values.get("query") or ""), str(values.get("reply") or "")
    return missing_inputs(query=query, output=output, code=code, reply=reply)


def check_expectations(values: State) -> Expectations:
    """Return the validated tests and examples of a question.

    Raises:
        InputError: They are invalid, or are given together with a session.
    """
    expectations = expectations_of(values)
    if expectations and values.get("session") is not None:
        raise InputError(
            "Tests run a program alone, without the session it was written for. Leave tests or session out."
        )
    return expectations


def _verdict_of_run(execution: Execution, *, is_tested: bool) -> Verdict:
    if not execution.ok:
        return Verdict("failed", "none", execution.summary)
    if not is_tested and not execution.output.strip() and not execution.artifacts:
        return Verdict("failed", "none", "The program ran but printed nothing.")
    return UNCHECKED


def _verdict_on_type(values: State) -> Verdict:
    """Return the verdict on the type and the rounding of the value."""
    from code_chains.chains.answer_value import answer_value
    from code_chains.verification.values.answer_types import AnswerTypeError
    from code_chains.verification.values.rounding import rounding_problem

    answer_type: AnswerType = values["answer_type"]
    try:
        value = answer_value(values["execution"], str(values.get("code") or ""), answer_type)
    except AnswerTypeError as error:
        return Verdict("failed", "type", f"The program has no value of the type {answer_type}: {error}.")
    if problem := rounding_problem(str(values.get("query") or ""), value):
        return Verdict("failed", "type", f"The value is not rounded: {problem}.")
    return UNCHECKED


def _with_columns(values: State) -> Verdict:
    """Add which columns were read to the verdict on what nothing has checked: it may be another one than was asked for."""
    from code_chains.verification.provenance import columns_read, shown_of

    shown = shown_of(values.get("profiles"))
    columns = columns_read(as_program(str(values.get("code") or "")), shown) if shown else []
    if not columns:
        return UNCHECKED
    read = ", ".join(f"`{name}`" for name in columns[:_MAX_COLUMNS])
    return replace(UNCHECKED, reason=f"{UNCHECKED.reason} It read: {read}.")


def _only_defines(case: Case, query: str = "") -> Flow:
    """Return whether a run showed nothing because the program only defines what a question asks for."""
    if not case.execution.ok or case.execution.output.strip():
        return False
    check = partial(defines_what_is_asked, query=query)
    return (
        yield Analyse(check, as_program(str(case.values.get("code") or "")), case.config, otherwise=False)
    )


def _defines_again(case: Case) -> Flow:
    """Return whether a program only defines what the one before it did: so it is what the model takes the question for."""
    failed = str(case.values.get("failed_code") or "")
    if not failed or not (yield from _only_defines(case)):
        return False
    names = partial(top_level_names, definitions=True)
    code = as_program(str(case.values.get("code") or ""))
    defined = yield Analyse(names, code, case.config, otherwise=())
    before = yield Analyse(names, as_program(failed), case.config, otherwise=())
    return bool(defined) and set(defined) == set(before)


_BUILT_IN: tuple[Callable[[EvaluateChain, Case], Flow], ...] = (
    EvaluateChain._find_what_is_missing,
    EvaluateChain._read_own_words,
    EvaluateChain._look_at_run,
    EvaluateChain._test_what_was_defined,
    EvaluateChain._explain_failure,
    EvaluateChain._test_given,
    EvaluateChain._check_sanity,
    EvaluateChain._check_lookups,
    EvaluateChain._ask_verifiers,
    EvaluateChain._name_columns,
)
"""Verifiers of each outcome, in the order of their ranks: each changes what is said, or settles it."""
