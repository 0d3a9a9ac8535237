"""Instrumented tests: each statement is a case that says what it found, and comparisons are what people mean by them."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping

from code_chains.analysis.parsing import arguments_of, names_in, syntax_tree
from code_chains.analysis.work import walk
from code_chains.verification.expectations.assertions import Assertions, is_test_case
from code_chains.verification.expectations.dependence import Dependence, asserted

EXACT = "is_exact"
"""The attribute of an assertion for which blanks, capitals and digits count."""
CAUGHT = "is_caught"
"""The attribute of an assertion that says that an error was raised as expected."""
_SYMBOLS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_UNCHANGED = _FUNCTIONS | ast.ClassDef | ast.Global | ast.Pass
_MAX_NAME_CHARS = 200
SOLUTION = "solution"
"""What tests call the teacher's programs."""


def instrumented(tests: ast.Module, skipped: Collection[str] = ()) -> tuple[ast.Module, list[str]]:
    """Return the tests with explained assertions, as cases, with the calls of a test runner.

    Args:
        tests: The tests.
        skipped: The cases that are left out, by line and name.

    Returns:
        The tree, and the names of the functions that assert something, at the numbers under which they say that they ran.
    """
    tree = copy.deepcopy(tests)  # Expectations are shared and never mutated.
    tree.body = list(itertools.filterfalse(_is_for_test_runners, tree.body))
    assertions = Assertions(tree)
    changes = _Instrumentation(assertions, Dependence(tree))
    runner = _Runner(tree)
    names = _number_functions(tree, assertions)
    body = list[ast.stmt]()
    for node in tree.body:
        source, is_case = ast.unparse(node), assertions.are_in(node)
        changed = _as_list(changes.visit(node))
        if isinstance(node, _UNCHANGED):
            body += changed
        else:
            body.append(_case(source, node.lineno, changed, ends=not is_case))
    tree.body = [node for node in (*body, *runner.calls()) if _key(node) not in skipped]
    return ast.fix_missing_locations(_Special().visit(tree)), names


class _Runner:
    """Calls what a test runner would call, each test as a case, between what sets it up and what tears it down."""

    def __init__(self, tests: ast.Module) -> None:
        self._body = tests.body
        self._functions = {node.name: node for node in tests.body if isinstance(node, _FUNCTIONS)}
        self._sources = {node: ast.unparse(node) for node in tests.body}

    def calls(self) -> Iterator[ast.stmt]:
        """Yield the calls."""
        yield from self._hook("setup_module")
        for node in self._body:
            if isinstance(node, _FUNCTIONS) and node.name.startswith("test"):
                before, after = _hooks(self._functions, *_SETUPS), _hooks(self._functions, *_TEARDOWNS)
                yield self._test(node, node.name, [*before, _call(node, node.name)], after)
            elif isinstance(node, ast.ClassDef) and is_test_case(node):
                lines = {item.name: item.lineno for item in node.body if isinstance(item, _FUNCTIONS)}
                yield from syntax_tree(f"_cases({node.name}, {node.lineno}, {lines!r})").body
            elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from self._tests_of(node)
        yield from self._hook("teardown_module")

    def _hook(self, name: str) -> Iterator[ast.stmt]:
        for line in _hooks(self._functions, name):
            yield _case(line, self._functions[name].lineno, syntax_tree(line).body, ends=True)

    def _tests_of(self, kind: ast.ClassDef) -> Iterator[ast.stmt]:
        methods = {item.name: item for item in kind.body if isinstance(item, _FUNCTIONS)}
        for line in _hooks(methods, "setup_class", owner=kind.name):
            yield _case(line, kind.lineno, syntax_tree(line).body, ends=True)
        before = _hooks(methods, *_METHOD_SETUPS, owner="_self")
        after = _hooks(methods, *_METHOD_TEARDOWNS, owner="_self")
        for item in methods.values():
            if item.name.startswith("test"):
                call = _call(item, f"_self.{item.name}")
                name = f"{kind.name}.{item.name}"
                lines = [f"_self = {kind.name}()", *before, call]
                yield self._test(kind, name, lines, after, item.lineno)
        for line in _hooks(methods, "teardown_class", owner=kind.name):
            yield _case(line, kind.lineno, syntax_tree(line).body, ends=True)

    def _test(self, node: ast.stmt, name: str, lines: list[str], after: list[str], line: int = 0) -> ast.stmt:
        steps = lines if not after else ["try:", *_indented(lines), "finally:", *_indented(after)]
        source = self._sources.get(node, name)
        body = syntax_tree("\n".join(steps)).body
        return _case(source, line or node.lineno, body, name=name)


_SETUPS, _TEARDOWNS = ("setup_function", "setup"), ("teardown_function", "teardown")
_CLASS_HOOKS = ("setup_class", "teardown_class")
_METHOD_SETUPS, _METHOD_TEARDOWNS = ("setup_method", "setup"), ("teardown_method", "teardown")


