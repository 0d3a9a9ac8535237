"""How functions and classes are called, as text for a model, from what griffe knows of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import griffe

from code_chains.inputs import shortened

Expression = str | griffe.Expr | None
MAX_EXPRESSION_CHARS, MAX_SIGNATURE_CHARS, MAX_MEMBERS = 160, 1000, 20
_FIELD_DECORATORS = {"dataclass", "define", "frozen", "mutable", "attrs", "attributes"}
_FIELD_BASES = {"BaseModel", "BaseSettings", "NamedTuple", "TypedDict", "Struct"}
_FIELD_FUNCTIONS = {"field", "Field", "ib", "attrib"}
_CONTEXT_MANAGERS = {"contextmanager", "asynccontextmanager"}
_PROPERTIES = {"property", "cached_property"}
_ENUMS = ("Enum", "Flag")


# -- functions -----------------------------------------------------------------------------------------------


def call(name: str, function: griffe.Function, *, skip_first: bool = False) -> str:
    """Return how a function is called: with `await` or `with`, its parameters and its result.

    Args:
        name: What stands before the parameters.
        function: The function.
        skip_first: Whether to leave out the first parameter, `self` or `cls`.
    """
    given = list(function.parameters)[skip_first:]
    return f"{_prefix(function)}{_signature(name, given, function.returns)}"


def method_call(owner: str, subject: str, method: griffe.Function | griffe.Attribute) -> str:
    """Return how a method is called: with an object of its class, or with the class; or how a property is read."""
    if isinstance(method, griffe.Attribute):
        return f"{subject}.{method.name}{_result(method.annotation)}"
    if is_property(method):
        return f"{subject}.{method.name}{_result(method.returns)}"
    if "staticmethod" in method.labels:
        return call(f"{owner}.{method.name}", method)
    holder = owner if "classmethod" in method.labels else subject
    return call(f"{holder}.{method.name}", method, skip_first=True)


def is_property(member: griffe.Object | griffe.Alias) -> bool:
    """Return whether a method is read like an attribute."""
    if isinstance(member, griffe.Function):
        return bool(_decorators(member) & _PROPERTIES)
    return isinstance(member, griffe.Attribute) and "property" in member.labels


def argument_expressions(functions: Iterable[griffe.Function | griffe.Attribute]) -> Iterator[Expression]:
    """Yield the annotations and defaults of what functions take."""
    for function in functions:
        if isinstance(function, griffe.Function):
            yield from (one.annotation for one in function.parameters)
            yield from (one.default for one in function.parameters)


def result_expressions(functions: Iterable[griffe.Function | griffe.Attribute]) -> Iterator[Expression]:
    """Yield the annotations of what functions return, and of properties."""
    for function in functions:
        yield function.annotation if isinstance(function, griffe.Attribute) else function.returns


def names_in(nodes: Iterable[Expression]) -> Iterator[griffe.ExprName]:
    """Yield the names in annotations and defaults, also in annotations that are texts."""
    for node in nodes:
        for part in node.iterate(flat=True) if isinstance(node, griffe.Expr) else [node]:
            if isinstance(part, griffe.ExprName):
                yield part
            elif isinstance(part, str) and part[1:-1].isidentifier():
                yield griffe.ExprName(part[1:-1])


def _last_name(node: Expression) -> str:
    """Return the last part of a dotted name, of a call of it, or of a subscript of it."""
    while isinstance(node, griffe.ExprCall | griffe.ExprSubscript):
        node = node.function if isinstance(node, griffe.ExprCall) else node.left
    return str(node).rpartition(".")[2]


def _signature(name: str, given: Sequence[griffe.Parameter], result: Expression = None) -> str:
    parameters = [
        griffe.Parameter(
            one.name, kind=one.kind, annotation=_short(one.annotation), default=_short(one.default)
        )
        for one in given
    ]
    shown = griffe.Function("", parameters=griffe.Parameters(*parameters)).signature()
    return f"{name}({shortened(shown[1:-1], MAX_SIGNATURE_CHARS)}){_result(result)}"


def _short(node: Expression) -> str | None:
    return None if node is None else shortened(str(node), MAX_EXPRESSION_CHARS)


def _result(annotation: Expression) -> str:
    return "" if annotation is None else f" -> {_short(annotation)}"


def _prefix(function: griffe.Function) -> str:
    is_async = "async" in function.labels
    if _decorators(function) & _CONTEXT_MANAGERS:
        return "async with " if is_async else "with "
    if "generator" in function.labels:
        return "async for … in "
    return "await " if is_async else ""


def _decorators(node: griffe.Function | griffe.Class) -> set[str]:
    """Return the last names of the decorators."""
    return {_last_name(decorator.value) for decorator in node.decorators}


# -- classes -------------------------------------------------------------------------------------------------


def constructor_calls(name: str, lineage: Sequence[griffe.Class]) -> tuple[list[str], list[Expression]]:
    """Return how objects of a class are made, and the annotations and defaults of the parameters.

    Args:
        name: The name of the class.
        lineage: The class and its base classes in the package, the nearest first.
    """
    if own := _initializers(lineage):
        calls = [_signature(name, list(one.parameters)[1:]) for one in own]
        return calls, list(argument_expressions(own))
    if any(map(_is_field_class, lineage)):
        given = _field_parameters(lineage[::-1])
        return [_signature(name, given)], [part for one in given for part in (one.annotation, one.default)]
    return [f"{name}({'…' if lineage[-1].bases else ''})"], []


def enum_members(name: str, lineage: Sequence[griffe.Class]) -> str:
    """Return the members of an enumeration in one line; empty for other classes."""
    bases = [_last_name(base) for node in lineage for base in node.bases]
    if not any(base.endswith(_ENUMS) for base in bases):
        return ""
    members = [
        f"{name}.{one.name} = {shortened(str(one.value), 40)}"
        for one in lineage[0].attributes.values()
        if "class-attribute" in one.labels and not one.name.startswith("_")
    ]
    return "; ".join(members[:MAX_MEMBERS]) + ("; …" if len(members) > MAX_MEMBERS else "")


def _initializers(lineage: Sequence[griffe.Class]) -> list[griffe.Function]:
    """Return the `__init__` that a class has or inherits, or else its `__new__`; of overloads each."""
    for node in lineage:
        for wanted in ("__init__", "__new__"):
            found = node.members.get(wanted)
            if isinstance(found, griffe.Function):
                return found.overloads or [found]
        if _is_field_class(node):
            return []
    return []


def _is_field_class(node: griffe.Class) -> bool:
    bases = map(_last_name, node.bases)
    return bool(_decorators(node) & _FIELD_DECORATORS or _FIELD_BASES.intersection(bases))


def _field_parameters(classes: Sequence[griffe.Class]) -> list[griffe.Parameter]:
    """Return the parameters of a constructor that is made of the fields of classes, the base classes first."""
    found: dict[str, griffe.Parameter] = {}
    kind = griffe.ParameterKind.positional_or_keyword
    if any("kw_only=True" in str(decorator.value) for decorator in classes[-1].decorators):
        kind = griffe.ParameterKind.keyword_only
    for one in (member for node in classes for member in node.members.values()):
        if not isinstance(one, griffe.Attribute) or one.annotation is None or not _is_parameter(one):
            continue
        if _last_name(one.annotation) == "KW_ONLY":
            kind = griffe.ParameterKind.keyword_only
            continue
        found[one.name] = griffe.Parameter(
            one.name, annotation=one.annotation, kind=kind, default=_default(one.value)
        )
    return list(found.values())


def _is_parameter(one: griffe.Attribute) -> bool:
    """Return whether a field is set by the constructor: no property, no `ClassVar`, no `field(init=False)`."""
    is_field = "instance-attribute" in one.labels and "property" not in one.labels
    return is_field and _keywords(one.value).get("init") != "False"


def _keywords(value: Expression) -> dict[str, str | griffe.Expr]:
    """Return the arguments of a call by their names; the first one without a name is the default."""
    found: dict[str, str | griffe.Expr] = {}
    for argument in value.arguments if isinstance(value, griffe.ExprCall) else []:
        if isinstance(argument, griffe.ExprKeyword):
            found[argument.name] = argument.value
        else:
            found.setdefault("default", argument)
    return found


def _default(value: Expression) -> Expression:
    """Return the default of a field, whether it stands for itself or in `field(…)`; None if there is none."""
    if not isinstance(value, griffe.ExprCall) or _last_name(value) not in _FIELD_FUNCTIONS:
        return value
    keywords = _keywords(value)
    factory = keywords.get("default_factory") or keywords.get("factory")
    if factory is not None:
        return f"{factory}()" if isinstance(factory, griffe.ExprName | griffe.ExprAttribute) else "…"
    given = keywords.get("default")
    return None if given == "..." else given
