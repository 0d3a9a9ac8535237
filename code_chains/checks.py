"""Static checks: they read a program before it runs. Advice for the model, never the boundary; that is the sandbox.

A check is any function `code -> list of Problem`. Those that take options are made by calling them:
`checks=[parses, names_defined, shorter_than(80), no_calls("subprocess", "eval")]`. A problem whose severity is `error`
keeps a program from running; `as_advice(check)` makes a check that only advises.

Policies, by name: `none`; `standard`, which refuses what cannot run (syntax, undefined names, endless length) and advises
on the rest; `strict`, which refuses what `security` finds as well.
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
from typing import Any, cast

from code_chains.calls import Import, Reading, canonical, match, read, words
from code_chains.errors import ConfigurationError
from code_chains.imports import import_line
from code_chains.risks import find_risks
from code_chains.silence import is_silent
from code_chains.state import Problem

__all__ = [
    "POLICIES",
    "STANDARD",
    "Check",
    "as_advice",
    "find_problems",
    "imports_available",
    "imports_only",
    "names_defined",
    "no_calls",
    "parses",
    "prints_something",
    "resolve_checks",
    "results_used",
    "security",
    "shorter_than",
]

_PURE = words(
    "builtins.sorted builtins.sum builtins.len builtins.max builtins.min builtins.abs builtins.round builtins.reversed "
    "builtins.str builtins.int builtins.float builtins.list builtins.dict builtins.set builtins.tuple builtins.zip "
    "builtins.map builtins.filter"
)
_DEFINING = words("builtins.exec builtins.globals builtins.locals builtins.vars __main__")
_MISSING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}

Check = Callable[[str], list[Problem]]


def parses(code: str) -> list[Problem]:
    """The program is Python that this interpreter can compile."""
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
    r"""Every name that is used is defined somewhere; found by pyflakes. Says what may be missing.

    Example:
        >>> [problem.message for problem in names_defined("total = 1\nprint(totl, math.pi)")]
        ["undefined name 'totl'; did you mean 'total'?", "undefined name 'math'; add `import math`"]
    """
    from pyflakes import messages

    fatal = (messages.UndefinedName, messages.UndefinedLocal, messages.ReturnOutsideFunction)
    reading = read(code)
    if reading is None:
        return []  # That it does not parse is for `parses` to say.
    tree = reading.tree
    try:
        found = _checker()(tree, code).messages
    except RecursionError:
        return []
    unseen = any(isinstance(message, messages.UndefinedName) for message in found) and _defines_unseen(code)
    hints = _hints({message.message_args[0] for message in found if isinstance(message, messages.UndefinedName)}, tree)
    problems = []
    for message in (message for message in found if isinstance(message, fatal)):
        is_name = isinstance(message, messages.UndefinedName)
        text = message.message % message.message_args + (hints.get(message.message_args[0], "") if is_name else "")
        problems.append(Problem("names_defined", text, message.lineno, "advice" if is_name and unseen else "error"))
    return problems


@cache
def _checker() -> Any:
    """Pyflakes' checker, where only those builtins are bound that occur: binding all takes most of its time."""
    from pyflakes.checker import Checker

    class Quick(Checker):  # type: ignore[misc]
        every: Collection[str] = getattr(Checker, "builtIns", ())  # Before pyflakes 4 they belong to the class.

        def __init__(self, tree: ast.Module, code: str) -> None:
            self.words = set(re.findall(r"\w+", unicodedata.normalize("NFKC", code)))
            super().__init__(tree, filename="<code>")

        @property
        def builtIns(self) -> set[str]:  # noqa: N802 (pyflakes' name)
            return self.words.intersection(self.every)

        @builtIns.setter
        def builtIns(self, every: Collection[str]) -> None:  # noqa: N802
            self.every = every

    return Quick


def _defines_unseen(code: str) -> bool:
    """Whether a program may define names that are not written in it, with `exec` or through `globals()`."""
    reading = read(code)
    uses = reading.uses if reading else []
    return any(use.name == "builtins" or match(use.name, _DEFINING) for use in uses)


def _hints(names: Collection[str], tree: ast.Module) -> dict[str, str]:
    """What may be missing for names that are undefined; for the first few, since comparing takes its time."""
    known = {*_bound(tree), *dir(builtins)} if names else set()
    return {name: _hint(name, known) for name in sorted(names)[:20]}


