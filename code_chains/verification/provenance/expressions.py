"""The origins of expressions: each name holds those of everything that it was ever given, whatever the order."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from code_chains.analysis.parsing import arguments_of, names_in, nodes, positional_parameters
from code_chains.analysis.work import spend, walk
from code_chains.verification.provenance.given import Given, Origin, written_numbers
from code_chains.verification.provenance.literals import (
    Leaves,
    factors_of,
    is_calendar,
    is_label,
    is_not_constant,
    number_of,
    text_of,
)
from code_chains.verification.provenance.tokens import (
    ASKING_ABOUT_FILES,
    CARRYING,
    COMPUTED,
    DATE,
    KEEPING,
    LABELLING,
    NONE,
    OPENING,
    PARSING,
    PATHS,
    RANDOM,
    READING,
    SHOWING,
    SOURCE,
    TABLE,
    Kind,
    Token,
    Tokens,
    names_quantity,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MIN_ELEMENTS = 2
"""Constants from which on a display may be data."""
_MIN_TABLE = 4
_KEPT = "(files)"
"""In place of a name: what files hold that the program wrote."""
_MAX_COUNT = 12
_MAX_POWER = 19
"""Up to which power ten is written as one, as in 10**6."""


_SIZES = ("width", "height", "length")
"""Options of figures and tables."""


class Expressions:
    """The origins of the expressions of a program, and of its names.

    Args:
        tree: The program.
        given: What was given.
        files: Names of the files that were given.
        names: Names of variables and functions that were given.

    Attributes:
        shown: The origins of each thing that is shown, in order.
    """

    def __init__(
        self, tree: ast.Module, given: Given, *, files: Collection[str], names: Collection[str]
    ) -> None:
        self._given = given
        self._files = list(map(str.casefold, files))
        self._names: dict[str, Tokens] = defaultdict(frozenset)
        self._functions = dict(_functions(tree))
        self._function = ""
        self._condition = NONE
        # A program is gone through several times, and its constants and callees stay the same.
        self._constants: dict[ast.Constant, Tokens] = {}
        # Each expression is evaluated once while names stay the same, in however many ways it is asked for.
        self._evaluated: dict[ast.expr, tuple[int, Tokens]] = {}
        self._changes, self._leaves = 0, Leaves()
        self._callees: dict[ast.expr, str] = {}
        self.shown: list[Tokens] = []
        imports = list(_imports(tree))
        self._modules = {name for name, _ in imports}
        modules = {file.split("/")[0].removesuffix(".py") for file in self._files}
        self._names.update((name, SOURCE) for name, module in imports if module.casefold() in modules)
        first = _first_values(tree)
        for name in names:
            # What gets a new value that does not depend on it is not what was given.
            if name not in first or name in names_in(first[name]):
                self._names[name] = SOURCE

    def _test(self, node: ast.expr) -> Tokens:
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__":
            return NONE
        return self._tokens(node) | COMPUTED

    def _named(self, target: ast.expr, value: ast.expr) -> Tokens:
        """Return the origins of a value, and that it is a quantity if its name says so."""
        name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
        return self._as_quantity(str(name), value)

    def _as_quantity(self, name: str, value: ast.expr) -> Tokens:
        factors = factors_of(value)
        for factor, number in factors:
            origin = self._given.origin(number)
            # Beside others, a small number may be a count, and 100 a percentage.
            is_plain = len(factors) > 1 and (
                origin is not Origin.WEAK or number <= _MAX_COUNT or number == 100
            )
            if number not in (0.0, 1.0) and not is_plain and names_quantity(name, origin):
                return self._tokens(value) | {Token(Kind.QUANTITY, ast.unparse(factor), value.lineno)}
        return self._tokens(value)

    def _bind(self, target: ast.expr, tokens: Tokens) -> None:
        match target:
            case ast.Name(id=name):
                self._add(name, tokens)
            case ast.Attribute(value=value, attr=name):
                self._add(f".{name}", tokens)
                self._bind_base(value, tokens)
            case ast.Subscript(value=value, slice=key):
                self._bind_base(value, tokens | self._key(key))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind(element, tokens)
            case ast.Starred(value=value):
                self._bind(value, tokens)

    def _bind_base(self, node: ast.expr, tokens: Tokens) -> None:
        """Add origins to the name that an attribute or an item belongs to."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name) and node.id != "self":
            self._add(node.id, tokens)

    def _add(self, name: str, tokens: Tokens) -> None:
        if not tokens <= self._names[name]:
            self._changes += 1
            self._names[name] |= tokens

    def _show(self, tokens: Tokens, condition: Tokens) -> None:
        self.shown.append(tokens | condition)

    # -- expressions

    def _tokens(self, node: ast.expr) -> Tokens:
        changes, tokens = self._evaluated.get(node, (-1, NONE))
        if changes != self._changes:
            spend()
            tokens = self._evaluate(node)
            self._evaluated[node] = self._changes, tokens
        return tokens

    def _evaluate(self, node: ast.expr) -> Tokens:
        match node:
            case ast.Constant(value=value):
                if node not in self._constants:
                    self._constants[node] = self._constant(value, node)
                return self._constants[node]
            case ast.Name(id=name):
                return self._names[name] | (self._names[f"{name}()"] if name in self._functions else NONE)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value, slice=key):
                return self._tokens(value) | self._key(key)
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr(values=parts):
                return self._labelled(parts)
            case ast.NamedExpr(target=target, value=value):
                tokens = self._tokens(value)
                self._bind(target, tokens)
                return tokens
        return self._computed(node)

    def _attribute(self, node: ast.Attribute) -> Tokens:
        if node.attr in OPENING:
            return SOURCE
        # What a module has, such as math.pi, is nobody's own.
        own = COMPUTED if self._is_module(node.value) else self._names[f".{node.attr}"]
        return self._tokens(node.value) | own

    def _is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._modules

    def _computed(self, node: ast.expr) -> Tokens:
        match node:
            case ast.BinOp():
                return self._operation(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._test(operand)
            case ast.Compare(left=left, comparators=others):
                return self._union(filter(is_not_constant, [left, *others])) | COMPUTED
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._test(test) | self._union([body, orelse])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node.generators, [node.elt])
            case ast.DictComp():
                return self._comprehension(node.generators, [node.key, node.value])
        return self._composed(node)

    def _composed(self, node: ast.expr) -> Tokens:
        match node:
            case ast.FormattedValue(value=value):  # How it is shown is no value.
                return self._tokens(value)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._with_made_up(node, self._union(node.elts), self._leaves.of(node.elts))
            case ast.Dict():
                return self._mapping(node)
            case ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value):
                self._add(f"{self._function}()", self._tokens(value))
                return NONE
        parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return self._union(parts)

    def _union(self, expressions: Iterable[ast.expr]) -> Tokens:
        return frozenset().union(*map(self._tokens, expressions))

    def _labelled(self, parts: Iterable[ast.expr]) -> Tokens:
        """Return the origins of parts of a text, whose constants are labels: words of the question say nothing there."""
        tokens = NONE
        for part in parts:
            own = self._tokens(part)
            tokens |= _without(own, Kind.GIVEN) if isinstance(part, ast.Constant) else own
        return tokens

    def _constant(self, value: object, node: ast.expr) -> Tokens:
        if isinstance(value, bool) or value is None:
            return NONE
        if isinstance(value, int | float):
            return self._literal_number(value, node)
        if not isinstance(value, str):
            return NONE
        if any(name in value.casefold() for name in self._files):
            return frozenset([Token(Kind.PATH)])
        if not any(map(str.isalnum, value)):
            return NONE
        kind = Kind.GIVEN if self._given.holds(value) else Kind.TEXT
        return frozenset([Token(kind, value[:200], node.lineno)])

    def _literal_number(self, value: float, node: ast.expr) -> Tokens:
        try:
            origin = self._given.origin(float(value))
        except OverflowError:
            return NONE
        return frozenset([Token(Kind[origin.name], ast.unparse(node)[:30], node.lineno)])

    def _key(self, key: ast.expr) -> Tokens:
        """Return the origins of an index: constants say nothing."""
        if isinstance(key, ast.Slice):
            parts = filter(is_not_constant, filter(None, (key.lower, key.upper, key.step)))
            return self._union(parts) | COMPUTED
        return self._tokens(key) if is_not_constant(key) and not isinstance(key, ast.List) else NONE

    def _operation(self, node: ast.BinOp) -> Tokens:
        match node:
            case ast.BinOp(
                left=ast.Constant(value=10), op=ast.Pow(), right=ast.Constant(value=int(power))
            ) if power <= _MAX_POWER:
                return self._literal_number(10.0**power, node) | COMPUTED
        tokens = self._tokens(node.left)
        if not (isinstance(node.op, ast.Mod | ast.Pow) and number_of(node.right) is not None):
            tokens |= self._tokens(node.right)
        kinds = {token.kind for token in tokens}
        is_text = isinstance(node.op, ast.Add | ast.Mod) and Kind.TEXT in kinds
        return tokens if is_text or Kind.PATH in kinds else tokens | COMPUTED

    def _comprehension(self, generators: list[ast.comprehension], results: list[ast.expr]) -> Tokens:
        tokens = COMPUTED
        for generator in generators:
            items = self._tokens(generator.iter)
            self._bind(generator.target, items)
            tokens |= items | self._union(generator.ifs)
        return tokens | self._union(results)

    def _mapping(self, node: ast.Dict) -> Tokens:
        tokens = self._labelled(filter(None, node.keys)) | self._union(node.values)
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                tokens |= self._as_quantity(key.value, value)
        return self._with_made_up(node, tokens, self._leaves.of(node.values))

    def _with_made_up(self, node: ast.expr, tokens: Tokens, leaves: list[ast.expr]) -> Tokens:
        """Return the origins of a display: if most of its constants were not given, it is made up, else a table."""
        if is_calendar(leaves):
            return tokens
        leaves = [leaf for leaf in leaves if not is_label(leaf)]
        own = list(filter(self._is_own, leaves))
        # A single text that a word of the question stands for is a fact: `{"Australia": "Canberra"}`.
        is_fact = isinstance(node, ast.Dict) and any(map(text_of, own)) and self._names_given(node.keys)
        if len(own) < (1 if is_fact else _MIN_ELEMENTS) or len(own) * 2 <= len(leaves):
            return _without(tokens, Kind.UNKNOWN) if len(leaves) >= _MIN_TABLE else tokens
        shown = ", ".join(ast.unparse(leaf)[:20] for leaf in own[:2])
        return tokens | {Token(Kind.DATA, f"{shown}, …", node.lineno)}

    def _names_given(self, keys: Iterable[ast.expr | None]) -> bool:
        texts = filter(None, map(text_of, keys))
        return any(len(text) > 2 and self._given.holds(text) for text in texts)

    def _is_own(self, leaf: ast.expr) -> bool:
        if (text := text_of(leaf)) is not None:
            is_word = len(text.strip()) > 2 or DATE.search(text) is not None
            return is_word and not self._given.holds(text)
        number = number_of(leaf)
        return number is not None and self._given.origin(number) is Origin.UNKNOWN

    # -- calls

    def _call(self, node: ast.Call) -> Tokens:
        condition, name = self._condition, _called(node.func)
        receiver = self._tokens(node.func.value) if isinstance(node.func, ast.Attribute) else NONE
        if name in LABELLING:
            return COMPUTED
        if name in self._functions:
            return self._own_function(node, self._functions[name], receiver | condition)
        arguments = self._without_settings(name, node)
        read = self._labelled if name in SHOWING and len(node.args) > 1 else self._union
        given = read(arguments) | frozenset().union(*map(self._value_of_keyword, node.keywords))
        tokens = given | receiver
        if name in SHOWING:
            self._show(tokens, condition)
        if name in ASKING_ABOUT_FILES:
            return NONE
        if name in KEEPING and any(token.kind in (Kind.SOURCE, Kind.PATH) for token in tokens):
            self._add(_KEPT, SOURCE)
        if isinstance(node.func, ast.Attribute):
            self._bind_base(node.func.value, given | condition)  # A method may keep what it is given.
        else:
            tokens |= self._names[name]
        self._pass_to_callbacks(node, tokens)
        return self._result(name, node, tokens)

    def _without_settings(self, name: str, call: ast.Call) -> list[ast.expr]:
        """Return the arguments of a call but for how often something is done, and to how many digits it is shown."""
        if name == "range":
            return list(filter(is_not_constant, call.args))
        if name in ("round", "around") or (name == "format" and isinstance(call.func, ast.Name)):
            is_method = isinstance(call.func, ast.Attribute) and not self._is_module(call.func.value)
            return [] if is_method else call.args[:1]
        return call.args

    def _result(self, name: str, node: ast.Call, tokens: Tokens) -> Tokens:
        """Return the origins of what a function of others returns."""
        if name in OPENING:
            return tokens | SOURCE | COMPUTED
        is_int = name == "int" and len(node.args) > 1
        if (name in CARRYING and not is_int) or name in PATHS:
            return tokens
        if node.func not in self._callees:
            self._callees[node.func] = ast.unparse(node.func)
        if RANDOM.search(self._callees[node.func]):
            tokens |= {Token(Kind.RANDOM, ast.unparse(node)[:40], node.lineno)}
        if any(token.kind is Kind.PATH for token in tokens):
            tokens |= SOURCE
        if READING.fullmatch(name):
            tokens |= self._names[_KEPT]
        texts = [token for token in tokens if token.kind is Kind.TEXT]
        tables = [token for token in texts if TABLE.search(token.shown) or self._is_listing(name, token)]
        data = {Token(Kind.DATA, token.shown.split("\n")[0], token.line) for token in tables}
        return tokens | COMPUTED | data

    def _is_listing(self, name: str, token: Token) -> bool:
        """Return whether a function takes apart a text whose numbers are the program's own."""
        numbers = {self._given.origin(number) for number in written_numbers(token.shown)}
        return (
            name in PARSING
            and len(numbers - {Origin.GIVEN}) > 0
            and token.shown.count(" ") + token.shown.count(",") > 1
        )

    def _value_of_keyword(self, keyword: ast.keyword) -> Tokens:
        """Return the origins of an argument by keyword: constants are options, unless their name is that of a quantity."""
        if is_not_constant(keyword.value):
            return self._tokens(keyword.value)
        name = keyword.arg or ""
        tokens = NONE if name in _SIZES else self._as_quantity(name, keyword.value)
        return frozenset(token for token in tokens if token.kind in (Kind.QUANTITY, Kind.PATH))

    def _own_function(self, node: ast.Call, function: Function, condition: Tokens) -> Tokens:
        """Return the origins of what a function of the program returns, and give its parameters those of the arguments."""
        names = _parameters(function)
        for parameter, argument in zip(names, node.args, strict=False):
            self._add(parameter, self._as_quantity(parameter, argument))
        for keyword in node.keywords:
            self._add(keyword.arg or "", self._as_quantity(keyword.arg or "", keyword.value))
        self._add(f"{function.name}?", condition)
        return self._names[f"{function.name}()"]

    def _pass_to_callbacks(self, node: ast.Call, tokens: Tokens) -> None:
        for argument in arguments_of(node):
            if isinstance(argument, ast.Name) and argument.id in self._functions:
                for parameter in _parameters(self._functions[argument.id]):
                    self._add(parameter, tokens)


def _without(tokens: Tokens, kind: Kind) -> Tokens:
    return frozenset(token for token in tokens if token.kind is not kind)


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a program by the names that they are called by, which is its own for a class."""
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    yield node.name, method


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that a program imports, each with the module or package that it is of."""
    for statement in nodes(tree, ast.Import):
        for member in statement.names:
            yield (member.asname or member.name).split(".")[0], member.name.split(".")[0]
    for origin in nodes(tree, ast.ImportFrom):
        for member in origin.names:
            yield member.asname or member.name, (origin.module or member.name).split(".")[0]


def _parameters(function: Function) -> list[str]:
    names = positional_parameters(function)
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _first_values(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what a program assigns to names first at its top level."""
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, node.value)
    return values


def is_call_of(node: ast.expr, names: Collection[str]) -> bool:
    """Return whether an expression calls a function of certain names."""
    return isinstance(node, ast.Call) and _called(node.func) in names