def _hooks(
    functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef], *names: str, owner: str = ""
) -> list[str]:
    """Return the calls of functions of certain names that there are; pytest may pass what they are about."""
    calls = []
    for name in filter(functions.__contains__, names):
        parameters = functions[name].args.args
        # pytest makes a method of the class of setup_class(cls).
        is_bare = name in _CLASS_HOOKS and parameters and not functions[name].decorator_list
        bound = 1 if owner else 0
        passed = "None" if len(parameters) > bound and not functions[name].args.defaults else ""
        passed = owner if is_bare else passed
        calls.append(f"{f'{owner}.' if owner else ''}{name}({passed})")
    return calls


def _call(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    return f"{'await ' if isinstance(function, ast.AsyncFunctionDef) else ''}{name}()"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _case(source: str, line: int, body: list[ast.stmt], *, name: str = "", ends: bool = False) -> ast.stmt:
    """Return a statement that runs others as one case; see `executors.guest.bench` for its arguments."""
    name = name or " ".join(source.split())[:_MAX_NAME_CHARS]
    case = syntax_tree(f"with _case({name!r}, {line}, {source!r}, ends={ends}): pass").body[0]
    assert isinstance(case, ast.With)
    case.body = body
    return case


def _key(node: ast.stmt) -> str:
    """Return line and name of a case, by which it can be skipped; empty for other statements."""
    match node:
        case ast.With(
            items=[ast.withitem(ast.Call(ast.Name("_case"), [ast.Constant(name), ast.Constant(line), *_]))]
        ):
            return " ".join(map(str, (line, name)))
    return ""


def _as_list(nodes: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return nodes if isinstance(nodes, list) else [nodes]  # type: ignore[list-item]


def _is_for_test_runners(node: ast.stmt) -> bool:
    """Return whether a statement is left out: `from __future__`, and calls that would start a test runner."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test)
    starts = ("unittest.main(", "pytest.main(", "doctest.testmod(", "pytestmark")
    return isinstance(node, ast.Expr | ast.Assign) and ast.unparse(node).startswith(starts)


def _number_functions(tree: ast.Module, assertions: Assertions) -> list[str]:
    """Make each function that asserts record that it was called; return their names, each at its number."""
    names: list[str] = []
    for node in walk(tree):
        if isinstance(node, _FUNCTIONS) and assertions.are_in(node):
            node.body.insert(0, syntax_tree(f"_begun.add({len(names)})").body[0])
            names.append(node.name)
    return names


def _counted(names: list[str] | None = None) -> ast.stmt:
    """Return a statement that counts an assertion, which depends on these names, or else on those noted last."""
    return syntax_tree("_count()" if names is None else f"_count({names!r})").body[0]


class _Special(ast.NodeTransformer):
    """Ask the program for the class of an object and for its attributes, as proxies for objects have others."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Convert `type(value)` and `vars(value)`."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="type" | "vars" as name), args=[ast.expr() as value], keywords=[]):
                return _asked(name, value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Convert `value.__class__` and `value.__dict__`."""
        self.generic_visit(node)
        name = {"__class__": "type", "__dict__": "vars"}.get(node.attr)
        return _asked(name, node.value) if name and isinstance(node.ctx, ast.Load) else node


class _Instrumentation(ast.NodeTransformer):
    """Count assertions as they run, make them explain their failure, and compare as people do.

    Args:
        assertions: What asserts.
        dependence: What assertions depend on.
    """

    def __init__(self, assertions: Assertions, dependence: Dependence) -> None:
        self._assertions, self._dependence = assertions, dependence

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """Make `assert f(2) == 4` fail with "f(2) gave 5, expected 4", and count it."""
        if getattr(node, CAUGHT, False):
            return [_counted()]
        names = self._dependence.of_assertion(node.test)
        how = "exact" if getattr(node, EXACT, False) else ""
        return [*_asked_first(node.test), self._explain(node, how), _counted(names)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """Count a call such as `np.testing.assert_allclose(…)`."""
        if not isinstance(node.value, ast.Call) or not self._assertions.has(node.value):
            return node
        return [node, _counted(self._dependence.of_assertion(*asserted(node.value)))]

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        """Count `with pytest.raises(…)` after its end, by the statement that was reached last."""
        if not any(self._assertions.has(item.context_expr) for item in node.items):
            self.generic_visit(node)
            return node
        self._note_statements(node)
        return [node, _counted()]

    def visit_Try(self, node: ast.Try) -> ast.Try:
        """Note the statements of a block that is expected to raise."""
        if any(getattr(item, CAUGHT, False) for handler in node.handlers for item in handler.body):
            self._note_statements(node)
        else:
            self.generic_visit(node)
        return node

    def _note_statements(self, node: ast.With | ast.Try) -> None:
        """Note the names of each statement of a block before it runs."""
        notes = [syntax_tree(f"_note({self._dependence.of_assertion(item)!r})").body[0] for item in node.body]
        body, node.body = node.body, []
        self.generic_visit(node)
        for note, item in zip(notes, body, strict=True):
            node.body += [note, *_as_list(self.visit(item))]

    def visit_If(self, node: ast.If) -> ast.If:
        """Convert the condition: it asserts nothing, so objects of the program may be true or false."""
        self.generic_visit(node)
        node.test = _as_condition(node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        """Convert the condition of a loop, such as `while node:`."""
        self.generic_visit(node)
        node.test = _as_condition(node.test)
        return node

    def _explain(self, node: ast.Assert, how: str) -> ast.Assert:
        """Add a message with the values that were compared."""
        test, symbol = node.test, ""
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            symbol = _SYMBOLS.get(type(test.ops[0]), "")
        if symbol and isinstance(test, ast.Compare) and not node.msg:
            left, right = test.left, test.comparators[0]
            node.msg = ast.Call(
                ast.Name("_explain", ast.Load()),
                [
                    ast.Constant(ast.unparse(left)),
                    ast.Name("_left", ast.Load()),
                    ast.Constant(symbol),
                    ast.Name("_right", ast.Load()),
                ],
                [ast.keyword(name, ast.Name(name, ast.Load())) for name in _passed_names(left)],
            )
            test.left = ast.NamedExpr(ast.Name("_left", ast.Store()), left)
            test.comparators = [ast.NamedExpr(ast.Name("_right", ast.Store()), right)]
        elif not node.msg:
            node.msg = ast.Constant(f"{ast.unparse(test)} does not hold")
        node.test = _Comparisons(how).visit(test)
        return node


def _asked(name: str, value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(f"_{name}", ast.Load()), [value], [])


def _asked_first(test: ast.expr) -> Iterator[ast.stmt]:
    """Yield what asks the teacher's solution before the program, which may change the arguments of both."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = names_in(test.left), names_in(test.comparators[0])
        if SOLUTION in right and SOLUTION not in left:
            yield ast.Assign([ast.Name("_asked", ast.Store())], test.comparators[0])
            test.comparators = [ast.Name("_asked", ast.Load())]


class _Comparisons(ast.NodeTransformer):
    """Let comparisons for equality, and searches in output, be what people mean by them.

    Args:
        how: How values are compared; see `executors.guest.bench`.
    """

    def __init__(self, how: str) -> None:
        self._how = how

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Evaluate `(f(2) == expected).all()`, and `all(…)`, so that they do not hold because there is nothing."""
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "all"
            and not node.args
            and not node.keywords
        ):
            return ast.Call(ast.Name("_all", ast.Load()), [node.func.value], [])
        if isinstance(node.func, ast.Name) and node.func.id in ("all", "any") and len(node.args) == 1:
            return ast.Call(ast.Name("_each", ast.Load()), [node.func, *node.args], [])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Call the bench for `==`, `!=` and `in`."""
        self.generic_visit(node)
        if len(node.ops) > 1:
            return self._chain(node)
        return _compared(node.ops[0], node.left, node.comparators[0], self._how)

    def _chain(self, node: ast.Compare) -> ast.expr:
        """Return `a == b == c` as two comparisons that compute `b` once; other chains as they are."""
        middle = node.comparators[:-1]
        if not all(isinstance(operator, ast.Eq) for operator in node.ops):
            return node
        parts, left = list[ast.expr](), node.left
        for number, right in enumerate(node.comparators):
            name = f"_middle_{number}"
            is_middle = number < len(middle)
            bound = ast.NamedExpr(ast.Name(name, ast.Store()), right) if is_middle else right
            parts.append(_compared(ast.Eq(), left, bound, self._how))
            left = ast.Name(name, ast.Load())
        return ast.BoolOp(ast.And(), parts)


def _compared(operator: ast.cmpop, left: ast.expr, right: ast.expr, how: str) -> ast.expr:
    names = {ast.Eq: "_same", ast.NotEq: "_differ"}
    if name := names.get(type(operator)):
        given = [left, right, ast.Constant(how)] if how else [left, right]
        return ast.Call(ast.Name(name, ast.Load()), given, [])
    if isinstance(operator, ast.In | ast.NotIn) and not how:
        call: ast.expr = ast.Call(ast.Name("_holds", ast.Load()), [left, right], [])
        return call if isinstance(operator, ast.In) else ast.UnaryOp(ast.Not(), call)
    return ast.Compare(left, [operator], [right])


def _passed_names(node: ast.expr) -> Iterable[str]:
    """Return the names that stand for arguments of a call, whose values a reader needs; all of them are bound."""
    arguments = arguments_of(node) if isinstance(node, ast.Call) else []
    return dict.fromkeys(argument.id for argument in arguments if isinstance(argument, ast.Name))


def _as_condition(test: ast.expr) -> ast.expr:
    """Return an expression that evaluates the truth of its operands with `_condition`."""
    if isinstance(test, ast.BoolOp):
        test.values = list(map(_as_condition, test.values))
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _as_condition(test.operand)
    else:
        test = ast.Call(ast.Name("_condition", ast.Load()), [test], [])
    return test