def _hint(name: str, known: Collection[str]) -> str:
    if line := import_line(name):
        return f"; add `{line}`"
    if name in sys.stdlib_module_names:
        return f"; add `import {name}`"
    return _meant(name, known)


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _meant(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(set(known) - {name}), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""


def shorter_than(lines: int) -> Check:
    """Make a check that refuses programs longer than a number of lines.

    Args:
        lines: The largest number of lines that is still allowed.
    """
    if isinstance(lines, bool) or not isinstance(lines, int) or lines < 1:
        raise ConfigurationError("lines", lines, "a whole number of lines, at least 1")

    def check(code: str) -> list[Problem]:
        count = len(code.splitlines())
        message = f"The program has {count} lines; at most {lines} are allowed"
        return [Problem("shorter_than", message)] if count > lines else []

    return check


def results_used(code: str) -> list[Problem]:
    r"""Advice where a line works out a value and throws it away. The last line is shown, as in a notebook.

    Only what surely has no other effect counts: comparisons, arithmetic, names, literals, comprehensions, and builtins
    such as `sorted`. What stands inside `try` or `with` may be there for the exception.

    Example:
        >>> [problem.line for problem in results_used("x = [3, 1]\nsorted(x)\nprint(x)")]
        [2]
    """
    reading = read(code)
    if not reading:
        return []
    message = "The value of this line is thrown away; assign it to a name, or print it"
    return [
        Problem("results_used", message, node.lineno, "advice")
        for node in _statements(reading.tree)
        if isinstance(node, ast.Expr) and node is not reading.tree.body[-1] and _is_idle(node.value, reading)
    ]


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """What is done, in order, without what stands inside `try` and `with`."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        guarded = isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith)
        below = [child for child in ast.iter_child_nodes(node) if not guarded or child not in node.body]  # type: ignore[attr-defined]
        stack.extend(reversed(below))


def _is_idle(node: ast.expr, reading: Reading) -> bool:
    """Whether an expression does nothing but have a value."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str) and node.value is not ...
    idle = (ast.Compare | ast.BinOp | ast.UnaryOp | ast.Name | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr
            | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Call)  # fmt: skip
    return isinstance(node, idle) and all(_is_pure(part, reading) for part in ast.walk(node))


def _is_pure(node: ast.AST, reading: Reading) -> bool:
    if isinstance(node, ast.Call):
        names = reading.names(node.func)
        runs = [*node.args[:1], *node.keywords] if names & {"builtins.map", "builtins.filter"} else node.keywords
        return names <= _PURE and not any(isinstance(part, ast.Name) for run in runs for part in ast.walk(run))
    effects = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.BitOr | ast.LShift | ast.RShift
    return not isinstance(node, effects)


def prints_something(code: str) -> list[Problem]:
    r"""There is something to see: it prints, shows, logs, writes or raises, ends with a value, or sets `result`.

    When in doubt it says nothing: whatever calls something that is not known to be silent may print.

    Example:
        >>> [str(problem) for problem in prints_something("total = sum([1, 2])")]
        ['Nobody would see the outcome. Print the answer at the end. (prints_something)']
        >>> prints_something("total = sum([1, 2])\nprint(total)")
        []
    """
    reading = read(code)
    if not reading or "result" in reading.defined or not is_silent(reading):
        return []
    if reading.tree.body and isinstance(reading.tree.body[-1], ast.Expr):
        return []
    return [Problem("prints_something", "Nobody would see the outcome. Print the answer at the end.")]


def imports_only(*names: str) -> Check:
    """Make a check that refuses imports of all but some modules. `os.path` allows only that, `numpy` all below it.

    Args:
        names: Dotted names of modules that may be imported.

    Example:
        >>> [problem.message for problem in imports_only("json", "math")("import math, socket")]
        ['`socket` may not be imported; only json, math may']
    """
    _want_names(names)
    allowed = {*names, "__future__"}

    def check(code: str) -> list[Problem]:
        reading = read(code)
        told = f"only {', '.join(names)} may" if names else "write the program without imports"
        return [] if not reading else [
            Problem("imports_only", f"{_shown(found)} may not be imported; {told}", found.line)
            for found in reading.imports if not _is_below(found.name.removesuffix(".*"), allowed)
        ]  # fmt: skip

    return check


def _is_below(name: str, allowed: Collection[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in allowed)


def _shown(found: Import) -> str:
    return "A module whose name is computed" if found.name == "?" else f"`{found.name.removesuffix('.*')}`"


def imports_available(packages: Collection[str] | None = None) -> Check:
    """Make a check that refuses imports of what is not there: not in the standard library, not installed here.

    It looks at this interpreter, without importing anything. Where programs run in another one, give `packages`, or
    leave it out. Imports inside `try` with `except ImportError` may fail, and a program may write a module of its own.

    Args:
        packages: Further names that can be imported where the program runs.

    Example:
        >>> [problem.message for problem in imports_available()("import jsn")]
        ["There is no module 'jsn'; did you mean 'json'?"]
    """
    given = {name.partition(".")[0] for name in packages or ()}

    def check(code: str) -> list[Problem]:
        reading = read(code)
        return [] if not reading else [
            Problem("imports_available", f"There is no module {root!r}{_instead(root, given)}", found.line)
            for found in _needed(reading)
            if (root := found.name.partition(".")[0]) and not _is_there(root, given) and not _is_written(root, reading)
        ]  # fmt: skip

    return check


def _needed(reading: Reading) -> list[Import]:
    """Imports that are written as such, and whose failure is not provided for."""
    optional = {id(node) for guard in ast.walk(reading.tree) if _may_fail(guard) for node in ast.walk(guard)}
    return [found for found in reading.imports
            if isinstance(found.node, ast.Import | ast.ImportFrom) and id(found.node) not in optional]  # fmt: skip


def _may_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return any(getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in ast.walk(node.test))
    if isinstance(node, ast.With):
        caught = [item.context_expr for item in node.items]
    else:
        handlers = node.handlers if isinstance(node, ast.Try) else []
        caught = [handler.type or ast.Name("Exception") for handler in handlers]
    return any(isinstance(part, ast.Name) and part.id in _MISSING for what in caught for part in ast.walk(what))


def _is_there(root: str, given: Collection[str]) -> bool:
    from importlib.util import find_spec

    if root in sys.stdlib_module_names or root in given or root == "__main__":
        return True
    try:
        return find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _is_written(root: str, reading: Reading) -> bool:
    """Whether the program itself seems to write the module: a text of it names the file or the folder."""
    named = re.compile(rf"(^|/){re.escape(root)}(\.py\b|/|$)")
    return any(isinstance(node, ast.Constant) and isinstance(node.value, str) and named.search(node.value)
               for node in ast.walk(reading.tree))  # fmt: skip


def _instead(root: str, given: Collection[str]) -> str:
    from pkgutil import iter_modules

    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    close = _meant(root, {*public, *given, *(module.name for module in iter_modules())})
    return close or "; use the standard library, or what is installed"


def no_calls(*names: str) -> Check:
    r"""Make a check that refuses some functions, and whole modules: calls, mere references, and the usual ways around.

    It follows imports under other names, assignments, `getattr`, `__import__`, `vars()`, `__dict__` and texts put together
    of constants. What merely has the same name, such as a method `eval` of a data frame, is not meant.

    Args:
        names: Full dotted names such as `os.system`; `subprocess` stands for all in it, `eval` for the builtin.

    Example:
        >>> [str(problem) for problem in no_calls("os.system")("import os as o\nf = o.system")]
        ['line 2: `os.system` may not be used here; do it another way (no_calls)']
    """
    _want_names(names)
    rules = {canonical(name) for name in names}

    def check(code: str) -> list[Problem]:
        reading = read(code)
        found = {(use.line, rule): None for use in reading.uses if (rule := match(use.name, rules))} if reading else {}
        return [
            Problem("no_calls", f"`{rule.removeprefix('builtins.')}` may not be used here; do it another way", line)
            for line, rule in found
        ]

    return check


def _want_names(names: Collection[str]) -> None:
    if not all(isinstance(name, str) and all(part.isidentifier() for part in name.split(".")) for name in names):
        raise ConfigurationError("names", names, 'full dotted names, e.g. "os.system"')


def security(code: str) -> list[Problem]:
    r"""No habits that are risky where nothing contains them. Advice, however strict: the sandbox is what protects.

    It finds removed files, other programs, code made from text, walks through Python's insides, paths of the system,
    and loops without an end. That there is no network is advice, never an error: some places have one.

    Example:
        >>> [str(problem) for problem in security("import os\nos.system('ls')")]
        ['line 2: `os.system` starts or stops processes; compute it in Python instead (security)']
    """
    reading = read(code)
    return [replace(problem, check="security") for problem in find_risks(reading)] if reading else []


def as_advice(check: Check) -> Check:
    r"""Make a check that finds the same but refuses nothing.

    Args:
        check: A function from code to problems.

    Example:
        >>> [problem.severity for problem in as_advice(shorter_than(1))("a = 1\nb = 2")]
        ['advice']
    """

    @wraps(check)
    def advise(code: str) -> list[Problem]:
        return [replace(problem, severity="advice") for problem in check(code) or ()]

    return advise


_RUNS: tuple[Check, ...] = (parses, names_defined, shorter_than(2000))
_ADVICE: tuple[Check, ...] = (results_used, as_advice(prints_something))
STANDARD: tuple[Check, ...] = (*_RUNS, as_advice(security), *_ADVICE)
POLICIES: dict[str, tuple[Check, ...]] = {"none": (), "standard": STANDARD, "strict": (*_RUNS, security, *_ADVICE)}


def resolve_checks(checks: str | Check | Sequence[Check]) -> tuple[Check, ...]:
    """Turn a policy's name, one check or several into a tuple of checks.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(checks, str):
        if checks not in POLICIES:
            raise ConfigurationError("checks", checks, f"one of {sorted(POLICIES)}, or a list of functions")
        return POLICIES[checks]
    several = cast("tuple[Check, ...]", tuple(checks) if isinstance(checks, Sequence) else (checks,))
    if not all(callable(check) for check in several):
        raise ConfigurationError("checks", checks, f"one of {sorted(POLICIES)}, or functions from code to problems")
    return several


def find_problems(code: str, checks: Sequence[Check], *, given: Iterable[str] = ()) -> list[Problem]:
    """Run checks in order over a program; those after one that found something still run, duplicates go.

    Args:
        code: The program.
        checks: Functions from code to problems.
        given: Names that will exist when the program starts; that they are undefined is no problem.
    """
    found: dict[Problem, None] = {}
    for check in checks:
        found.update(dict.fromkeys(check(code) or ()))
    known = {f"undefined name {name!r}" for name in given}
    return [problem for problem in found if problem.message.partition(";")[0] not in known]
