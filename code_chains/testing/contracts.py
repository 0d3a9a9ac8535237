"""Contracts of executors and sessions, to be inherited, and an executor that runs nothing; none needs LangChain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.base import Executor, Session
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Program
from code_chains.executors.values import VALUE_TYPE, check_variables, value_of
from code_chains.records import Execution

_Test = TypeVar("_Test", bound=Callable[..., Any])


class ScriptedExecutor(Executor):
    """An executor that runs nothing: outcomes are computed by a function of the code.

    Args:
        script: `code -> Execution`, or `code -> text` for a run with that output.
    """

    def __init__(self, script: Callable[[str], Execution | str], *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        self.script = script

    def _execute(self, program: Program) -> Execution:
        with files_on_disk(program.files):
            pass
        check_variables(program.variables)
        outcome = self.script(program.code)
        return outcome if isinstance(outcome, Execution) else Execution("ok", stdout=outcome)


def _needs(program: str) -> Callable[[_Test], _Test]:
    """Mark a test of the contract with the name of its program."""

    def mark(test: _Test) -> _Test:
        test.needs = program  # type: ignore[attr-defined]  # Functions take any attribute.
        return test

    return mark


class ExecutorContract:
    """The contract of an executor. Inherit it in a test class that provides a fixture `executor`.

    Example:
        class TestMine(ExecutorContract):
            @pytest.fixture
            def executor(self):
                with MyExecutor(limits=Limits(seconds=2, memory="256M", output="64K")) as executor:
                    yield executor

    The fixture should have limits similar to those of the example, as the tests reach each of them.

    The programs are class attributes in Python. For another language override them with equivalent programs;
    `None` means that the language has no equivalent, and skips the test.

    Attributes:
        EVALUATES: Ends with a value that is displayed as `VALUE`.
        PRINTS: Prints `hello` and ends with the value 2.
        NAMES_RESULT: Assigns 42 to `result`.
        FAILS: Prints `before`, then fails with the type and line in `FAILURE` and the variables in `VALUES`.
        USES: Is displayed as `USED` if `numbers` is `[1, 2]` and `n` is 3.
        READS: Prints a line of its standard input.
        LEAVES: Changes the state of the process.
        LOOKS: Checks for that change; its value is `False` if it is absent.
        ENDLESS: Does not terminate.
        FLOODS: Prints without end.
        HOARDS: Allocates memory without end.
        EXITS: Exits early with a successful status.
    """

    EVALUATES: str = "1 + 1"
    VALUE: str = "2"
    PRINTS: str | None = "print('hello')\n1 + 1"
    NAMES_RESULT: str | None = "result = 6 * 7"
    FAILS: str = "n = 0\nprint('before')\n1 / n"
    FAILURE: tuple[str, int | None] = ("ZeroDivisionError", 3)
    VALUES: Mapping[str, str] = {"n": "0"}
    USES: str = "sum(numbers) * n"
    USED: str = "9"
    READS: str | None = "print(input())"
    LEAVES: str | None = "left_behind = 1"
    LOOKS: str = "try:\n    left_behind\n    found = True\nexcept NameError:\n    found = False\nfound"
    ENDLESS: str = "while True: pass"
    FLOODS: str = "while True: print('x' * 1000)"
    HOARDS: str = "x = [bytearray(1 << 20) for _ in range(100_000)]"
    EXITS: str | None = "import os\nos._exit(0)"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, test in vars(ExecutorContract).items():
            if hasattr(test, "needs") and getattr(cls, test.needs) is None:
                setattr(cls, name, None)

    def test_shows_the_last_value(self, executor: Executor) -> None:
        """Display the last value, as a notebook does."""
        execution = executor.run(self.EVALUATES)
        assert (execution.status, execution.output) == ("ok", self.VALUE)

    @_needs("PRINTS")
    def test_shows_what_was_printed_and_the_last_value(self, executor: Executor) -> None:
        """Display output and last value, as a notebook does."""
        execution = executor.run(str(self.PRINTS))
        assert (execution.status, execution.stdout, execution.result, execution.output) == (
            "ok",
            "hello\n",
            "2",
            "hello\n2",
        )

    @_needs("NAMES_RESULT")
    def test_shows_the_variable_result(self, executor: Executor) -> None:
        """Display the variable `result` of a program that prints nothing."""
        assert executor.run(str(self.NAMES_RESULT)).output == "42"

    @_needs("NAMES_RESULT")
    def test_returns_a_value_only_if_it_is_asked_for(self, executor: Executor) -> None:
        """Return the value with its type to a run that asks for it, where values are returned at all."""
        if not executor.returns_values:
            return
        request: dict[str, Any] = {"return_value": True}
        assert value_of(executor.run(str(self.NAMES_RESULT), **request)) == 42
        assert VALUE_TYPE not in [
            data.media_type for data in executor.run(str(self.NAMES_RESULT)).display_data
        ]

    def test_reports_an_error_with_its_line_and_values(self, executor: Executor) -> None:
        """Report an error with its line and the values of variables."""
        execution = executor.run(self.FAILS)
        assert execution.status == "error"
        assert execution.error is not None
        assert (execution.error.type, execution.error.line) == self.FAILURE
        assert self.VALUES.items() <= execution.error.locals.items()

    @_needs("PRINTS")
    def test_keeps_what_was_printed_before_an_error(self, executor: Executor) -> None:
        """Return partial output, which helps with repairs."""
        assert executor.run(self.FAILS).stdout == "before\n"

    def test_gives_variables_to_the_program(self, executor: Executor) -> None:
        """Pass JSON values as variables."""
        assert executor.run(self.USES, variables={"numbers": [1, 2], "n": 3}).output == self.USED

    @_needs("READS")
    def test_gives_standard_input_to_the_program(self, executor: Executor) -> None:
        """Let a program read what it is given, where there is standard input at all."""
        if executor.takes_stdin:
            assert executor.run(str(self.READS), stdin="hello\n").output == "hello"

    @_needs("LEAVES")
    def test_runs_share_nothing(self, executor: Executor) -> None:
        """Isolate runs from each other."""
        executor.run(str(self.LEAVES))
        assert executor.run(self.LOOKS).output == "False"

    def test_stops_what_does_not_end(self, executor: Executor) -> None:
        """Enforce the wall-clock limit."""
        start = time.monotonic()
        assert executor.run(self.ENDLESS).status == "timeout"
        assert time.monotonic() - start < executor.limits.seconds * 1.25 + 3

    def test_stops_a_flood(self, executor: Executor) -> None:
        """Limit output while it is read."""
        execution = executor.run(self.FLOODS)
        assert execution.status == "output_limit"
        assert len(execution.output) <= executor.limits.output_bytes

    def test_stops_what_eats_memory(self, executor: Executor) -> None:
        """Limit memory."""
        assert executor.run(self.HOARDS).status == "memory"

    @_needs("EXITS")
    def test_an_early_exit_is_no_success(self, executor: Executor) -> None:
        """Distinguish `os._exit(0)` from the end of the program."""
        assert executor.run(str(self.EXITS)).status == "killed"

    async def test_async_ends_like_sync(self, executor: Executor) -> None:
        """Return the same from `arun` as from `run`."""
        for code in (self.EVALUATES, self.FAILS):
            assert await executor.arun(code) == executor.run(code)

    async def test_a_stream_ends_with_what_a_run_returns(self, executor: Executor) -> None:
        """A stream yields the beginning of what is printed, and last the execution."""
        code = self.PRINTS or self.EVALUATES
        expected = executor.run(code)
        streamed = [item async for item in executor.astream(code)]
        for items in (list(executor.stream(code)), streamed):
            *parts, execution = items
            assert isinstance(execution, Execution)
            assert (execution.status, execution.output) == (expected.status, expected.output)
            assert execution.stdout.startswith("".join(map(str, parts)))

    def test_tools_are_called_or_refused(self, executor: Executor) -> None:
        """Let programs call tools if that is declared, and refuse tools before anything runs otherwise."""

        def double(number: int) -> int:
            """Return twice a number."""
            return 2 * number

        if executor.takes_tools:
            assert executor.run("double(21)", tools=[double]).result == "42"
        else:
            assert _refuses(lambda: executor.run(self.EVALUATES, tools=[double]))

    def test_tests_are_run_or_refused(self, executor: Executor) -> None:
        """Run tests if that is declared, and refuse them otherwise."""
        if not executor.runs_tests:
            assert _refuses(lambda: executor.run_tests(self.EVALUATES, ""))
            return
        for tests, status in (("assert twice(2) == 4", "ok"), ("assert twice(2) == 5", "error")):
            program, tested = executor.run_tests("def twice(x): return 2 * x", tests)
            assert (program.status, tested.status) == ("ok", status)

    def test_sessions_are_opened_or_refused(self, executor: Executor) -> None:
        """Open sessions if any are declared, and refuse to otherwise."""
        if not executor.has_sessions:
            assert _refuses(executor.session)
            return
        with executor.session() as session:
            session.run("kept = 42")
            assert session.run("kept").result == "42"

    def test_a_value_is_returned_or_refused(self, executor: Executor) -> None:
        """Refuse to return a value unless that is declared."""
        if not executor.returns_values:
            assert _refuses(lambda: executor.run(self.EVALUATES, return_value=True))

    def test_says_what_was_enforced(self, executor: Executor) -> None:
        """Report the isolation of every run."""
        assert executor.run(self.EVALUATES).isolation is not None

    def test_refuses_when_closed(self, executor: Executor) -> None:
        """Accept a second `close`, but no run after it."""
        executor.close()
        executor.close()
        try:
            executor.run(self.EVALUATES)
        except ExecutorError:
            return
        raise AssertionError("A closed executor ran a program.")


def _refuses(action: Callable[[], object]) -> bool:
    """Return whether an action is refused because the executor does not declare it."""
    try:
        action()
    except ConfigurationError:
        return True
    return False


class SessionContract:
    """The contract of a session. Inherit it in a test class that provides a fixture `session`."""

    def test_keeps_variables_imports_and_functions(self, session: Session) -> None:
        """Keep definitions for the next run."""
        session.run("import math\ndef area(r):\n    return math.pi * r ** 2\nradius = 2")
        assert session.run("round(area(radius))").result == "13"

    def test_keeps_files_and_the_working_directory(self, session: Session) -> None:
        """Keep files, so that programs can build on each other's."""
        session.run("import os\nos.mkdir('d'); os.chdir('d'); open('f', 'w').write('here')")
        assert session.run("open('f').read()").result == "'here'"

    def test_shows_only_what_this_run_printed_and_made(self, session: Session) -> None:
        """Report only the output and artifacts of a run itself."""
        session.run("print('first'); result = 1; open('a.txt', 'w').write('a')")
        execution = session.run("print('second'); open('b.txt', 'w').write('b')")
        assert (execution.stdout, [artifact.name for artifact in execution.artifacts]) == (
            "second\n",
            ["b.txt"],
        )

    def test_names_a_later_failure_with_its_own_line(self, session: Session) -> None:
        """Show the source line of a function that an earlier run defined."""
        session.run("def f():\n    return undefined_name")
        error = session.run("x = 1\nf()").error
        assert error is not None
        assert "return undefined_name" in error.traceback

    def test_rolls_back_a_failure(self, session: Session) -> None:
        """Roll back the effects of a failed run."""
        session.run("x = 1")
        session.run("x = 2\n1 / 0")
        assert session.run("x").result == "1"

    def test_rolls_back_on_request(self, session: Session) -> None:
        """Roll back the last successful run, once."""
        session.run("x = 1; open('f', 'w').write('one')")
        session.run("x = 2; open('f', 'w').write('two')")
        session.rollback()
        assert session.run("x, open('f').read()").result == "(1, 'one')"

    def test_returns_to_a_checkpoint_as_often_as_one_likes(self, session: Session) -> None:
        """Keep a checkpoint after restoring it."""
        session.run("x = [1]; open('f', 'w').write('one')")
        session.checkpoint("start")
        for _ in range(2):
            session.run("x.append(2); open('f', 'w').write('two')")
            session.restore("start")
            assert session.run("x, open('f').read()").result == "([1], 'one')"

    def test_takes_variables_at_each_run(self, session: Session) -> None:
        """Add variables to the state."""
        session.run("total = n", variables={"n": 1})
        assert session.run("total + n", variables={"n": 5}).result == "6"
