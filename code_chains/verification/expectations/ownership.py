"""Whose the names in tests are: those of the tests themselves, of Python, or of the program."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import attrgetter

from code_chains.analysis.parsing import arguments_of, names_in, nodes
from code_chains.analysis.well_known_imports import import_line
from code_chains.analysis.work import walk
from code_chains.verification.expectations.assertions import free_names
from code_chains.verification.expectations.given import UntestableError
from code_chains.verification.expectations.oracles import (
    OUTPUT,
    DataFlow,
    defined_names,
    is_mentioned,
    never_text,
    operand_names,
)
from code_chains.verification.expectations.top_level import DEFINITIONS, functions_of, top_level_names

_SIMILAR = 0.7
_PYTHONS = {name for name in vars(builtins) if not name.startswith("_")}
_EXCEPTIONS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
"""What a question names that a function raises, and no program is asked to define."""


@dataclass(frozen=True)
class Ownership:
    """Whose the names are that both Python and a program could define.

    Attributes:
        asked: Names of Python's that are the program's, as the question or a solution asks for them.
        operands: Names of Python's, and `output`, that are the program's if it binds them to plain data.
        missing: Names that tests use and nothing defines, each with whose fault that is and what to say.
        imports: Statements that import what tests lack.
        bound: Names to bind to the program's before tests begin.
        shadowed: Names of Python's that the program defines as well, and tests do not mean.
    """

    asked: frozenset[str]
    operands: frozenset[str]
    missing: Mapping[str, Mapping[str, object]]
    imports: tuple[str, ...]
    bound: tuple[str, ...]
    shadowed: frozenset[str]


def ownership(
    tests: ast.Module,
    code: str,
    query: str,
    *,
    imported: Mapping[str, str] | None = None,
    given: Collection[str] = (),
) -> Ownership:
    """Return whose the names in tests are.

    Invariant: a name of Python's is the program's only if the question asks for it as code, a starter or solution binds it,
    or tests import it from the program; or if it is plain data there and the tests use it as an operand only. In a statement
    that depends on another name of the program, it may be the oracle.

    Args:
        tests: The tests.
        code: The program.
        query: The question.
        imported: What tests import from the program, with the module that they take it from if that has a name of its own.
        given: Names that a starter or a solution binds.

    Raises:
        UntestableError: The program defines such a name, and the tests may compare with it.
    """
    imported = imported or {}
    free, functions, bound = free_names(tests), set(functions_of(code)), top_level_names(code)
    imports, flow = _missing_imports(tests, functions), DataFlow(tests)
    known = names_in(tests) & _PYTHONS - set(defined_names(tests))
    asked = known & {*given, *imported}
    mentioned = {name for name in known - asked - _EXCEPTIONS if is_mentioned(name, query)}
    of_program = {*free} - imports.keys() | asked | mentioned

    def meets(name: str) -> bool:
        return flow.meets(name, of_program | (functions & imports.keys()) - {name})

    asked |= {name for name in mentioned if _is_programs(name, meets(name), name in bound)}
    of_program -= mentioned - asked
    candidates = (known - asked) & operand_names(tests)
    if OUTPUT in names_in(tests) and (OUTPUT in given or (OUTPUT in bound and never_text(OUTPUT, tests))):
        candidates.add(OUTPUT)
    operands = {name for name in candidates if _is_programs(name, meets(name), name in bound)}
    for name in imports.keys() & (bound.keys() - functions):
        # A variable of the program is bound to nothing: it is looked up at each use, as calls change it.
        if not flow.meets(name, of_program - {name}):
            del imports[name]
    meant = {
        name
        for name in imports.keys() & functions
        if (imports[name].startswith("from") or is_mentioned(name, query))
        and _is_programs(name, meets(name), True)
    }
    return Ownership(
        frozenset(asked),
        frozenset(operands),
        _missing(tests, {*free, *asked} - imports.keys(), bound, query, imported, given),
        tuple(sorted({imports[name] for name in imports.keys() - meant})),
        tuple(sorted(meant | _used_in_classes(tests) & functions & ({*free} | asked))),
        frozenset(known & functions - asked),
    )


def _is_programs(name: str, meets: bool, is_bound: bool) -> bool:
    """Return whether a name is the program's: not if tests may compare with it, which is refused if the program binds it."""
    if meets and is_bound:
        raise UntestableError(
            f"The program defines {name!r}, which has another meaning in Python. Rename it."
        )
    return not meets


