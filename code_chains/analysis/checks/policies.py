"""The policies `standard`, `strict` and `none`, and the checks that read no imports and no output.

A check is any function from code to problems, to reasons, or to True or False. Checks with options are created by a
call: `checks=[parses, names_defined, shorter_than(80), no_calls("subprocess", "eval")]`. A problem with severity
`error` keeps a program from running; `as_advice(check)` returns a check that only advises.

Policies by name: `none`; `standard` rejects what cannot run (syntax, undefined names, excessive length) and
advises on the rest; `strict` also rejects what `security` finds.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, wraps
from itertools import chain
from typing import Any, Literal, cast

from code_chains.analysis.checks.imports import check_names, did_you_mean
from code_chains.analysis.checks.output import prints_something, results_used
from code_chains.analysis.checks.risks import find_risks
from code_chains.analysis.references import canonical, match, read, words
from code_chains.analysis.well_known_imports import import_line
from code_chains.analysis.work import spend, spend_on_source, walk
from code_chains.errors import ConfigurationError, check_int, refusal_reason
from code_chains.records import Problem
from code_chains.records.decisions import read_result, refusal

_MAX_HINTS = 20
_CHECKER_STEPS = 10
"""Steps that pyflakes takes for a node, and for two branches that may bind the same name."""
_DEFINING = words(
    "builtins.exec builtins.eval builtins.globals builtins.locals builtins.vars builtins.setattr __main__ sys.modules"
    " sys._getframe inspect.currentframe inspect.stack"
    " sys.exit builtins.exit builtins.quit builtins.SystemExit os._exit os.abort"
)
"""What defines names, or ends a program before it uses them."""

Result = bool | str | tuple[bool, str] | Problem | Iterable[Problem | str] | None
Check = Callable[[str], Result]
"""A function from code to what is wrong with it: problems or reasons, True or None if nothing is. False, or a pair of False
and a reason, refuses the program."""


def parses(code: str) -> list[Problem]:
    """Check that the program is Python that this interpreter can compile."""
    spend_on_source(code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<code>", "exec", dont_inherit=True, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        return [Problem("parses", f"{type(error).__name__}: {error.msg}", error.lineno)]
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return [Problem("parses", f"The program cannot be compiled: {error or type(error).__name__}")]
    return []


def names_defined(code: str) -> list[Problem]:
    r"""Check with pyflakes that every name is defined somewhere, and suggest what may be missing.

    An error is what fails for certain: a name in a statement that every run reaches. Any other is advice, which a model sees
    if the program then fails.

    Example:
        >>> [problem.message for problem in names_defined("total = 1\nprint(totl, math.pi)")]
        ["undefined name 'totl'; did you mean 'total'?", "undefined name 'math'; add `import math`"]
    """
    from pyflakes import messages

    fatal = (messages.UndefinedName, messages.UndefinedLocal, messages.ReturnOutsideFunction)
    reading = read(code)
    if reading is None:
        return []  # `parses` reports it.
    forks = (len(node.cases) for node in reading.nodes if isinstance(node, ast.Match))
    handlers = (len(node.handlers) for node in reading.nodes if isinstance(node, ast.Try | ast.TryStar))
    pairs = sum(count**2 for count in chain(forks, handlers))
    spend(_CHECKER_STEPS * (len(reading.nodes) + pairs))
    try:
        findings = [item for item in _checker()(reading.tree, code).messages if isinstance(item, fatal)]
    except RecursionError:
        return []
    undefined = {item.message_args[0] for item in findings if isinstance(item, messages.UndefinedName)}
    hints = _hints(undefined, reading.tree)
    reached = set() if undefined and defines_dynamically(code) else set(_reached(reading.tree.body))
    problems = []
    for item in findings:
        is_certain = (item.lineno, item.col) in reached or isinstance(item, messages.ReturnOutsideFunction)
        severity: Literal["error", "advice"] = "error" if is_certain else "advice"
        hint = hints.get(item.message_args[0], "") if isinstance(item, messages.UndefinedName) else ""
        problems.append(
            Problem("names_defined", item.message % item.message_args + hint, item.lineno, severity)
        )
    return problems


_LATER = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions of which a part may not be computed."""


