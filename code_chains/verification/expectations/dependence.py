"""What an assertion depends on: a test counts only if one of its assertions depends on a value of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import nodes
from code_chains.analysis.work import walk
from code_chains.verification.expectations.oracles import DataFlow, mutated

OBSERVERS = words(
    "<caller> open Path pathlib os io StringIO BytesIO sys glob shutil sqlite3 csv linecache tempfile contextlib"
    " redirect_stdout redirect_stderr warnings logging time mock patch Mock MagicMock AsyncMock create_autospec unittest"
    " _capsys _tmp_path _monkeypatch"
)
"""Names through which tests see what calls of a program have done elsewhere: to files, streams and mocks."""
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class Dependence(DataFlow):
    """The names on which assertions depend, where what is bound anew no longer depends on what it was.

    Args:
        tests: The tests.
    """

    def __init__(self, tests: ast.Module) -> None:
        super().__init__(tests, versions(tests))
        self._variables = self._names_in(*_stored(tests))
        self._own = {alias.asname or alias.name for alias in nodes(tests, ast.alias)} - OBSERVERS
        blocks: list[ast.With | ast.AsyncWith] = [*nodes(tests, ast.With), *nodes(tests, ast.AsyncWith)]
        # What a block binds depends on what happens within it, as the error of `pytest.raises` does.
        for block in blocks:
            self._bind([item.optional_vars for item in block.items if item.optional_vars], block.body)
        for call in nodes(tests, ast.Call):
            # What a call is given it may change, and with it whatever names the same object.
            changed = self._reached(self._names_in(*mutated(call))) & self._variables
            for name in changed:
                self._sources[name] |= self._names_in(call)

    def _names_in(self, *parts: ast.AST) -> set[str]:
        # Of one class, both name the same attributes.
        return {"self" if name == "cls" else name for name in super()._names_in(*parts)}

    def of_assertion(self, *parts: ast.AST) -> list[str]:
        """Return the names that are not those of variables, of which a program may define some."""
        return sorted(self.of(*parts) - self._variables - self._own)


def asserted(call: ast.Call) -> list[ast.AST]:
    """Return the parts of a call that asserts on which its outcome depends; the object of a test case is none of them."""
    parts: list[ast.AST] = [*call.args, *call.keywords]
    is_own = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "self"
    return parts if is_own else [*parts, call.func]


def versions(tests: ast.Module) -> dict[ast.Name, str]:
    """Return a name for each use of a variable that says how often it was bound anew before, in a straight line.

    Invariant: a variable that another scope uses, or that is bound in a branch or a loop, keeps the name that it has there.
    """
    found: dict[ast.Name, str] = {}
    scopes: list[ast.Module | ast.FunctionDef | ast.AsyncFunctionDef] = [tests]
    scopes += [*nodes(tests, ast.FunctionDef), *nodes(tests, ast.AsyncFunctionDef)]
    for scope in scopes:
        shared, counts = _shared(scope, tests), dict[str, int]()
        for statement in scope.body:
            for node in nodes(statement, ast.Name):
                if node.id not in shared:
                    found.setdefault(node, _version(node.id, counts))
            for node in _bound_anew(statement):
                if node.id not in shared:
                    counts[node.id] = counts.get(node.id, 0) + 1
                    found[node] = _version(node.id, counts)
    return found


def _version(name: str, counts: dict[str, int]) -> str:
    return f"{name}#{counts[name]}" if name in counts else name


def _bound_anew(statement: ast.stmt) -> list[ast.Name]:
    if not isinstance(statement, ast.Assign):
        return []
    targets = [item for target in statement.targets for item in getattr(target, "elts", [target])]
    return [target for target in targets if isinstance(target, ast.Name)]


def _shared(scope: ast.AST, tests: ast.Module) -> set[str]:
    """Return the names that another scope may use as well."""
    names = {name for node in nodes(tests, ast.Global) for name in node.names}
    inner = (node for node in walk(scope) if isinstance(node, _SCOPES) and node is not scope)
    return names.union(name.id for node in inner for name in nodes(node, ast.Name))


def _stored(tests: ast.Module) -> Iterator[ast.Name]:
    for node in nodes(tests, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node
