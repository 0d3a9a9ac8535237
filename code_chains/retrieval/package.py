"""References of an installed package: how its functions and classes are imported and called."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from langchain_core.documents import Document

from code_chains.errors import InputError
from code_chains.inputs import shortened
from code_chains.retrieval import docstrings
from code_chains.retrieval.definitions import Definition, Definitions, literal, statements
from code_chains.retrieval.loaders import words
from code_chains.retrieval.package_files import read_modules
from code_chains.retrieval.signatures import (
    Function,
    call_prefix,
    decorators,
    field_parameters,
    fields,
    has_self,
    is_field_class,
    names_in,
    parameters,
    returns,
)

__all__ = ["REFERENCE", "read_package"]

_log = logging.getLogger(__name__)

REFERENCE = "reference"
"""The `kind` in the metadata of a reference."""
MAX_DEFINITIONS = 5_000
MAX_REFERENCE_CHARS = 1_500
_MAX_RELATED, _MAX_METHODS, _MAX_MEMBERS, _MAX_LINE_CHARS = 4, 20, 20, 300
_ENUMS = ("Enum", "Flag")
_PROPERTIES = {"property", "cached_property"}
_UNLISTED = {"setter", "deleter", "getter", "overload"}
_INDENT = "    "


def read_package(name: str, search_path: Sequence[str | Path] | None = None) -> list[Document]:
    """Read references of the public functions, classes, methods and constants of an installed package.

    The modules are parsed and never imported, so nothing of the package runs. Public is what `__all__` names, or
    else what has no leading underscore; the import is the shortest, as packages re-export what they want to be
    used. Private names, tests and vendored folders are left out.

    Args:
        name: The name to import, dotted for a part of a package.
        search_path: Folders to look in, such as the `site-packages` of another environment; None for `sys.path`.

    Raises:
        InputError: The package is not installed, has no source, or nothing that is public.
    """
    references = _References(Definitions(read_modules(name, search_path)))
    found = list(islice(references.all(), MAX_DEFINITIONS + 1))
    if not found:
        raise InputError(
            f"The package {name!r} defines nothing that is public. Name a part of it, such as {name}.core."
        )
    if len(found) > MAX_DEFINITIONS:
        _log.warning("Of the package %r the first %d definitions are read.", name, MAX_DEFINITIONS)
    return found[:MAX_DEFINITIONS]


class _References:
    """Makes the references of a package."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._public = dict(definitions.public())

    def all(self) -> Iterator[Document]:
        """Yield the references, those of methods after that of their class."""
        for definition, dotted in self._public.items():
            if definition.class_node is not None:
                yield self._class(definition, dotted)
                yield from self._methods(definition, dotted)
            elif definition.functions:
                yield self._function(definition, dotted)
            else:
                yield self._constant(definition, dotted)

    def _function(self, definition: Definition, dotted: str) -> Document:
        calls = [_call(definition.name, node) for node in definition.functions]
        lines = [*_import(dotted), *calls, *_documented(definition.doc)]
        return _reference(
            dotted, [*lines, *self._related(definition, definition.functions)], definition.doc, calls
        )

    def _constant(self, definition: Definition, dotted: str) -> Document:
        line = f"{definition.name} = {literal(definition.nodes[-1])}"
        return _reference(dotted, [*_import(dotted), line], "", [line])

    def _class(self, definition: Definition, dotted: str) -> Document:
        lineage = self._definitions.lineage(definition)
        calls = self._constructor(definition, lineage)
        lines = [*_import(dotted), *calls, *_documented(definition.doc), *_members(definition.name, lineage)]
        related = self._related(definition, _initializers(lineage), _field_annotations(lineage))
        return _reference(dotted, [*lines, *related], definition.doc, [*calls, *_methods_of(lineage)])

    def _methods(self, definition: Definition, dotted: str) -> Iterator[Document]:
        """Yield a reference for each documented method, which holds the constructor of its class as well."""
        lineage = self._definitions.lineage(definition)
        head = [*_import(dotted), *self._constructor(definition, lineage)]
        for name, nodes in _methods_of(lineage).items():
            doc = ast.get_docstring(nodes[-1]) or ""
            if doc:
                calls = [_method(definition.name, node) for node in nodes]
                lines = [*head, *calls, *_documented(doc), *self._related(definition, nodes)]
                yield _reference(f"{dotted}.{name}", lines, doc, calls, title_parts=2)

    def _constructor(self, definition: Definition, lineage: Sequence[ast.ClassDef]) -> list[str]:
        """Return how objects of a class are made; of an enumeration what it has."""
        name = definition.name
        if members := _enum_members(name, lineage):
            return members
        return [f"{name}({arguments})" for arguments in _constructor_arguments(lineage)]

    def _related(
        self, definition: Definition, nodes: Iterable[Function], more: Iterable[ast.expr | None] = ()
    ) -> list[str]:
        """Return lines about the classes and constants of the package that a signature names."""
        named = [
            self._definitions.named(definition.module, one) for one in names_in([*_expressions(nodes), *more])
        ]
        found = dict.fromkeys(one for one in named if one is not None and one is not definition)
        return [line for one in islice(found, _MAX_RELATED) for line in self._related_lines(one)]

    def _related_lines(self, definition: Definition) -> list[str]:
        dotted = self._public.get(definition)
        imported = _import(dotted) if dotted else []
        if definition.class_node is not None:
            calls = self._constructor(definition, self._definitions.lineage(definition))
            return ["", *imported, *calls]
        value = literal(definition.nodes[-1])
        return [] if value is None else [f"# {definition.name} = {value}"]