def _reached(statements: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield where the names are that every run computes which gets as far: not in branches, loops, handlers or functions."""
    for statement in statements:
        parts = _computed_first(statement)
        while parts:
            part = parts.pop()
            if isinstance(part, ast.Name):
                yield part.lineno, part.col_offset
            if isinstance(part, ast.Compare) and len(part.ops) > 1:
                parts += [part.left, part.comparators[0]]
            elif not isinstance(part, _LATER):
                parts += ast.iter_child_nodes(part)
        if isinstance(statement, ast.Raise):
            return


def _computed_first(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement that are computed whatever happens then."""
    match statement:
        case ast.If(test=first) | ast.While(test=first) | ast.Assert(test=first):
            return [first]
        case ast.For(iter=first) | ast.Match(subject=first):
            return [first]
        case ast.With(items=items):  # It may suppress what happens in its block.
            return [item.context_expr for item in items]
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            return [*decorators]
        case ast.Try() | ast.TryStar() | ast.AsyncFunctionDef():
            return []
    return [statement]


@cache
def _checker() -> Any:
    """Return pyflakes' checker, restricted to the builtins that occur: binding all of them takes most of its time."""
    from pyflakes.checker import Checker

    class Quick(Checker):  # type: ignore[misc]
        # Before pyflakes 4 they belong to the class.
        builtin_names: Collection[str] = getattr(Checker, "builtIns", ())

        def __init__(self, tree: ast.Module, code: str) -> None:
            self.words = set(re.findall(r"\w+", unicodedata.normalize("NFKC", code)))
            super().__init__(tree, filename="<code>")

        @property
        def builtIns(self) -> set[str]:  # noqa: N802 (pyflakes' name)
            return self.words.intersection([*self.builtin_names, "display"])  # As in notebooks.

        @builtIns.setter
        def builtIns(self, builtin_names: Collection[str]) -> None:  # noqa: N802
            self.builtin_names = builtin_names

    return Quick


def defines_dynamically(code: str) -> bool:
    """Return whether a program may define names with `exec` or through `globals()`, or end before it uses them."""
    reading = read(code)
    uses = reading.uses if reading else []
    return any(use.name == "builtins" or match(use.name, _DEFINING) for use in uses)


def _hints(names: Collection[str], tree: ast.Module) -> dict[str, str]:
    """Return what may be missing, for the first few undefined names, as comparing takes time."""
    if not names:
        return {}
    defined = {*_bound(tree), *dir(builtins)}
    return {name: _hint(name, defined) for name in sorted(names)[:_MAX_HINTS]}


def _hint(name: str, defined: Collection[str]) -> str:
    if line := import_line(name):
        return f"; add `{line}`"
    if name in sys.stdlib_module_names:
        return f"; add `import {name}`"
    return did_you_mean(name, defined)


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def shorter_than(lines: int) -> Callable[[str], list[Problem]]:
    """Make a check that refuses programs longer than a number of lines.

    Args:
        lines: The largest number of lines that is still allowed.
    """
    check_int("lines", lines, "a whole number of lines, at least 1", minimum=1)

    def check(code: str) -> list[Problem]:
        count = len(code.splitlines())
        message = f"The program has {count} lines; at most {lines} are allowed"
        return [Problem("shorter_than", message)] if count > lines else []

    return check


def no_calls(*names: str) -> Callable[[str], list[Problem]]:
    r"""Make a check that refuses some functions, and whole modules: calls, mere references, and the usual ways around.

    It follows imports under other names, assignments, `getattr`, `__import__`, `vars()`, `__dict__` and texts
    put together of constants. What merely has the same name, such as a method `eval` of a data frame, is not
    meant.

    Args:
        names: Full dotted names such as `os.system`; `subprocess` stands for all in it, `eval` for the
            builtin.

    Example:
        >>> [str(problem) for problem in no_calls("os.system")("import os as o\nf = o.system")]
        ['line 2: `os.system` may not be used here; do it another way']
    """
    check_names(names)
    rules = set(map(canonical, names))

    def check(code: str) -> list[Problem]:
        reading = read(code)
        problems = []
        for use in reading.uses if reading else ():
            if rule := match(use.name, rules):
                message = f"`{rule.removeprefix('builtins.')}` may not be used here; do it another way"
                problems.append(Problem("no_calls", message, use.line))
        return list(dict.fromkeys(problems))

    return check


def security(code: str) -> list[Problem]:
    r"""Find habits that are risky without isolation. Advice, however strict: only the sandbox protects.

    It finds removed files, other programs, code made from text, walks through Python's insides, paths of the
    system, and loops without an end. That there is no network is advice, never an error: some places have
    one.

    Example:
        >>> [str(problem) for problem in security("import os\nos.system('ls')")]
        ['line 2: `os.system` starts or stops processes; compute it in Python instead']
    """
    reading = read(code)
    if reading is None:
        return []
    return [replace(problem, check="security") for problem in find_risks(reading)]


def as_advice(check: Check) -> Callable[[str], list[Problem]]:
    r"""Make a check that finds the same but refuses nothing.

    Args:
        check: A function from code to problems.

    Example:
        >>> [problem.severity for problem in as_advice(shorter_than(1))("a = 1\nb = 2")]
        ['advice']
    """

    @wraps(check)
    def advise(code: str) -> list[Problem]:
        name = getattr(check, "__name__", type(check).__name__)
        return [replace(problem, severity="advice") for problem in read_result(check(code), name)]

    return advise


_REQUIRED_TO_RUN: tuple[Check, ...] = (parses, names_defined, shorter_than(2000))
_ADVICE: tuple[Check, ...] = (results_used, as_advice(prints_something))
STANDARD: tuple[Check, ...] = (*_REQUIRED_TO_RUN, as_advice(security), *_ADVICE)
POLICIES: dict[str, tuple[Check, ...]] = {
    "none": (),
    "standard": STANDARD,
    "strict": (*_REQUIRED_TO_RUN, security, *_ADVICE),
}


def resolve_checks(checks: str | Check | Sequence[str | Check]) -> tuple[Check, ...]:
    """Turn a policy's name, one check or several of both into a tuple of checks.

    Raises:
        ConfigurationError: It is none of these.
    """
    is_several = isinstance(checks, Sequence) and not isinstance(checks, str)
    resolved = list[Check]()
    for check in cast("Sequence[str | Check]", checks if is_several else [checks]):
        if isinstance(check, str) and check in POLICIES:
            resolved += POLICIES[check]
        elif callable(check):
            resolved.append(check)
        else:
            remedy = f"one of {sorted(POLICIES)}, functions from code to problems, or a list of these"
            raise ConfigurationError("checks", check, remedy)
    return tuple(resolved)


def find_problems(code: str, checks: Sequence[Check], *, defined: Iterable[str] = ()) -> list[Problem]:
    """Run checks in order over a program; those after one that found something still run, duplicates go.

    Args:
        code: The program.
        checks: Functions from code to problems.
        defined: Names that will exist when the program starts; that they are undefined is no problem.

    Raises:
        ConfigurationError: A check returned what is neither a decision nor problems.
    """
    problems: dict[Problem, None] = {}
    for check in checks:
        name = getattr(check, "__name__", type(check).__name__)
        problems.update(dict.fromkeys(_run(check, code, name)))
    names = set(map("undefined name {!r}".format, defined))
    return [problem for problem in problems if problem.message.partition(";")[0] not in names]


def _run(check: Check, code: str, name: str) -> list[Problem]:
    try:
        return read_result(check(code), name)
    except Exception as error:
        return refusal(name, refusal_reason(error))
