"""The test harness: the program that runs tests and examples against a program in another sandbox."""

from __future__ import annotations

import ast
import json
import re
import symtable
from collections.abc import Collection, Mapping

from code_chains.analysis.parsing import called_names, nodes, parse, texts_in, tree_of
from code_chains.analysis.work import walk
from code_chains.verification.expectations.dependence import OBSERVERS
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.given import UntestableError
from code_chains.verification.expectations.instrumentation import instrumented
from code_chains.verification.expectations.ownership import Ownership, ownership
from code_chains.verification.expectations.program_names import MODULES
from code_chains.verification.expectations.top_level import DEFINITIONS, functions_of

_WORD = re.compile(r"[\w.-]+")
"""A word, or the name of a file."""
_FILES = re.compile(
    r"\bopen\(|\b(Path|pathlib|os|glob|shutil|sqlite3)\b|\bread_\w+\(|\.load\(|tmp_path|chdir|imread"
)
"""Tests that match look at files, which the program may have written."""


def build_harness(
    tests: ast.Module,
    examples: tuple[Example, ...],
    code: str,
    *,
    query: str,
    output: str,
    imported: Mapping[str, str],
    given: Collection[str],
    skipped: Collection[str],
) -> str:
    """Build the source of the harness; see `Expectations.program`."""
    owned = ownership(tests, code, query, imported=imported, given=given)
    facts = _facts(tests, code, output, owned) | {"skipped": sorted(skipped)}
    facts["known"] = sorted(_words_in(code) | {word.strip(".") for word in _WORD.findall(query)})
    parts = [f"_own({_bound_names(tests)!r})", f"_start({json.dumps(facts)!r})"]
    names: list[str] = []
    if tests.body:
        tree, names = instrumented(tests, skipped)
        parts += [
            *owned.imports,
            *(f"{name} = _program({name!r})" for name in owned.bound),
            ast.unparse(tree),
        ]
    if examples:
        name = _function_under_test(code, query)
        parts.append(f"with _case({name!r}, 1, ends=True): _tried = _program({name!r})")
        for number, example in enumerate(examples, 1):
            call = f"{name}({example.arguments})"
            if f"{number} {call}" in skipped:
                continue
            parts.append(f"with _case({call!r}, {number}):")
            parts.append(f"    _example({call!r}, lambda: _tried({example.arguments}), {example.outcome()})")
    return "\n".join([*parts, f"_finish({names!r})"])


def _facts(tests: ast.Module, code: str, output: str, owned: Ownership) -> dict[str, object]:
    """Return what the bench in the sandbox needs to know of tests and program."""
    source = ast.unparse(tests)
    has_files, inspects = bool(_FILES.search(source)), "inspect" in source
    return {
        "output": output,
        "noun": "tests" if tests.body else "examples",
        "missing": owned.missing,
        "calls": not called_names(tests).isdisjoint(functions_of(code)),
        "asked": sorted(owned.asked),
        "operands": sorted(owned.operands),
        "observers": sorted(OBSERVERS),
        "shadowed": sorted(owned.shadowed),
        "modules": sorted(MODULES.intersection(text.partition(".")[0] for text in texts_in(tests))),
        "tests": source,
        "arrays": "numpy" in source or "np." in source,
        "named": sorted(_words_in(code)) if has_files else [],
        "truthful": _truthful_classes(code),
        "files": has_files,
        "seeds": "seed(" in source,
        "inspects": inspects,
        "sources": _sources(code) if inspects else {},
    }


def _words_in(code: str) -> set[str]:
    """Return the words of the texts that a program spells out, which may be names of files."""
    return set(_WORD.findall(" ".join(texts_in(tree_of(code)))))


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
    for node in walk(tree or ast.Module([], [])):
        is_store = (
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == definition.name
        )
        bound += is_store or (isinstance(node, DEFINITIONS) and node.name == definition.name)
    return bound > 1


def _sources(code: str) -> dict[str, str]:
    """Return the source of each function and class of a program, and of their methods, by their dotted names."""
    found = dict[str, str]()
    tree = parse(code)
    for node in tree.body if tree else ():
        if not isinstance(node, DEFINITIONS) or _is_bound_again(node, tree):
            continue
        found[node.name] = ast.get_source_segment(code, node) or ""
        for item in node.body:
            if isinstance(node, ast.ClassDef) and isinstance(item, DEFINITIONS):
                found[f"{node.name}.{item.name}"] = ast.get_source_segment(code, item) or ""
    return found


# -- names ---------------------------------------------------------------------------------------------------


def _function_under_test(code: str, query: str) -> str:
    """Return the function that examples are tried on: one that the question names, or else the last one."""
    functions = [name for name in reversed(functions_of(code)) if name != "main"]
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


def _mentions(query: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", query))


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
