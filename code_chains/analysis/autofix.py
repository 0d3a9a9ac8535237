"""Fix programs without a model: small models repeat their mistakes even after feedback."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from code_chains.analysis.columns import columns_of
from code_chains.analysis.parsing import nodes, parse, syntax_tree
from code_chains.analysis.well_known_imports import import_line, words_of
from code_chains.analysis.work import walk
from code_chains.records import Execution

_VALUES = {"pi", "ascii_letters", "ascii_lowercase", "digits", "punctuation", *words_of("typing")}
"""Those that are no functions; any other name that is not called may be a variable that the program forgot to make."""
_MAX_UNDEFINED = 20
"""Undefined names of which the import is looked up; with more it is another kind of mistake."""
_UNDEFINED, _QUOTED = re.compile("undefined name '"), re.compile("'([^']*)'")
_READING = re.compile(r"^ *read it with:\n((?: +(?:import |from |\w+ = )[^\n]*\n?)+)", re.MULTILINE)
_READS = re.compile(r"^ *(\w+) = ", re.MULTILINE)
_SHOWN_IMPORT = re.compile(r"^from (\w[\w.]*) import (\w[\w, ]*)$", re.MULTILINE)


class FixedProgram(NamedTuple):
    """A fixed program, and short descriptions of the fixes."""

    code: str
    autofixes: tuple[str, ...]


def autofix(outcome: Mapping[str, Any], context: str = "", profiles: str = "") -> FixedProgram | None:
    """Fix a program that failed, if what is missing is certain.

    A missing import is added if the context shows it, or if the module is well known, and lines that read a file if its
    profile shows them for the name that is missing. If nothing was printed, the result
    of the last statement is: the name that it binds, or the value of the expression in its last branch. If a value is
    missing, it is the name that the last statement binds, or the only one that it prints. A column that was not found gets
    the name that differs in blanks, line breaks or capitals alone.

    Args:
        outcome: What a failed attempt added: `code`, `problems`, `execution` and `verdict`.
        context: What the model was shown, such as examples and references of a package.
        profiles: What it was shown of files.

    Returns:
        The fixed program, or None if no fix is known.
    """
    tree = parse(outcome["code"])
    if tree is None or not tree.body:
        return None
    # Integers of more than 4300 digits and expressions that are nested very deeply have no text.
    with suppress(ValueError, RecursionError):
        return _fixed(outcome, tree, context, profiles)
    return None


def _fixed(outcome: Mapping[str, Any], tree: ast.Module, context: str, profiles: str) -> FixedProgram | None:
    if undefined := _undefined(outcome):
        fixed = _with_missing_imports(outcome, tree, undefined, context)
        return fixed or _with_reading(outcome, tree, undefined, profiles)
    execution: Execution = outcome["execution"]
    if not execution.ok:
        return _with_columns(outcome, profiles)
    by = outcome["verdict"].by
    if by == "none" and not execution.output.strip() and not execution.artifacts:
        return _with_output(outcome["code"])
    if by == "type" and execution.result is None:
        return _with_value(outcome["code"], tree)
    return None


# -- a missing import ----------------------------------------------------------------------------------------


def _undefined(outcome: Mapping[str, Any]) -> list[str]:
    """Return the names that a check or the run itself found to be undefined."""
    messages = list(filter(_UNDEFINED.match, map(attrgetter("message"), outcome["problems"])))
    error = outcome["execution"].error
    if error is not None and error.type in ("NameError", "UnboundLocalError"):
        messages.append(error.message)
    names = map(itemgetter(1), filter(None, map(_QUOTED.search, messages)))
    undefined = list(dict.fromkeys(names))
    # For each the program is read; and of one with more no import is all that is missing.
    return undefined if len(undefined) <= _MAX_UNDEFINED else []


def _with_missing_imports(
    outcome: Mapping[str, Any], tree: ast.Module, undefined: list[str], context: str
) -> FixedProgram | None:
    imports = (_import(name, tree, context) for name in undefined)
    return _with_lines(outcome, tree, list(dict.fromkeys(filter(None, imports))))


def _with_lines(outcome: Mapping[str, Any], tree: ast.Module, added: list[str]) -> FixedProgram | None:
    """Return the program with lines at its top; None without any, or if one was added before."""
    autofixes = tuple(map("added `{}`".format, added))
    if not autofixes or set(autofixes) & set(outcome.get("autofixes") or ()):
        return None
    return FixedProgram(_with_imports(tree, outcome["code"], added), autofixes)


def _with_reading(
    outcome: Mapping[str, Any], tree: ast.Module, undefined: list[str], profiles: str
) -> FixedProgram | None:
    """Return the program with the lines that read its file, which small models take for done."""
    blocks = _READING.findall(profiles)
    if len(blocks) != 1:  # Which file is meant is not certain.
        return None
    names = _READS.findall(blocks[0])
    if not set(names) & set(undefined) or len(set(names)) != len(names):
        return None
    return _with_lines(outcome, tree, [line.strip() for line in blocks[0].splitlines()])


def _with_columns(outcome: Mapping[str, Any], profiles: str) -> FixedProgram | None:
    """Return the program with the names of columns as they are, if they differ in blanks, line breaks or capitals alone."""
    error = outcome["execution"].error
    if error is None or error.type not in ("KeyError", "ValueError"):
        return None
    columns = columns_of(profiles)
    plain = Counter(map(_plain, columns))
    known = {_plain(column): column for column in columns if plain[_plain(column)] == 1}
    tree = syntax_tree(outcome["code"])  # One of its own, as it is changed.
    fixes = list[str]()
    for node in nodes(tree, ast.Constant):
        if not isinstance(node.value, str) or node.value in columns or node.value not in error.message:
            continue
        if column := known.get(_plain(node.value)):
            fixes.append(f"named the column {column!r}")
            node.value = column
    return FixedProgram(ast.unparse(tree), tuple(dict.fromkeys(fixes))) if fixes else None


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def _import(name: str, tree: ast.Module, context: str) -> str:
    """Return the import that defines a name, as the program uses it; empty if that is not certain."""
    used = {node.attr for node in nodes(tree, ast.Attribute) if _is_name(node.value, name)}
    called = any(_is_name(call.func, name) for call in nodes(tree, ast.Call))
    for node in nodes(tree, ast.Name):
        if node.id == name and not isinstance(node.ctx, ast.Load):
            return ""  # It is a variable of the program's own that comes too late.
    if line := _shown_import(name, context):
        return line
    if name == "datetime":
        whole = not called and used <= {"date", "datetime", "timedelta", "time", "timezone"}
        return "import datetime" if whole else "from datetime import datetime"
    line = import_line(name)
    if line.startswith("import"):
        return line if used else ""
    if line:
        return line if name in _VALUES or _only_called(name, tree) else ""
    return f"import {name}" if name in sys.stdlib_module_names and used and not called else ""


def _shown_import(name: str, context: str) -> str:
    """Return the import of a name that the model was shown; empty if there is none, or more than one."""
    modules = {
        module for module, names in _SHOWN_IMPORT.findall(context) if name in re.split(r",\s*", names.strip())
    }
    return f"from {modules.pop()} import {name}" if len(modules) == 1 else ""


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _only_called(name: str, tree: ast.Module) -> bool:
    """Return whether a name is only ever called, or used as a decorator, a base class or an attribute's owner."""
    owners = list[ast.expr]()
    for node in walk(tree):
        match node:
            case ast.Call(func=owner) | ast.Attribute(value=owner) | ast.Subscript(value=owner):
                owners.append(owner)
            case ast.ClassDef():
                owners += [*node.decorator_list, *node.bases]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                owners += node.decorator_list
    ids = set(map(id, owners))
    return all(id(node) in ids for node in nodes(tree, ast.Name) if node.id == name)


