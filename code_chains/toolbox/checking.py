"""Find calls of tools that must fail, in a program that has not run yet."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator

from code_chains.analysis.parsing import nodes, parse
from code_chains.analysis.work import walk
from code_chains.executors.signatures import Signature
from code_chains.records import Problem
from code_chains.toolbox.arguments import wrong_arguments
from code_chains.toolbox.toolbox import Toolbox


def find_wrong_calls(code: str, toolbox: Toolbox) -> list[Problem]:
    """Return the calls whose arguments do not fit the signature of the tool, or whose literal values its schema refuses.

    What is only known when the program runs is checked then.

    Args:
        code: The program.
        toolbox: The tools that it may call.
    """
    tree = parse(code)
    if tree is None:
        return []
    rebound = set(_rebound(tree))
    problems = []
    for call in nodes(tree, ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in toolbox.signatures and name not in rebound:
            reason = _mismatch(toolbox, name, call)
            problems += [Problem("tool_calls", reason, call.lineno)] if reason else []
    return problems


def _rebound(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are a variable, a parameter, or an import of the program."""
    for node in walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.alias():
                yield node.asname or node.name


def _mismatch(toolbox: Toolbox, name: str, call: ast.Call) -> str:
    """Return why a call must fail; empty if it may succeed."""
    signature = toolbox.signatures[name]
    keywords = {each.arg: each.value for each in call.keywords if each.arg is not None}
    is_open = len(keywords) < len(call.keywords) or any(isinstance(each, ast.Starred) for each in call.args)
    # A tool with one argument takes it by any name.
    if is_open or (len(signature.parameters) == 1 and not call.args and len(keywords) == 1):
        return ""
    try:
        arguments = _python_signature(signature).bind(*call.args, **keywords).arguments
    except TypeError as error:
        return f"{error} in a call of `{signature.call}`"
    literals = {}
    for key, node in arguments.items():
        try:
            literals[key] = json.loads(json.dumps(ast.literal_eval(node)))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue  # It is computed, or no JSON.
    reason = wrong_arguments(toolbox[name].tool_call_schema, literals)
    return f"wrong arguments for `{signature.call}`: {reason}" if reason else ""


def _python_signature(signature: Signature) -> inspect.Signature:
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(each.name, kind, default=empty if each.is_required else None)
            for each in signature.parameters
        ]
    )
