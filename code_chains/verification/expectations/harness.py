"""The test harness: the program that runs tests and examples against a program in another sandbox."""

from __future__ import annotations

import ast
import builtins
import difflib
import json
import re
import symtable
import sys
from collections.abc import Collection, Mapping
from operator import attrgetter

from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import arguments_of, called_names, names_in, nodes, parse, texts_in, tree_of
from code_chains.analysis.well_known_imports import import_line
from code_chains.verification.expectations.assertions import free_names
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.instrumentation import instrumented
from code_chains.verification.expectations.oracles import OUTPUT, DataFlow, is_asked_for, is_mentioned

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_MAKERS = words(
    "partial partialmethod cache lru_cache itemgetter attrgetter methodcaller vectorize singledispatch"
)
"""What makes functions."""
_SIMILAR = 0.7
_FILES = re.compile(
    r"\bopen\(|\b(Path|pathlib|os|glob|shutil|sqlite3)\b|\bread_\w+\(|\.load\(|tmp_path|chdir|imread"
)
"""Tests that match look at files, which the program may have written."""


class UntestableError(ValueError):
    """A program cannot be tested: it defines no function, or it redefines a name of Python's that the tests use."""


def build_harness(
    tests: ast.Module, examples: tuple[Example, ...], code: str, *, query: str, output: str
) -> str:
    """Build the source of the harness; see `Expectations.program`."""
    facts = _facts(tests, code, query, output)
    parts = [f"_own({_bound_names(tests)!r})", f"_start({json.dumps(facts)!r})"]
    names: list[str] = []
    if tests.body:
        tree, names = instrumented(tests)
        parts += [*_resolve_names(tests, code, query), *_bind_for_classes(tests, code), ast.unparse(tree)]
    if examples:
        name = _function_under_test(code, query)
        parts.append(f"with _case({name!r}, 1, ends=True): _tried = _program({name!r})")
        for number, example in enumerate(examples, 1):
            call = f"{name}({example.arguments})"
            parts.append(f"with _case({call!r}, {number}):")
            parts.append(f"    _example({call!r}, lambda: _tried({example.arguments}), {example.outcome()})")
    return "\n".join([*parts, f"_finish({names!r})"])


def _facts(tests: ast.Module, code: str, query: str, output: str) -> dict[str, object]:
    """Return what the bench in the sandbox needs to know of tests and program."""
    source = ast.unparse(tests)
    has_files, inspects = bool(_FILES.search(source)), "inspect" in source
    return {
        "output": output,
        "noun": "tests" if tests.body else "examples",
        "missing": missing_names(tests, code, query),
        "tests": source,
        "arrays": "numpy" in source or "np." in source,
        "named": sorted(_words_in(code)) if has_files else [],
        "truthful": _truthful_classes(code),
        "files": has_files,
        "seeds": "seed(" in source,
        "inspects": inspects,
        "sources": _sources(code) if inspects else {},
    }


def missing_names(tests: ast.Module, code: str, query: str) -> dict[str, dict[str, object]]:
    """Return the names that tests use and nobody defines, each with whose fault that is and what to say.

    A name that neither the question nor anything in the program resembles, beside others that the program does define, is
    one that the tests have forgotten to define.
    """
    defined = {*_top_level_names(code)}
    theirs, imported = free_names(tests), _missing_imports(tests, code)
    missing = {}
    for name in theirs:
        if name in defined or name in imported:
            continue
        similar = difflib.get_close_matches(name, defined, 1, _SIMILAR)
        is_known = not query or any(is_mentioned(other, query) for other in theirs)
        is_helper = _is_only_passed(name, tests, defined)
        is_tests = is_known and is_helper and not similar and not _mentions(query, name)
        hint = f"; there is {similar[0]!r}" if similar else ""
        message = (
            f"neither the tests nor the program define {name!r}" if is_tests else f"Define {name!r}{hint}"
        )
        missing[name] = {"is_programs": not is_tests, "message": message}
    return missing


