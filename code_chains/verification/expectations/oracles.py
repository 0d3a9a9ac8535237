"""Test oracles: where the values that tests compare with come from, and what tests must never pass to a program."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from code_chains.analysis.parsing import captured_names, holds, nodes
from code_chains.analysis.work import walk
from code_chains.errors import InputError

OUTPUT = "output"
"""The name under which tests see what the program printed."""
_CALLER = "<caller>"
"""What flows into parameters of a function that the program may call."""
_DANGEROUS_BUILTINS = {
    *("eval", "exec", "compile", "__import__", "getattr", "setattr", "delattr", "open"),
    *("globals", "locals", "vars", "input", "breakpoint"),
}
"""Functions of Python's that would let a program act in the place of the tests."""
_OF_FILES = {"open", "Path", "pathlib", "os", "io", "linecache"}
"""With these, tests read files, which may be the program's."""
_RUNNING = {"runpy", "subprocess", "spec_from_file_location", "SourceFileLoader"}
"""What runs files, which may be the program's."""
_EXECUTING = {"eval", "exec", "compile", "__import__"}
_NAMESPACES = {"globals", "locals", "vars"}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class DataFlow:
    """The names on which values in tests depend, through variables, loops, parameters and results.

    Invariant: scopes and branches are not distinguished, so the result may hold too many names, but never too
        few.

    Args:
        tests: The tests.
        versions: Names of variables that were bound anew; see `dependence.versions`. Others have one name.
    """

    def __init__(self, tests: ast.Module, versions: Mapping[ast.Name, str] | None = None) -> None:
        self._sources: dict[str, set[str]] = defaultdict(set)
        self._tests, self._versions = tests, versions or {}
        self._functions = {node.name: node for node in walk(tests) if isinstance(node, _FUNCTIONS)}
        called = {call.func for call in nodes(tests, ast.Call)}
        for node in walk(tests):
            for targets, values in _bindings(node):
                self._bind(targets, values)
            if isinstance(node, ast.Call):
                self._pass(node)
            elif isinstance(node, ast.Lambda):
                self._escape(node.args)
            elif isinstance(node, ast.Name | ast.Attribute) and node not in called:
                self._escape_named(node)

    def of(self, *parts: ast.AST) -> set[str]:
        """Return all names that some expressions depend on, including their own."""
        return self._reached(self._names_in(*parts))

    def _names_in(self, *parts: ast.AST) -> set[str]:
        found = (node for part in parts for node in nodes(part, ast.Name))
        return {self._versions.get(node, node.id) for node in found}

    def _reached(self, pending: set[str]) -> set[str]:
        reached: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending |= self._sources.get(name, set())
        return reached

    def meets(self, name: str, others: Iterable[str]) -> bool:
        """Return whether a statement depends on a name and on one of the others, on output or on what the program passes."""
        mine = {*others, OUTPUT, _CALLER} - {name}
        units = itertools.chain.from_iterable(map(_units, nodes(self._tests, ast.stmt)))
        return any(name in reached and reached & mine for reached in map(self.of, units))

    def _bind(self, targets: Iterable[ast.AST], values: Iterable[ast.AST]) -> None:
        sources = self._names_in(*values)
        for name in self._names_in(*targets):
            self._sources[name] |= sources

    def _pass(self, call: ast.Call) -> None:
        """Make parameters of a function of the tests depend on the arguments of a call."""
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if function := self._functions.get(name):
            sources = self._names_in(*call.args, *call.keywords)
            for parameter in _parameters(function.args):
                self._sources[parameter] |= sources

    def _escape(self, arguments: ast.arguments) -> None:
        """Mark the parameters of a function that the program may call with any arguments."""
        for parameter in _parameters(arguments):
            self._sources[parameter].add(_CALLER)

    def _escape_named(self, node: ast.Name | ast.Attribute) -> None:
        name = node.id if isinstance(node, ast.Name) else node.attr
        if function := self._functions.get(name):
            self._escape(function.args)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    parameters = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    for parameter in parameters:
        if parameter is not None and parameter.arg not in ("self", "cls"):
            yield parameter.arg


def _bindings(node: ast.AST) -> Iterator[tuple[list[ast.AST], list[ast.AST]]]:
    """Yield what is bound, and to what."""
    match node:
        case ast.Assign():
            yield [*node.targets], [node.value]
        case ast.AugAssign() | ast.NamedExpr() | ast.AnnAssign() if node.value is not None:
            yield [node.target], [node.value]
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield [node.target], [node.iter]
        case ast.withitem() if node.optional_vars is not None:
            yield [node.optional_vars], [node.context_expr]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield [ast.Name(node.name)], [*node.body, *node.decorator_list]
            yield _with_defaults(node.args)
        case ast.ClassDef():
            yield [ast.Name(node.name)], [*node.body, *node.bases, *node.decorator_list]
        case ast.Lambda():
            yield _with_defaults(node.args)
        case _:
            yield from _more_bindings(node)


