"""execution, (code, query, output, answer_type, tests, examples, generated_tests, files, variables) -> verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.replies.extraction import as_program
from code_chains.chains.answer_value import answer_value
from code_chains.chains.base import Chain, Config, Flow, Invoke, RunFunction, State, StreamingChain
from code_chains.chains.execute import run_inputs
from code_chains.chains.tested import verdict_of_runs, verdict_of_tests
from code_chains.errors import BudgetError, ConfigurationError, InputError
from code_chains.executors.base import Executor
from code_chains.state import Execution, Verdict
from code_chains.toolbox import Toolbox
from code_chains.verification.expectations import Expectations, expect, expectations_of
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.harness import UntestableError
from code_chains.verification.provenance import columns_read, shown_of
from code_chains.verification.provenance.needs import NOT_GIVEN, missing_inputs
from code_chains.verification.provenance.replies import OWN_WORDS, own_words
from code_chains.verification.sanity import sanity_verdict
from code_chains.verification.sanity.lookups import PROBE, ignores_case, looked_up, missing_texts, read_found
from code_chains.verification.values.answer_types import AnswerType, AnswerTypeError
from code_chains.verification.values.rounding import rounding_problem

UNCHECKED = Verdict("unverified", "none", "The program ran; nothing checked its output.")
"""What is said of a program if nothing else can be."""

_OF_NOTHING = ("IndexError", "KeyError", "ValueError", "TypeError", "AttributeError", "ZeroDivisionError")
"""Errors of programs that go on with what was not found."""
_PASSED = ("verified", "plausible")
"""What tests say of a program that passes them; a broken test leaves it `unverified`."""
_MAX_COLUMNS = 6
_MAX_INLINE_CHARS = 4000
"""Characters of question and program up to which sanity checks are faster than starting a thread."""
_UNTESTED = "The tests were not run, as they run the program again, and it called a tool that is not marked as read-only."


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

    def _flow(self, values: State, config: Config) -> Flow:
        execution: Execution = values["execution"]
        expectations = check_expectations(values)
        if needs := _needs(values):
            yield {"verdict": Verdict("failed", "output", f"{NOT_GIVEN} {'; '.join(needs)}", needs)}
            return
        if not execution.ok and (reply := own_words(values)):
            yield {"verdict": Verdict("unverified", "reply", OWN_WORDS, reply=reply)}
            return
        verdict = _verdict_of_run(execution, is_tested=bool(expectations))
        if execution.ok and values.get("answer_type") is not None:
            verdict = yield RunFunction(_verdict_on_type, values, config)
        elif not verdict.ok and _only_defines(values, str(values.get("query") or "")):
            verdict = Verdict(
                "unverified", "none", "The program defines what was asked for; nothing checked it."
            )
        verdict = yield from self._decide(verdict, expectations, values, config)
        yield {"verdict": _with_columns(verdict, values)}

    def _decide(self, verdict: Verdict, expectations: Expectations, values: State, config: Config) -> Flow:
        """Return the verdict of tests, or else of whatever else may know; that of the run if nothing does."""
        if values["execution"].status == "error" and (expectations.are_calls or expectations.runs):
            # What it had defined until then may be right, and a program that lacked input may not lack it in an example.
            tested: Verdict = yield from self._test(expectations, values, config)
            return tested if tested.status in _PASSED or expectations.runs else verdict
        if not verdict.ok and verdict.by != "type" and _only_defines(values, ""):
            return (yield from self._test_generated(verdict, values, config))
        if not verdict.ok:
            return (yield from self._with_lookups(verdict, values, config))
        if expectations:
            return (yield from self._test(expectations, values, config))
        doubt = None
        if self.sanity_checks:
            doubt = yield from self._check_sanity(values, config)
        if self.sanity_checks and (doubt is None or doubt.by == "checks"):
            doubt = (yield from self._check_lookups(values, doubt, config)) or doubt
        if doubt is None:
            return (yield from self._assess(verdict, values, config))
        return (yield from ask_verifiers(self.verifiers, {**values, "verdict": doubt}, config))

    def _test(self, expectations: Expectations, values: State, config: Config) -> Flow:
        """Return the verdict of tests and examples."""
        if values["execution"].has_effects:  # Tests run the program once more.
            return Verdict("unverified", "none", _UNTESTED)
        language = self.executor.language if self.executor else "python"
        output, code = values["execution"].output, as_program(_required(values, "code", "a test"), language)
        try:
            harness = expectations.program(code, query=str(values.get("query") or ""), output=output)
        except UntestableError as error:
            return Verdict("failed", "tests", str(error))
        state = {**values, "code": code, "tests": harness}
        verdict = Verdict("verified", "tests", "")
        if expectations.tests.body or expectations.calls:
            program, tests = yield RunFunction(self._run_tests, state, config, self._arun_tests)
            verdict = verdict_of_tests(program, tests, expectations)
        if expectations.runs and verdict.status == "verified":
            runs = yield RunFunction(
                self._run_examples, (state, expectations.runs), config, self._arun_examples
            )
            verdict = verdict_of_runs(verdict, runs, expectations)
        return verdict

    def _check_sanity(self, values: State, config: Config) -> Flow:
        """Return the verdict on a program that fails a sanity check; None if it passes."""
        code = str(values.get("code") or "")
        inline = len(str(values.get("query") or "")) + len(code) < _MAX_INLINE_CHARS
        return (
            yield RunFunction(
                lambda state: sanity_verdict(state, as_program(code)), values, config, inline=inline
            )
        )

    def _with_lookups(self, verdict: Verdict, values: State, config: Config) -> Flow:
        """Add to the verdict on a failure what the program looked up in vain, if that may be why it found nothing."""
        error = values["execution"].error
        if not self.sanity_checks or error is None or error.type not in _OF_NOTHING:
            return verdict
        reason: str = yield from self._lookups(values, "[]", config)
        return replace(verdict, reason=f"{verdict.reason} {reason}") if reason else verdict

    def _check_lookups(self, values: State, doubt: Verdict | None, config: Config) -> Flow:
        """Return the verdict on a program that looks up what stands in none of its files; None if it is not known to.

        It names what else is in doubt as well, of which it may be the cause.
        """
        reason = yield from self._lookups(values, values["execution"].output, config)
        reasons = [reason, doubt.reason if doubt else ""]
        return Verdict("failed", "checks", " ".join(filter(None, reasons))) if reason else None

    def _lookups(self, values: State, output: str, config: Config) -> Flow:
        """Return which texts a program looks up in vain; empty if that is not known to matter for its output."""
        code = as_program(str(values.get("code") or ""))
        texts = looked_up(code)
        if not texts or not values.get("files") or self.executor is None or values.get("session") is not None:
            return ""
        state = {
            "files": values["files"],
            "texts": texts,
            "whole_cells": looked_up(code, whole=True),
            "any_case": ignores_case(values["code"]),
        }
        probe: Execution = yield RunFunction(self._search, state, config, self._asearch)
        return missing_texts(read_found(probe.output if probe.ok else ""), output)

    def _search(self, state: State) -> Execution:
        return self._test_executor().run(PROBE, **_probe_inputs(state))

    async def _asearch(self, state: State) -> Execution:
        return await self._test_executor().arun(PROBE, **_probe_inputs(state))

    def _assess(self, verdict: Verdict, values: State, config: Config) -> Flow:
        """Return the verdict on a program that nothing can verify."""
        doubting = [verifier for verifier in self.verifiers if _only_doubts(verifier)]
        verdict = yield from ask_verifiers(doubting, {**values, "verdict": verdict}, config)
        if not verdict.is_doubt:
            verdict = yield from self._test_generated(verdict, values, config)
        if verdict.status != "unverified":
            return verdict
        others = [verifier for verifier in self.verifiers if not _only_doubts(verifier)]
        return (yield from ask_verifiers(others, {**values, "verdict": verdict}, config))

    def _test_generated(self, verdict: Verdict, values: State, config: Config) -> Flow:
        """Return `plausible` if the program passes generated tests; otherwise the verdict as it is."""
        generated = values.get("generated_tests")
        if generated and values.get("session") is None:
            passed = yield from self._test(expect(generated), values, config)
            if passed.status in _PASSED:
                return Verdict("plausible", "tests", "The program passes tests that a model wrote.")
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
    answer_type: AnswerType = values["answer_type"]
    try:
        value = answer_value(values["execution"], str(values.get("code") or ""), answer_type)
    except AnswerTypeError as error:
        return Verdict("failed", "type", f"The program has no value of the type {answer_type}: {error}.")
    if problem := rounding_problem(str(values.get("query") or ""), value):
        return Verdict("failed", "type", f"The value is not rounded: {problem}.")
    return UNCHECKED


def _with_columns(verdict: Verdict, values: State) -> Verdict:
    """Add which columns were read to the verdict on what nothing has checked: it may be another one than was asked for."""
    shown = shown_of(values.get("profiles"))
    if verdict != UNCHECKED or not shown:
        return verdict
    columns = columns_read(as_program(str(values.get("code") or "")), shown)
    if not columns:
        return verdict
    read = ", ".join(f"`{name}`" for name in columns[:_MAX_COLUMNS])
    return replace(verdict, reason=f"{verdict.reason} It read: {read}.")


def _required(values: State, key: str, user: str) -> str:
    """Return an input that only some outcomes need."""
    if values.get(key) is None:
        raise InputError(f"EvaluateChain: {user} cannot decide without {key!r}. Pass it with the execution.")
    return str(values[key])


def _only_defines(values: State, query: str) -> bool:
    """Return whether a run showed nothing because the program only defines what a question asks for."""
    execution, code = values["execution"], as_program(str(values.get("code") or ""))
    return execution.ok and not execution.output.strip() and defines_what_is_asked(code, query)


def _only_doubts(verifier: Chain) -> bool:
    """Return whether a verifier can doubt an outcome alone: it comes before what may speak for it."""
    return getattr(verifier, "only_doubts", False)


def ask_verifiers(verifiers: Sequence[Chain], outcome: State, config: Config) -> Flow:
    """Return the verdict of the first verifier that decides; what is said of the outcome so far if none does.

    Invariant: no opinion of a model makes right what was made up, and none is paid for; verifiers of one's own may know.
    """
    verdict: Verdict = outcome["verdict"]
    state = {**outcome, "output": _output_and_artifacts(outcome["execution"])}
    for verifier in verifiers:
        if verdict.by == "provenance" and getattr(verifier, "is_opinion", False):
            continue
        if verdict.is_doubt and _only_doubts(verifier):
            continue
        for key in verifier.input_keys:
            _required(state, key, verifier.get_name())
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
