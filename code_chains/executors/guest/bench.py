"""Runs the cases of tests, each by itself, and reports what every one of them found.

A case that ends with an error which nothing of the program can have caused is the tests' own fault: it is broken.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import io
import itertools
import json
import os
import re
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic  # Bound here: a test may patch the module.
from types import TracebackType
from typing import Any

from . import cell, comparing, inspection
from .clean import clean_names, is_clean
from .patching import MonkeyPatch, ProgramModule, follow_mocks
from .precautions import refuse_empty_arrays, restrict_pickles
from .printed import Comparisons, Output
from .rpc import OutputRecorder, ProgramEndedError, RpcChannel, WaitedError
from .unittests import errors_of, is_expected_to_fail
from .wire import Json

NAMES = (
    *("all", "each"),
    *("start", "case", "same", "differ", "holds", "explain", "example", "cases", "finish"),
    *("shown", "raised", "module"),
)
MAX_CASES, MAX_TEXT, MAX_SAID = 500, 500, 3
OUTCOME = "OutcomeException"
"""What pytest's exceptions derive from that say that a test failed or was skipped; it is no `Exception`."""


class BrokenTestError(Exception):
    """Represents a test that fails whatever the program is."""


class Bench(Comparisons):
    """What the source of tests refers to; see `verification.expectations.harness`.

    Args:
        channel: The channel to the program's sandbox.
        look_up: Returns the program's value of a name.

    Attributes:
        results: How the cases ended.
        ran: How many assertions held.
        used: How many of them depend on a value of the program.
        begun: Numbers of the functions that assert and were called.
        seen: Names whose values came from the program.
        asked: Names of Python's that are the program's; see `verification.expectations.ownership`.
        operands: Names of Python's that are the program's where it binds them to plain data.
    """

    def __init__(self, channel: RpcChannel, look_up: Callable[[str], Any]) -> None:
        super().__init__()
        self.results: list[Json] = []
        self.ran, self.used, self.begun = 0, 0, set[int]()
        self.seen = set[str]()
        self.asked = self.operands = frozenset[str]()
        self._channel, self._look_up = channel, look_up
        self._first, self._facts, self._noted = "", dict[str, Any](), list[str]()
        self._failed, self._broken, self._ended = list[str](), "", dict[str, Any]()
        self._looked_at_nothing = False

    def names(self) -> Json:
        """Return the names that tests, as the harness writes them, refer to."""
        return {f"_{name}": getattr(self, name) for name in NAMES} | {
            "_capsys": self.capsys,
            "_tmp_path": self.tmp_path,
            "_monkeypatch": functools.partial(MonkeyPatch, self._channel.request),
            "_begun": self.begun,
            "_count": self.count,
            "_note": self.note,
            "_solution": ProgramModule(self._channel.request, self._look_up),
        }

    def start(self, facts: str) -> None:
        """Begin with what is known of tests and program: see the harness for the keys of this JSON."""
        self._facts = json.loads(facts)
        self._first = self._facts["output"]
        self.asked, self.operands = frozenset(self._facts["asked"]), frozenset(self._facts["operands"])
        for name in self._facts["modules"]:  # `mock.patch("solution.fetch")` imports it.
            sys.modules[name] = ProgramModule(self._channel.request, self._look_up)  # type: ignore[assignment]
        self._channel.truthful = frozenset(self._facts["truthful"])
        self._channel.is_own_error = self._is_made
        # Invariant: each case judges it, so that none ends the tests as if they had passed.
        self._channel.raises_exits = "SystemExit" in self._facts["tests"]
        if self._facts["files"]:
            self._channel.around.share_files(self._facts["named"])
        if "env" in self._facts["tests"]:
            self._channel.around.follow_environment()
        if self._facts["seeds"]:
            self._channel.around.follow_chance()
        restrict_pickles()
        if self._facts["arrays"]:
            refuse_empty_arrays()
        if "patch" in self._facts["tests"]:
            follow_mocks(self._channel.request)
        if self._facts["inspects"]:
            inspection.adapt(self._facts["sources"], self._look_up)

    def note(self, names: list[str]) -> None:
        """Note the names on which a statement depends that is expected to raise, before it runs."""
        self._noted = names

    def count(self, names: Iterable[str] | None = None) -> None:
        """Count an assertion that held.

        Args:
            names: The names on which it depends; None for those that were noted last.
        """
        looked_at_nothing, self._looked_at_nothing = self._looked_at_nothing, False
        if looked_at_nothing:
            return
        self.ran += 1
        is_called = self._channel.calls > 0 or self._channel.around.has_files
        of_program = self.seen.union(self._facts["observers"]) if is_called else self.seen
        self.used += not of_program.isdisjoint(self._noted if names is None else names)

    def each(self, quantifier: Callable[[Iterable[Any]], bool], items: Iterable[Any]) -> bool:
        """Apply `all` or `any`; an assertion about each of no items counts for none."""
        if quantifier is not all and quantifier is not any:
            return quantifier(items)  # The program's own.
        rest = iter(items)
        first = list(itertools.islice(rest, 1))
        self._looked_at_nothing = self._looked_at_nothing or not first
        return quantifier(itertools.chain(first, rest))

    @property
    def state(self) -> tuple[int, int, int]:
        """How many assertions held, how many of them depend on the program, and how often that was called."""
        return self.ran, self.used, self._channel.calls

    # -- what the program printed ----------------------------------------------------------------------------

    @property
    def output(self) -> Output:
        """What the program has printed so far."""
        self.seen.add("output")
        printed = "".join(self._channel.printed)
        if not printed:
            return Output(self._first)
        between = "\n" if self._first and not self._first.endswith("\n") else ""
        return Output(f"{self._first}{between}{printed}", printed)

    def capsys(self) -> Any:
        """Return what pytest's fixture of this name gives: what program and test printed since the last look."""
        out, err = OutputRecorder(sys.stdout), OutputRecorder(sys.stderr)
        sys.stdout, sys.stderr = out, err  # Until the case ends.

        class Captured(tuple[str, str]):
            out = property(lambda self: self[0])
            err = property(lambda self: self[1])

        class Capture:
            def readouterr(self) -> Captured:
                return Captured((Output(out.taken()), Output(err.taken())))

        return Capture()

    def tmp_path(self) -> Path:
        """Return what pytest's fixture of this name gives: a folder, which the program has, too."""
        path = Path(tempfile.mkdtemp(dir="."))  # Below the working directory: what is shared.
        return path.resolve() if "chdir" in self._facts["tests"] else Path(os.path.relpath(path))

    # -- cases -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def case(self, name: str, line: int, source: str = "", *, ends: bool = False) -> Iterator[None]:
        """Run one case, and note how it ended.

        Args:
            name: What it is called.
            line: Its line in the tests, from 1.
            source: Its source.
            ends: Whether what follows builds on it; else it is a test, of which an assertion must depend on the program.

        Raises:
            AssertionError: It failed, and what follows builds on it.
            BrokenTestError: The same, and it is the tests' own fault.
        """
        self._channel.refused, self._looked_at_nothing = "", False
        printed, streams = len(self._channel.printed), (sys.stdout, sys.stderr)
        before, started = self.state, monotonic()
        note = {"name": name, "line": line, "test_code": source, "status": "pass"}
        try:
            self._channel.begin()
            yield
            self._channel.check_callbacks()
            if not ends and self.used == before[1]:
                note |= self._unused(line, *before)
        except (ProgramEndedError, WaitedError) as error:
            if self._channel.has_answered and not ends:
                ended = {**note, "key": _key(name, line), "waited": isinstance(error, WaitedError)}
                self._ended = self._ended or ended
            raise
        except BaseException as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            if not isinstance(error, Exception | SystemExit) and OUTCOME not in kinds:
                raise
            note |= self._judge(error, line)
        finally:
            sys.stdout, sys.stderr = streams
        if note["status"] != "pass" or not ends:
            self._add({**note, "seconds": round(monotonic() - started, 3)}, printed)
        if note["status"] != "pass" and ends:
            self.finish(())

    def _unused(self, line: int, ran: int, _: int, calls: int) -> Json:
        """Return how a test ended of which no assertion depends on the program."""
        message = f"The test in line {line} does not use the program"
        if self.ran == ran and self._channel.calls > calls:
            message = f"The test in line {line} calls the program and reaches no assertion that holds"
        if shadowed := self._facts["shadowed"]:
            message += (
                f": {shadowed[0]!r} is Python's own there, unless the question asks for `{shadowed[0]}(…)`"
            )
        return {"status": "error", "message": message}

    def _add(self, note: Json, printed: int) -> None:
        # Invariant: each failure counts, however many are reported.
        if note["status"] == "fail":
            self._failed.append(_plain_text(note["message"], 4 * MAX_TEXT))
        elif note["status"] == "error":
            self._broken = self._broken or _plain_text(note["message"], 4 * MAX_TEXT)
        if len(self.results) < MAX_CASES:
            note["output"] = "".join(self._channel.printed[printed:])
            texts = {
                key: _plain_text(value, MAX_TEXT) for key, value in note.items() if isinstance(value, str)
            }
            self.results.append({**note, **texts})

    def _judge(self, error: BaseException, line: int) -> Json:
        """Return how a case failed, and whether that is its own fault."""
        said = _said(error)
        text = " ".join(f"{type(error).__name__}: {said}".split()) if said else type(error).__name__
        if self._channel.refused:  # Where tests and program are one process, the program may be right.
            return {"status": "error", "message": f"The test in line {line}: {self._channel.refused}"}
        if isinstance(error, AssertionError):
            return {"status": "fail", "message": said or "An assertion does not hold"}
        missing = (
            self._facts["missing"].get(getattr(error, "name", None)) if isinstance(error, NameError) else None
        )
        if missing and missing["is_programs"]:
            return {"status": "fail", "message": missing["message"]}
        if missing or self._is_own_fault(error):
            own = missing["message"] if missing else text
            return {"status": "error", "message": f"The test in line {line} is broken: {own}"}
        notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        return {"status": "fail", "message": f"A test ended with {text}{notes}"}

    def _is_made(self, error: BaseException) -> bool:
        """Return whether tests have made an error by themselves: by raising it, or by what uses nothing of the program."""
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        if trace is None or trace.tb_frame.f_code.co_filename != cell.SOURCE_NAME:
            return False
        with contextlib.suppress(SyntaxError, ValueError):
            expression, _ = cell.failing_source(trace)
            if isinstance(ast.parse(expression.strip()).body[0], ast.Raise):
                return True
        return self._is_own_fault(error)

    def _is_own_fault(self, error: BaseException) -> bool:
        """Return whether the expression that failed uses nothing of the program, nor what a program can change."""
        entries: list[TracebackType] = []
        trace = error.__traceback__
        while trace:
            entries.append(trace)
            trace = trace.tb_next
        own = [entry for entry in entries if entry.tb_frame.f_code.co_filename == cell.SOURCE_NAME]
        if not own or (isinstance(error, OSError) and self._may_be_programs(error)):
            return False
        if isinstance(error, FileNotFoundError):
            return True
        if (
            isinstance(error, AttributeError)
            and inspect.ismodule(error.obj)
            and error.obj.__name__ in sys.stdlib_module_names
        ):
            return True
        try:
            expression, _ = cell.failing_source(own[-1])
            tree = ast.parse(expression.strip())
        except (SyntaxError, ValueError):
            return False
        if isinstance(error, ModuleNotFoundError):
            return isinstance(tree.body[0], ast.Import | ast.ImportFrom)
        return is_clean(tree, clean_names(ast.parse(self._facts["tests"])))

    def _may_be_programs(self, error: OSError) -> bool:
        """Return whether a file may be one that the program makes.

        It is not if it is missing before a function of the program was called, and neither program nor question names it.
        """
        is_missing = isinstance(error, FileNotFoundError) and self._facts["calls"] and not self._channel.calls
        return not is_missing or os.path.basename(str(error.filename or "")) in self._facts["known"]

    def example(
        self,
        source: str,
        call: Callable[[], Any],
        expected: Any,
        *,
        stdin: str | None = None,
        printed: str | None = None,
        how: str = "",
        tolerance: float | None = None,
    ) -> None:
        """Try a function on an example; see `Expectations`."""
        start, self._channel.around.given = len(self._channel.printed), stdin
        self.count(self.seen)
        try:
            got = _awaited(call())
        except ProgramEndedError:
            raise
        except Exception as error:
            if isinstance(expected, type) and isinstance(error, expected):
                return
            said = f"{source} raised {_noted(error)}, expected {self.brief.repr(expected)}"
            raise AssertionError(said) from None
        finally:
            self._channel.around.given = None
        if printed is not None:
            shown = Output("".join(self._channel.printed[start:]))
            is_same = self.same(shown, printed)
            if how or tolerance is not None:
                is_same = comparing.same_output(str(shown), printed, how or "words", tolerance)
            if not is_same:
                raise AssertionError(self.explain(source, shown, "==", printed, "printed"))
        if (printed is None or expected is not None) and (
            isinstance(expected, type) or not comparing.same(got, expected)
        ):
            raise AssertionError(self.explain(source, got, "==", expected))

    def cases(self, kind: type[unittest.TestCase], line: int, lines: Mapping[str, int]) -> None:
        """Run each case of a class of unittest, which is in a line with its methods in others.

        Raises:
            ProgramEndedError: A case has ended the program.
            WaitedError: A case has met its limit of wall time.
        """
        bench, original = self, kind.assertEqual

        def assert_equal(self: unittest.TestCase, first: Any, second: Any, msg: Any = None) -> None:
            if bench.same(first, second) is True:
                return
            if first == second:
                self.fail(msg or bench.explain(repr(first), first, "==", second))
            original(self, first, second, msg)

        kind.assertEqual = assert_equal  # type: ignore[method-assign]
        with self.case(f"{kind.__name__}.setUpClass", line, ends=True):
            kind.setUpClass()
        tests: Iterable[Any] = unittest.defaultTestLoader.loadTestsFromTestCase(kind)
        for test in tests:
            name = test.id().rpartition(".")[2]
            place = lines.get(name, line)
            if _key(name, place) not in self._facts["skipped"] and not is_expected_to_fail(test, name):
                self._run_test(test, name, place)
        with self.case(f"{kind.__name__}.tearDownClass", line, ends=True):
            kind.tearDownClass()
            kind.doClassCleanups()

    def _run_test(self, test: unittest.TestCase, name: str, line: int) -> None:
        """Run a test of unittest as a case; of its subtests, each that fails is reported."""
        printed = len(self._channel.printed)
        with self.case(name, line):
            errors = errors_of(test)
            for error in errors[:-1]:
                self._add({"name": name, "line": line, **self._judge(error, line)}, printed)
            if errors:
                raise errors[-1]

    def finish(self, names: Iterable[str]) -> None:
        """Raise if a case failed, was never run, or nothing was asserted."""
        names = list(names)
        run = {names[number] for number in self.begun}
        unrun = [name for name in names if name not in run]
        failed = self._failed
        if len(failed) == 1:
            raise AssertionError(failed[0])
        if failed:
            noun = self._facts["noun"]
            count = max(len(self.results), len(failed))
            raise AssertionError(f"{len(failed)} of {count} {noun} failed: {'; '.join(failed[:MAX_SAID])}")
        if unrun and not self._broken:
            self._broken = f"{unrun[0]} of the tests was never run"
        if not self.used and not self._broken:
            self._broken = "The tests do not use the program"
        if self._broken:
            raise BrokenTestError(self._broken)

    def report(self) -> str:
        """Return how each case ended, as JSON.

        Invariant: that tests are broken is said here, and not by the name of an exception, which a program can choose.
        """
        is_broken = bool(self._broken) and not self._failed
        return json.dumps(
            {
                "weak": self.weak,
                "broken": self._broken if is_broken else "",
                "tests": self.results,
                "ended": self._ended,
            }
        )

    # -- doctests --------------------------------------------------------------------------------------------

    def shown(self, source: str, run: Callable[[], Any], expected: str) -> None:
        """Compare what an interactive session shows with what a doctest expects."""
        with contextlib.redirect_stdout(io.StringIO()) as captured:
            value = _awaited(run())
        printed = captured.getvalue()
        text = printed + ("" if value is None else f"{value!r}\n")
        pattern = ".*".join(map(re.escape, " ".join(expected.split()).split("...")))
        has_gap = "..." in expected and re.fullmatch(pattern, " ".join(text.split()), re.DOTALL)
        is_right = (
            comparing.same_text(text, expected)
            if value is None
            else _is_shown(value, text, expected, printed)
        )
        assert has_gap or is_right, self.explain(source, text.rstrip("\n"), "==", expected.rstrip("\n"))

    def raised(self, source: str, run: Callable[[], Any], kind: str, message: str) -> None:
        """Check that a call raises what a doctest expects."""
        try:
            value = _awaited(run())
        except Exception as error:
            name, text = type(error).__name__, str(error)
            is_right = name == kind.rpartition(".")[2] and (
                not message or "..." in message or text.strip() == message.strip()
            )
            assert is_right, f"{source} raised {name}: {text}, expected {kind}: {message}"
            return
        raise AssertionError(f"{source} gave {self.brief.repr(value)}, expected {kind}")

    def module(self, name: str) -> Any:
        """Return a module of the program's process, such as its pyplot with the figures."""
        self.seen.add("_module")
        return self._channel.request("module", name)


def _key(name: str, line: int) -> str:
    """Return by what a test is left out of a run."""
    return f"{line} {name}"


def _is_shown(value: Any, text: str, expected: str, printed: str) -> bool:
    """Return whether a value is what a doctest shows: data as data, all else by its text."""
    try:
        return not printed and comparing.same(value, ast.literal_eval(expected.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text.split() == expected.split()


def _said(error: BaseException) -> str:
    """Return the text of an error; what it holds may be objects of the program, which are not asked again."""
    if "_said" in vars(error):
        return str(vars(error)["_said"])
    try:
        return str(error)
    except Exception:
        return ""


def _plain_text(text: str, max_chars: int) -> str:
    return text[:max_chars].encode(errors="replace").decode()


def _awaited(value: Any) -> Any:
    if inspect.iscoroutine(value):
        try:
            value.send(None)
        except StopIteration as end:
            return end.value
    return value


def _noted(error: BaseException) -> str:
    return "; ".join([f"{type(error).__name__}: {_said(error)}", *getattr(error, "__notes__", ())])
