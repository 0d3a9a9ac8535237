"""How functions and classes are called, as text for a model, from their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from code_chains.analysis.parsing import parse
from code_chains.inputs import shortened

__all__ = [
    "Function",
    "call_prefix",
    "decorators",
    "field_parameters",
    "fields",
    "has_self",
    "is_field_class",
    "names_in",
    "parameters",
    "returns",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_DEFAULT_CHARS, MAX_SIGNATURE_CHARS = 80, 1000
_FIELD_DECORATORS = {"dataclass", "define", "frozen", "mutable", "attrs", "attributes"}
_FIELD_BASES = {"BaseModel", "BaseSettings", "NamedTuple", "TypedDict", "Struct"}
_FIELD_FUNCTIONS = {"field", "Field", "ib", "attrib"}
_CONTEXT_MANAGERS = {"contextmanager", "asynccontextmanager"}


def parameters(node: Function, *, skip_first: bool = False) -> str:
    """Return the parameters of a function with their annotations and defaults, and the signs `*` and `/` between them.

    Args:
        node: The function.
        skip_first: Whether to leave out the first one, `self` or `cls`.

    Example:
        >>> parameters(ast.parse("def f(self, a: int, /, b=2, *, c: str = 'x', **more): ...").body[0], skip_first=True)
        "a: int, /, b=2, *, c: str = 'x', **more"
    """
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    texts = [_parameter(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    if given.posonlyargs:
        texts.insert(len(given.posonlyargs), "/")
    if skip_first and positional:
        del texts[0]
        texts = texts[1:] if texts[:1] == ["/"] else texts
    if given.vararg:
        texts.append(f"*{_parameter(given.vararg, None)}")
    elif given.kwonlyargs:
        texts.append("*")
    texts += [_parameter(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    texts += [f"**{_parameter(given.kwarg, None)}"] if given.kwarg else []
    return shortened(", ".join(texts), MAX_SIGNATURE_CHARS)


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {_unparsed(arg.annotation)}" if arg.annotation else ""
    if default is None:
        return f"{arg.arg}{annotation}"
    return (
        f"{arg.arg}{annotation} = {_unparsed(default)}" if annotation else f"{arg.arg}={_unparsed(default)}"
    )


def returns(node: Function) -> str:
    """Return the annotation of the result, with its arrow; empty if there is none."""
    return f" -> {_unparsed(node.returns)}" if node.returns else ""


def call_prefix(node: Function) -> str:
    """Return what stands before a call: `await` or `with`."""
    if decorators(node) & _CONTEXT_MANAGERS:
        return "async with " if isinstance(node, ast.AsyncFunctionDef) else "with "
    is_generator = any(isinstance(inner, ast.Yield) for inner in ast.walk(node))
    if isinstance(node, ast.AsyncFunctionDef):
        return "async for … in " if is_generator else "await "
    return ""


def has_self(node: Function) -> bool:
    """Return whether a method is called with an object, and has it as its first parameter."""
    return not decorators(node) & {"staticmethod", "classmethod"}


def decorators(node: Function | ast.ClassDef) -> set[str]:
    """Return the last names of the decorators."""
    return {_last_name(decorator) for decorator in node.decorator_list}


def names_in(nodes: Iterable[ast.expr | None]) -> Iterator[ast.expr]:
    """Yield the names and attributes in annotations and defaults, also in annotations that are texts."""
    for node in nodes:
        for inner in ast.walk(node) if node is not None else ():
            if isinstance(inner, ast.Name | ast.Attribute):
                yield inner
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and len(inner.value) < 200:
                tree = parse(inner.value)
                yield from (
                    name for name in ast.walk(tree or ast.Module([], [])) if isinstance(name, ast.Name)
                )


# -- classes whose fields are parameters ---------------------------------------------------------------------


def is_field_class(node: ast.ClassDef) -> bool:
    """Return whether the constructor of a class takes its fields: dataclass, attrs, pydantic, named tuple, typed dict."""
    return bool(
        decorators(node) & _FIELD_DECORATORS or {_last_name(base) for base in node.bases} & _FIELD_BASES
    )


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Return the annotated fields of a class."""
    annotated = [
        one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    return [one for one in annotated if "ClassVar" not in _unparsed(one.annotation)]


def field_parameters(classes: Sequence[ast.ClassDef]) -> str:
    """Return the parameters of a class of fields.

    Args:
        classes: The class, after those it inherits fields from.
    """
    texts: dict[str, str] = {}
    is_keyword_only = any(_has_keyword(decorator, "kw_only") for decorator in classes[-1].decorator_list)
    if is_keyword_only:
        texts["*"] = "*"
    for one in (one for node in classes for one in fields(node)):
        annotation = _unparsed(one.annotation)
        if annotation.rpartition(".")[2] == "KW_ONLY":
            texts["*"] = "*"
        elif isinstance(one.target, ast.Name) and _is_parameter(one):
            default = _default(one.value)
            texts[one.target.id] = f"{one.target.id}: {annotation}{default and f' = {default}'}"
    return shortened(", ".join(texts.values()), MAX_SIGNATURE_CHARS)


def _is_parameter(one: ast.AnnAssign) -> bool:
    call = one.value
    return not isinstance(call, ast.Call) or not any(
        keyword.arg == "init" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in call.keywords
    )


def _default(value: ast.expr | None) -> str:
    """Return the default of a field, whether it stands for itself or in `field(…)`; empty if there is none."""
    if value is None:
        return ""
    if not isinstance(value, ast.Call) or _last_name(value.func) not in _FIELD_FUNCTIONS:
        return _unparsed(value)
    keywords = {keyword.arg: keyword.value for keyword in value.keywords}
    factory = keywords.get("default_factory") or keywords.get("factory")
    if factory is not None:
        return f"{_unparsed(factory)}()" if isinstance(factory, ast.Name | ast.Attribute) else "…"
    given = keywords.get("default") or next(iter(value.args), None)
    is_required = given is None or (isinstance(given, ast.Constant) and given.value is ...)
    return "" if is_required or given is None else _unparsed(given)


def _has_keyword(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and any(
        keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in node.keywords
    )


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, of a call of it, or of a subscript of it."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _unparsed(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > MAX_DEFAULT_CHARS:
        return repr(shortened(node.value, MAX_DEFAULT_CHARS))
    try:
        return shortened(ast.unparse(node), 2 * MAX_DEFAULT_CHARS)
    except (RecursionError, ValueError):
        return "…"