# -- functions -----------------------------------------------------------------------------------------------


def _import(dotted: str) -> list[str]:
    module, _, name = dotted.rpartition(".")
    return [f"from {module} import {name}"]


def _call(name: str, node: Function) -> str:
    return f"{call_prefix(node)}{name}({parameters(node)}){returns(node)}"


def _method(owner: str, node: Function) -> str:
    """Return how a method is called: with an object of its class, or with the class."""
    if not has_self(node):
        skipped = "classmethod" in decorators(node)
        return (
            f"{call_prefix(node)}{owner}.{node.name}({parameters(node, skip_first=skipped)}){returns(node)}"
        )
    subject = _variable(owner)
    if decorators(node) & _PROPERTIES:
        return f"{subject}.{node.name}{returns(node)}"
    return f"{call_prefix(node)}{subject}.{node.name}({parameters(node, skip_first=True)}){returns(node)}"


def _variable(owner: str) -> str:
    return words(owner).replace(" ", "_")


def _documented(doc: str) -> list[str]:
    about, sections, examples = (
        docstrings.description(doc),
        docstrings.sections(doc),
        docstrings.examples(doc),
    )
    return [*(f"{_INDENT}{line}" for line in filter(None, [about, *sections])), *examples]


def _expressions(nodes: Iterable[Function]) -> Iterator[ast.expr | None]:
    """Yield the annotations and defaults of functions."""
    for node in nodes:
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        yield from (arg.annotation for arg in arguments if arg is not None)
        yield from [*given.defaults, *given.kw_defaults, node.returns]


# -- classes -------------------------------------------------------------------------------------------------


def _constructor_arguments(lineage: Sequence[ast.ClassDef]) -> list[str]:
    if own := _initializers(lineage):
        return [parameters(node, skip_first=True) for node in own]
    if any(map(is_field_class, lineage)):
        return [field_parameters(lineage[::-1])]
    has_bases = any(node.bases for node in lineage[-1:])
    return ["…" if has_bases else ""]


def _initializers(lineage: Sequence[ast.ClassDef]) -> list[Function]:
    """Return the `__init__` that a class has or inherits, or else its `__new__`; of overloads each."""
    for node in lineage:
        for wanted in ("__init__", "__new__"):
            named = [one for one in statements(node.body) if isinstance(one, Function) and one.name == wanted]
            if named:
                return [one for one in named if "overload" in decorators(one)] or named[-1:]
        if is_field_class(node):
            return []
    return []


def _field_annotations(lineage: Sequence[ast.ClassDef]) -> list[ast.expr | None]:
    classes = [node for node in lineage if is_field_class(node)]
    return [
        expression for node in classes for one in fields(node) for expression in (one.annotation, one.value)
    ]


def _members(name: str, lineage: Sequence[ast.ClassDef]) -> list[str]:
    """Return a line for each method and property."""
    lines = []
    for nodes in islice(_methods_of(lineage).values(), _MAX_METHODS):
        about = docstrings.summary(ast.get_docstring(nodes[-1]) or "")
        lines += [f"{_method(name, node)}{about and f'  # {about}'}" for node in nodes]
    return [shortened(line, _MAX_LINE_CHARS) for line in lines]


def _methods_of(lineage: Sequence[ast.ClassDef]) -> dict[str, list[Function]]:
    """Return the public methods of a class by name, also those it inherits; of overloads each."""
    found: dict[str, list[Function]] = {}
    for node in lineage:
        own: dict[str, list[Function]] = {}
        for one in statements(node.body):
            if isinstance(one, Function) and not one.name.startswith("_"):
                own.setdefault(one.name, []).append(one)
        for name, nodes in own.items():
            overloads = [one for one in nodes if "overload" in decorators(one)]
            plain = [one for one in nodes if not decorators(one) & _UNLISTED]
            found.setdefault(name, overloads or plain or nodes[:1])
    return found


def _enum_members(name: str, lineage: Sequence[ast.ClassDef]) -> list[str]:
    """Return a line with the members of an enumeration; empty for other classes."""
    bases = [ast.unparse(base).rpartition(".")[2] for node in lineage for base in node.bases]
    if not any(base.endswith(_ENUMS) for base in bases):
        return []
    members = [
        f"{name}.{target.id} = {shortened(ast.unparse(one.value), 40)}"
        for one in statements(lineage[0].body)
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    ]
    return (
        ["; ".join(members[:_MAX_MEMBERS]) + ("; …" if len(members) > _MAX_MEMBERS else "")]
        if members
        else []
    )


# -- documents -----------------------------------------------------------------------------------------------


def _reference(
    dotted: str, lines: Sequence[str], doc: str, calls: Sequence[str], *, title_parts: int = 1
) -> Document:
    """Make a snippet that is found by what its docstring says, by its name, and by the words of its signature."""
    title = words(" ".join(dotted.split(".")[-title_parts:]))
    about = ". ".join(filter(None, [title, docstrings.description(doc)]))
    metadata = {
        "source": dotted,
        "about": about if doc else f"{title}. {words(dotted)}",
        "language": "python",
        "kind": REFERENCE,
        "signature": shortened("\n".join(calls), MAX_REFERENCE_CHARS),
    }
    text = "\n".join(docstrings.fitting(lines, MAX_REFERENCE_CHARS)).strip("\n") + "\n"
    return Document(text, metadata=metadata, id=f"{dotted}#{dotted.rpartition('.')[2]}")