def missing_names(
    tests: ast.Module,
    code: str,
    query: str,
    *,
    imported: Mapping[str, str] | None = None,
    given: Collection[str] = (),
) -> set[str]:
    """Return what is said of names that the tests use, and that nothing defines; see `ownership`."""
    try:
        found = ownership(tests, code, query, imported=imported, given=given)
    except UntestableError:
        return set()
    return {str(name["message"]) for name in found.missing.values()}


def _missing(
    tests: ast.Module,
    theirs: set[str],
    defined: Mapping[str, bool],
    query: str,
    imported: Mapping[str, str],
    given: Collection[str],
) -> dict[str, dict[str, object]]:
    """Return the names that nothing defines.

    A name is the program's to define if the question, a starter or a solution has it, or the program something like it. What
    tests take from a module that is not there, or put beside a call of what the program defines, is their own mistake.
    """
    missing = {}
    for name in sorted(theirs - defined.keys()):
        similar = difflib.get_close_matches(name, defined, 1, _SIMILAR)
        is_named = name in given or bool(re.search(rf"\b{re.escape(name)}\b", query)) or bool(similar)
        if similar and is_mentioned(similar[0], query) and not is_mentioned(name, query):
            is_named = name in given  # The program has what the question asks for.
        module = imported.get(name, "")
        is_own = (
            bool(given)
            or (bool(similar) and not is_named)
            or bool(module)
            or _is_beside_calls(name, tests, defined)
        )
        if is_own and not is_named:
            reason = f", and there is no module {module!r}" if module else ""
            message = f"neither the tests nor the program define {name!r}{reason}"
        else:
            message = f"Define {name!r}" + (f"; there is {similar[0]!r}" if similar else "")
        missing[name] = {"is_programs": is_named or not is_own, "message": message}
    return missing


def _is_beside_calls(name: str, tests: ast.Module, defined: Collection[str]) -> bool:
    """Return whether tests only pass a name to functions of the program, or compare it with what the program defines."""
    beside = set[ast.AST]()
    for node in nodes(tests, ast.Compare):
        sides = [node.left, *node.comparators]
        if names_in(*sides) & set(defined):
            beside.update(side for side in sides if isinstance(side, ast.Name))
    for call in nodes(tests, ast.Call):
        if _calls(call, defined):
            beside.update(part for value in arguments_of(call) for part in walk(value))
    uses = {node for node in nodes(tests, ast.Name) if node.id == name}
    return bool(uses) and uses <= beside


def _calls(node: ast.AST, defined: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined


def _used_in_classes(tests: ast.Module) -> set[str]:
    """Return the names that bodies of classes use: Python looks there for names in no other way."""
    used = set[str]()
    for kind in nodes(tests, ast.ClassDef):
        used |= names_in(*(node for node in kind.body if not isinstance(node, DEFINITIONS)))
        used |= names_in(*(one for node in kind.body for one in getattr(node, "decorator_list", ())))
    return used


def _missing_imports(tests: ast.Module, functions: Collection[str]) -> dict[str, str]:
    """Return the imports that tests lack, by name.

    Invariant: tests of a function that Python has as well, such as `factorial`, are never tests of Python's.
    """
    free = free_names(tests)
    imports = {name: line for name in free if (line := _missing_import(name, tests))}
    is_all = len(imports) == len(free) and OUTPUT not in names_in(tests)
    if is_all and not set(free).intersection(functions):
        return {name: line for name, line in imports.items() if line.startswith("import")}
    return imports


def _missing_import(name: str, tests: ast.Module) -> str:
    """Return the import that a name of the tests lacks, if the name is a well-known one."""
    owners = map(attrgetter("value"), nodes(tests, ast.Attribute))
    is_module = any(isinstance(owner, ast.Name) and owner.id == name for owner in owners)
    line = import_line(name)
    if not line and name in {*sys.stdlib_module_names, "pytest"}:
        line = f"import {name}"
    return line if line.startswith("from") or is_module else ""