def _is_only_passed(name: str, tests: ast.Module, defined: set[str]) -> bool:
    """Return whether tests use a name in arguments of the program's functions alone: as a helper of their own."""
    passed = set[ast.AST]()
    for call in nodes(tests, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in defined:
            for value in arguments_of(call):
                passed.update(ast.walk(value))
    uses = {node for node in nodes(tests, ast.Name) if node.id == name}
    return bool(uses) and uses <= passed


def _words_in(code: str) -> set[str]:
    """Return the words of the texts that a program spells out, which may be names of files."""
    return set(re.findall(r"[\w.-]+", " ".join(texts_in(tree_of(code)))))


def _truthful_classes(code: str) -> list[str]:
    """Return the classes of a program that define whether their objects are true."""
    found = []
    for node in nodes(tree_of(code), ast.ClassDef):
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        # Without a method to be called it would only pretend to be a truth value.
        if methods & {"__bool__", "__len__"} and any(not name.startswith("__") for name in methods):
            found.append(node.name)
    return found


def _is_bound_again(
    definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, tree: ast.Module | None
) -> bool:
    """Return whether a program gives the name of a definition to something else, too."""
    bound = 0
    for node in ast.walk(tree or ast.Module([], [])):
        is_store = (
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == definition.name
        )
        bound += is_store or (isinstance(node, _DEFINITIONS) and node.name == definition.name)
    return bound > 1


def _sources(code: str) -> dict[str, str]:
    """Return the source of each function and class of a program, and of their methods, by their dotted names."""
    found = dict[str, str]()
    tree = parse(code)
    for node in tree.body if tree else ():
        if not isinstance(node, _DEFINITIONS) or _is_bound_again(node, tree):
            continue
        found[node.name] = ast.get_source_segment(code, node) or ""
        for item in node.body:
            if isinstance(node, ast.ClassDef) and isinstance(item, _DEFINITIONS):
                found[f"{node.name}.{item.name}"] = ast.get_source_segment(code, item) or ""
    return found


# -- names ---------------------------------------------------------------------------------------------------


def _function_under_test(code: str, query: str) -> str:
    """Return the function that examples are tried on: one that the question names, or else the last one."""
    functions = [name for name in reversed(_functions_of(code)) if name != "main"]
    if not functions:
        raise UntestableError(
            "The program defines no function that could be tried on the examples. Define one."
        )
    for name in functions:
        if _mentions(query, name):
            return name
    helpers = _helpers(code)
    return next((name for name in functions if name not in helpers), functions[0])


def _helpers(code: str) -> set[str]:
    """Return the functions of a program that other functions of it call."""
    tree = parse(code)
    helpers = set[str]()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            helpers |= called_names(node) - {node.name}
    return helpers


def _top_level_names(code: str) -> dict[str, bool]:
    """Return the names that a program binds at its top level, and whether each is a function or class."""
    tree = parse(code)
    names: dict[str, bool] = {}
    makers = set(_MAKERS)
    for node in tree.body if tree else ():
        if isinstance(node, _DEFINITIONS):
            names[node.name] = True
            makers |= {node.name} if _makes_functions(node) else set()
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = _is_function(node.value, names, makers)
        elif isinstance(node, ast.Assign):
            is_function = _is_function(node.value, names, makers)
            names |= {target.id: is_function for target in node.targets if isinstance(target, ast.Name)}
    return names


def _makes_functions(node: ast.stmt) -> bool:
    """Return whether a class defines how its objects are called."""
    methods = node.body if isinstance(node, ast.ClassDef) else []
    return any(isinstance(method, ast.FunctionDef) and method.name == "__call__" for method in methods)


def _is_function(value: ast.expr | None, names: Mapping[str, bool], makers: Collection[str]) -> bool:
    """Return whether an expression is a function: an alias, a method of an object, or what makes one returns."""
    match value:
        case ast.Name(id=name):
            return names.get(name, False)
        case ast.Attribute(value=ast.Call(func=ast.Name(id=owner))):
            return names.get(owner, False)
        case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)):
            return maker in makers
    return isinstance(value, ast.Lambda)


def _functions_of(code: str) -> list[str]:
    """Return the names of the functions and classes that a program binds at its top level."""
    return [name for name, is_function in _top_level_names(code).items() if is_function]


def _mentions(query: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", query))


def _resolve_names(tests: ast.Module, code: str, query: str) -> list[str]:
    """Return statements that bind names which both Python (or a library) and the program could define.

    Invariant: such a name is bound to the program's only if the tests do nothing with it but test it; one of Python's also
    only if the question asks for it. In a statement that depends on another name of the program, it may be the oracle.

    Raises:
        UntestableError: The question asks for it, and the tests also compare with it.
    """
    owned = {*_functions_of(code)}
    asked = {name for name in owned if is_asked_for(name, query)}
    free = free_names(tests)
    if not owned.intersection(free) and OUTPUT not in names_in(tests):  # Nothing else can be what is tested.
        asked |= owned & names_in(tests)
    imports, flow = _missing_imports(tests, code), DataFlow(tests)
    of_program = {*free} - imports.keys() | names_in(tests) & vars(builtins).keys() & asked
    for name in imports.keys() & (_top_level_names(code).keys() - owned):
        # A variable of the program is bound to nothing: it is looked up at each use, as calls change it.
        if not flow.meets(name, of_program - {name}):
            del imports[name]
    lines = []
    for name in sorted(names_in(tests) & vars(builtins).keys() & asked | imports.keys()):
        if name not in owned or (imports.get(name, "").startswith("import") and name not in asked):
            lines.append(imports[name])
            continue
        others = of_program | (owned & imports.keys())
        if not flow.meets(name, others - {name}):
            lines.append(f"{name} = _program({name!r})")
        else:
            raise UntestableError(
                f"The program defines {name!r}, which has another meaning in Python. Rename it."
            )
    return sorted(lines)


def _bind_for_classes(tests: ast.Module, code: str) -> list[str]:
    """Return statements that bind what bodies of classes use: Python looks there for names in no other way."""
    used = set[str]()
    for kind in nodes(tests, ast.ClassDef):
        used |= names_in(*(node for node in kind.body if not isinstance(node, _DEFINITIONS)))
        used |= names_in(*(one for node in kind.body for one in getattr(node, "decorator_list", ())))
    shared = used.intersection(_functions_of(code), free_names(tests))
    return [f"{name} = _program({name!r})" for name in sorted(shared)]


def _missing_imports(tests: ast.Module, code: str) -> dict[str, str]:
    """Return the imports that tests lack, by name.

    Invariant: tests of a function that Python has as well, such as `factorial`, are never tests of Python's.
    """
    free = free_names(tests)
    imports = {name: line for name in free if (line := _missing_import(name, tests))}
    is_all = len(imports) == len(free) and OUTPUT not in names_in(tests)
    if is_all and not set(free).intersection(_functions_of(code)):
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


def _bound_names(tests: ast.Module) -> list[str]:
    """Return the names that the tests bind outside of functions, even in branches that are not taken."""
    top = symtable.symtable(ast.unparse(tests), "<tests>", "exec")
    bound, tables = set[str](), [top]
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            is_global = table is top or symbol.is_declared_global()
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
        tables += table.get_children()
    return sorted(bound)