def _with_imports(tree: ast.Module, code: str, added: list[str]) -> str:
    """Return the program with imports at its top, after its docstring and `from __future__`."""
    head = 0
    for number, node in enumerate(tree.body):
        docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            head = node.end_lineno or 0
    lines = code.split("\n")
    return "\n".join([*lines[:head], *added, *lines[head:]])


# -- an outcome that is not shown ----------------------------------------------------------------------------


def _with_output(code: str) -> FixedProgram | None:
    tree = syntax_tree(code)  # One of its own, as it is changed.
    last = tree.body[-1]
    if isinstance(last, ast.FunctionDef) and not _needs_arguments(last):
        return FixedProgram(f"{code.rstrip()}\n\n{last.name}()\n", (f"called `{last.name}()` at the end",))
    while isinstance(last, ast.If | ast.With | ast.Try):
        last = (last.body if not isinstance(last, ast.Try) else last.orelse or last.body)[-1]
    if name := _bound(last):
        return FixedProgram(f"{code.rstrip()}\nprint({name})\n", (f"printed `{name}` at the end",))
    if isinstance(last, ast.Expr) and last is not tree.body[-1]:
        last.value = ast.Call(ast.Name("print", ast.Load()), [last.value], [])
        fixed = ast.unparse(ast.fix_missing_locations(tree))
        return FixedProgram(fixed, ("printed the last expression",))
    return None


def _with_value(code: str, tree: ast.Module) -> FixedProgram | None:
    name = _bound(tree.body[-1]) or _printed(tree.body[-1])
    if not name:
        return None
    return FixedProgram(f"{code.rstrip()}\n{name}\n", (f"ended with `{name}`",))


def _printed(statement: ast.stmt) -> str:
    """Return the name that a statement prints, if that is certain: beside it there are constants alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not _is_name(call.func, "print"):
        return ""
    match [part for part in call.args if not isinstance(part, ast.Constant)]:
        case [ast.Name(id=name)]:
            return name
    return ""


def _needs_arguments(function: ast.FunctionDef) -> bool:
    arguments = function.args
    return (
        len(arguments.posonlyargs) + len(arguments.args) > len(arguments.defaults)
        or None in arguments.kw_defaults
    )


def _bound(statement: ast.stmt) -> str:
    """Return the name that a statement assigns."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign) and getattr(statement, "value", None):
        target = statement.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""