def _more_bindings(node: ast.AST) -> Iterator[tuple[list[ast.AST], list[ast.AST]]]:
    match node:
        case ast.Try():
            yield _named(handler.name for handler in node.handlers), [*node.body]
        case ast.Match():
            yield _named(captured_names(node)), [node.subject]
        case ast.Expr(value=ast.Call() as call):
            yield mutated(call), [call]
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if not name.startswith("assert"):
            yield [receiver], [*node.args, *node.keywords]  # It may keep what it is given, as a list does.


def _named(names: Iterable[str | None]) -> list[ast.AST]:
    return list(map(ast.Name, filter(None, names)))


def mutated(call: ast.Call) -> list[ast.AST]:
    """Return what a call on its own may change; an assertion changes nothing."""
    if not isinstance(call.func, ast.Attribute):
        return [*call.args, *call.keywords]
    return [] if call.func.attr.startswith("assert") else [call.func.value, *call.args, *call.keywords]


def _with_defaults(arguments: ast.arguments) -> tuple[list[ast.AST], list[ast.AST]]:
    return _named(_parameters(arguments)), [*arguments.defaults, *filter(None, arguments.kw_defaults)]


def _units(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are evaluated together: of one with a body, only its head."""
    if not hasattr(node, "body"):
        yield node
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.If | ast.While):
        yield node.test
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield from node.items


# -- whose names they are ------------------------------------------------------------------------------------


def is_mentioned(name: str, query: str) -> bool:
    """Return whether a question contains a name as code: called, defined, or in backticks.

    Example:
        >>> is_mentioned("max", "Write max(numbers)."), is_mentioned("max", "Find the max of the numbers.")
        (True, False)
    """
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}\s*\(|`{re.escape(name)}(?!\w)", query))


def operand_names(tests: ast.Module) -> set[str]:
    """Return the names that tests use as operands only: never as an argument, as a class, or in a call."""
    parents = {child: node for node in walk(tests) for child in ast.iter_child_nodes(node)}
    operands, others = set[str](), set[str]()
    for node in nodes(tests, ast.Name):
        (operands if _is_operand(node, parents) else others).add(node.id)
    return operands - others


def _is_operand(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    match parent := parents[node]:
        case ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Assert():
            return True
        case ast.Subscript(value=value, slice=index):  # `list[int]` is a class.
            return value is node and not holds(index, ast.Name)
        case ast.List() | ast.Tuple() | ast.Set():
            return _is_operand(parent, parents)
    return False


def never_text(name: str, tests: ast.Module) -> bool:
    """Return whether tests compare a name with values that are no text, and use it in no other way."""
    compared = set[ast.AST]()
    for node in nodes(tests, ast.Compare):
        sides = [node.left, *node.comparators]
        if not any(isinstance(item.value, str | bytes) for item in nodes(node, ast.Constant)):
            compared.update(sides)
    return all(node in compared for node in nodes(tests, ast.Name) if node.id == name)


# -- what tests must not lend --------------------------------------------------------------------------------


def refuse_dangerous_builtins(tests: ast.Module, theirs: Iterable[str]) -> None:
    """Refuse tests that let a program act in their place.

    Args:
        tests: The tests.
        theirs: Names that tests take from the program.

    Raises:
        InputError: They hand on a function such as `eval`, run what the program gave, or hand on their own
            namespace.
    """
    defined = set(defined_names(tests))
    if runs := _RUNNING.intersection(_all_names(tests)):
        raise InputError(
            f"The tests use {min(runs)}, with which they could run a file of the program. Call its functions."
        )
    used = {id(call.func): call for call in nodes(tests, ast.Call)}
    looked_at = set(map(id, itertools.chain.from_iterable(map(_read_only_parts, walk(tests)))))
    flow, program = DataFlow(tests), {*theirs, OUTPUT, _CALLER}
    # An operand is what a program has bound: a function of Python's meets no object of a program as one.
    dangerous = (
        _DANGEROUS_BUILTINS
        - defined
        - {name for name in operand_names(tests) if not flow.meets(name, theirs)}
    )
    for node in nodes(tests, ast.Name):
        if node.id not in dangerous or not isinstance(node.ctx, ast.Load):
            continue
        call = used.get(id(node))
        if call is None:
            raise InputError(f"The tests hand on {node.id!r}, with which a program could forge its outcome.")
        if node.id in _EXECUTING and flow.of(*call.args, *call.keywords) & (program | _OF_FILES):
            raise InputError(
                f"The tests {node.id} what the program gives. Compare it, or use ast.literal_eval."
            )
        if node.id in _NAMESPACES and not call.args and id(call) not in looked_at:
            raise InputError(
                f"The tests hand on {node.id}(), in which a program could change what they compare with."
            )


def _all_names(tests: ast.Module) -> Iterator[str]:
    """Yield the names, attributes and modules that tests use."""
    for node in walk(tests):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            yield getattr(node, "module", None) or ""


def defined_names(tests: ast.Module) -> Iterator[str]:
    """Yield the names that tests define."""
    for node in walk(tests):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, _FUNCTIONS | ast.ClassDef):
            yield node.name


def _read_only_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of an expression that are only read: `globals()["f"]`, `"f" in globals()`."""
    if isinstance(node, ast.Subscript | ast.Attribute):
        return [node.value]
    return [*node.comparators] if isinstance(node, ast.Compare) else []
