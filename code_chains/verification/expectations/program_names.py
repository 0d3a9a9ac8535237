"""What tests import from the program, or of pyplot's state, as names of the program."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys

from code_chains.analysis.dotted_names import words
from code_chains.analysis.work import walk
from code_chains.verification.expectations.assertions import PROGRAM_MODULE
from code_chains.verification.expectations.oracles import defined_names

MODULES = words(
    "solution main program submission answer exercise student script app task homework your_module my_module module"
    " your_script mymodule solutions student_code your_code my_script"
)
"""What tests call the module that they test."""
_PYPLOT = "matplotlib.pyplot"


def of_program(tests: ast.Module) -> tuple[ast.Module, dict[str, str]]:
    """Return tests that use names of the program as such, without importing it, and pyplot where the program drew.

    Returns:
        The tests, and the names that they import from the program, each with its module if that is not one of the usual
        names for a program.
    """
    imported, modules = dict[str, str](), set[str]()
    renamed = dict[str, str]()
    for node in walk(tests):
        if isinstance(node, ast.ImportFrom) and is_of_program(node.module or "", node.level):
            module = (node.module or "").partition(".")[0]
            renamed |= {alias.asname: alias.name for alias in node.names if alias.asname}
            imported |= {
                alias.name: "" if module in MODULES or node.level else module for alias in node.names
            }
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name in MODULES}
    changed: ast.Module = _Names(renamed, modules, set(defined_names(tests))).visit(tests)
    return ast.fix_missing_locations(changed), imported


def is_of_program(module: str, level: int) -> bool:
    """Return whether a module that tests import is the program: it is called so, or nobody has one of this name."""
    top = module.partition(".")[0]
    if level or top in MODULES:
        return True
    return top not in sys.stdlib_module_names and not _is_installed(top)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


class _Names(ast.NodeTransformer):
    """Turn what is taken from the program's module into names of the program.

    Args:
        renamed: What tests call names that they import, with the program's own.
        modules: What they call the module.
        own: Names that they bind themselves, or that are Python's, which the program's are told from.
    """

    def __init__(self, renamed: dict[str, str], modules: set[str], own: set[str]) -> None:
        self._renamed, self._modules, self._own = renamed, modules, {*own, *vars(builtins)}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if is_of_program(node.module or "", node.level):
            return ast.copy_location(ast.Pass(), node)
        if node.module == "matplotlib" and [alias.name for alias in node.names] == ["pyplot"]:
            return ast.copy_location(_program_module(node.names[0].asname or "pyplot"), node)
        if node.module == _PYPLOT and node.names[0].name != "*":
            return [
                ast.copy_location(_program_module(alias.asname or alias.name, alias.name), node)
                for alias in node.names
            ]
        return node

    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        statements, kept = list[ast.stmt](), list[ast.alias]()
        for alias in node.names:
            if alias.name == _PYPLOT and alias.asname:
                statements.append(_program_module(alias.asname))
            elif alias.name not in MODULES:
                kept.append(alias)
        if kept:
            statements.append(ast.Import(kept))
        return [ast.copy_location(statement, node) for statement in statements or [ast.Pass()]]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_of_module = isinstance(node.value, ast.Name) and node.value.id in self._modules
        if not is_of_module or not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        if node.attr in self._own:
            call = ast.Call(ast.Name("_program", ast.Load()), [ast.Constant(node.attr)], [])
            return ast.copy_location(call, node)
        return ast.copy_location(ast.Name(node.attr, node.ctx), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_module = node.id in self._modules
        node.id = PROGRAM_MODULE if is_module else self._renamed.get(node.id, node.id)
        return node


def _program_module(name: str, attribute: str = "") -> ast.stmt:
    source = f"{name} = _module({_PYPLOT!r})" + (f".{attribute}" if attribute else "")
    return ast.parse(source).body[0]
