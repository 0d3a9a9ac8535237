"""Test oracles: where the values that tests compare with come from, and what tests must never pass to a program."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from code_chains.analysis.parsing import captured_names, names_in, nodes
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
    """

    def __init__(self, tests: ast.Module) -> None:
        self._sources: dict[str, set[str]] = defaultdict(set)
        self._tests = tests
        self._functions = {node.name: node for node in ast.walk(tests) if isinstance(node, _FUNCTIONS)}
        called = {call.func for call in nodes(tests, ast.Call)}
        for node in ast.walk(tests):
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
        reached: set[str] = set()
        pending = names_in(*parts)
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
        sources = names_in(*values)
        for name in names_in(*targets):
            self._sources[name] |= sources

    def _pass(self, call: ast.Call) -> None:
        """Make parameters of a function of the tests depend on the arguments of a call."""
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if function := self._functions.get(name):
            sources = names_in(*call.args, *call.keywords)
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
            yield [ast.Name(node.name)], [*node.body]
            yield _with_defaults(node.args)
        case ast.ClassDef():
            yield [ast.Name(node.name)], [*node.body]
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
            yield _mutated(call), [call]
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if not name.startswith("assert"):
            yield [receiver], [*node.args, *node.keywords]  # It may keep what it is given, as a list does.


def _named(names: Iterable[str | None]) -> list[ast.AST]:
    return list(map(ast.Name, filter(None, names)))


def _mutated(call: ast.Call) -> list[ast.AST]:
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


# -- what a question asks for --------------------------------------------------------------------------------

_ASKING = (
    r"writ\w+|defin\w+|implement\w*|creat\w+|make|build|code|provide|develop|program|schreib\w*|erstell\w*|programmier\w*"
    r"|escrib\w*|cre\w+|implant\w*|écri\w*|scriv\w*|escrev\w*|напиши\w*|реализуй\w*|определи\w*|создай\w*"
    r"|[编編][写寫]|[写寫]|[实實][现現]|[定][义義]"
)
_BETWEEN = (
    r"an?|one|the|me|your|own|new|simple|short|small|pure|recursive|python|function|method|class|procedure|called|named"
    r"|eine[nrs]?|ein|die|der|das|mir|funktion|methode|klasse|namens|una?|la|el|función|funcion|método|clase|llamada"
    r"|une|le|fonction|méthode|classe|appelée|nommée|il|funzione|metodo|chiamata|uma?|função|método|chamada"
    r"|функци\w+|метод|класс|一个|一個|函[数數]|方法|[类類]|名为|名為|叫"
)
_NOUN = r"function|method|class|funktion|klasse|función|fonction|funzione|função|функци\w+|関数|関數|함수|函[数數]"
_CALLS = r"(?:`?\w+(?:\([^()\n]{0,80}\))?`?\s{0,3}(?:,|and|und|y|et|e|и|&|和|、)\s{0,3}){0,5}"


def is_asked_for(name: str, query: str) -> bool:
    """Return whether a question asks to define something of this name, instead of just using the name.

    Example:
        >>> is_asked_for("sum", "Write sum(xs)."), is_asked_for("sum", "Write total(xs), which gives what sum(xs) gives.")
        (True, False)
    """
    named = rf"`?{re.escape(name)}(?!\w)"
    request = rf"(?<![^\W_])(?:{_ASKING})\s*[:：]?\s*(?:(?:{_BETWEEN})\s*){{0,6}}{_CALLS}{named}"
    noun = rf"(?<!the )(?<!die )(?<!der )(?<!la )(?<!el )(?:{_NOUN})\s*{named}(?:\s*\(|`)"
    return is_mentioned(name, query) and bool(re.search(rf"{request}|{noun}", query, re.IGNORECASE))


def is_mentioned(name: str, query: str) -> bool:
    """Return whether a question contains a name as code: called, or in backticks."""
    return bool(re.search(rf"(?<!\w){re.escape(name)}\s*\(|`{re.escape(name)}(?!\w)", query))


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
    defined = set(_defined_names(tests))
    if runs := _RUNNING.intersection(_all_names(tests)):
        raise InputError(
            f"The tests use {min(runs)}, with which they could run a file of the program. Call its functions."
        )
    used = {id(call.func): call for call in nodes(tests, ast.Call)}
    looked_at = set(map(id, itertools.chain.from_iterable(map(_read_only_parts, ast.walk(tests)))))
    flow, program = DataFlow(tests), {*theirs, OUTPUT, _CALLER}
    for node in ast.walk(tests):
        if (
            not isinstance(node, ast.Name)
            or node.id not in _DANGEROUS_BUILTINS - defined
            or not isinstance(node.ctx, ast.Load)
        ):
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
    for node in ast.walk(tests):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            yield getattr(node, "module", None) or ""


def _defined_names(tests: ast.Module) -> Iterator[str]:
    """Yield the names that tests define."""
    for node in ast.walk(tests):
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
