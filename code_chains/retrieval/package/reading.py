"""References of an installed package: how its functions and classes are imported and called."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import griffe
from langchain_core.documents import Document

from code_chains.errors import InputError
from code_chains.inputs import shortened
from code_chains.records.printable import strip_control_chars
from code_chains.retrieval.executed import NOT_RUN
from code_chains.retrieval.loaders import words
from code_chains.retrieval.package import docstrings, signatures
from code_chains.retrieval.package.definitions import Definition, Definitions, literal
from code_chains.retrieval.package.modules import read_modules
from code_chains.retrieval.references import REFERENCE

_log = logging.getLogger(__name__)

MAX_DEFINITIONS = 5_000
MAX_REFERENCE_CHARS, MAX_DOC_CHARS = 1_500, 20_000
_MAX_RELATED, _MAX_MAKERS, _MAX_METHODS, _MAX_LINE_CHARS = 6, 2, 20, 300
_INDENT = "    "
_WORD = re.compile(r"[^\W\d]\w*")

Method = griffe.Function | griffe.Attribute
_Expressions = Iterable[signatures.Expression]


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
        self._public = definitions.public()
        self._makers = self._find_makers()

    def all(self) -> Iterator[Document]:
        """Yield the references, those of methods after that of their class."""
        for definition, dotted in self._public.items():
            if isinstance(definition, griffe.Class):
                yield from self._class(definition, dotted)
            elif isinstance(definition, griffe.Function):
                yield self._function(definition, dotted)
            else:
                line = f"{self._called(definition)} = {literal(definition)}"
                yield _reference(dotted, [*_import(dotted), line], "", [line])

    def _function(self, function: griffe.Function, dotted: str) -> Document:
        doc = _doc(function)
        calls = [signatures.call(self._called(function), one) for one in function.overloads or [function]]
        calls = self._as_imported(function, _arguments(function), calls)
        related = self._related(function, _arguments(function), _results(function))
        return _reference(dotted, [*_import(dotted), *calls, *_documented(doc), *related], doc, calls)

    def _class(self, node: griffe.Class, dotted: str) -> Iterator[Document]:
        """Yield a reference of a class, and one for each documented method, which holds the constructor as well."""
        called, lineage, doc = self._called(node), self._definitions.lineage(node), _doc(node)
        calls, parts = _constructor(called, lineage)
        methods, head = _methods(lineage), [*_import(dotted), *calls]
        lines = [*head, *_documented(doc), *_members(called, methods)]
        lines += [*self._related(node, parts), *self._made_by(node, node)]
        yield _reference(dotted, lines, doc, [*calls, *methods])
        for name, method in methods.items():
            if doc := _doc(method):
                calls = self._as_imported(node, _arguments(method), _method_calls(called, method))
                related = self._related(node, _arguments(method), _results(method))
                lines = [*head, *calls, *_documented(doc), *related]
                yield _reference(f"{dotted}.{name}", lines, doc, calls, title_parts=2)

    def _related(self, definition: Definition, taken: _Expressions, returned: _Expressions = ()) -> list[str]:
        """Return lines about classes and constants that a signature names, what they are made of, and what makes them."""
        needed: dict[Definition, None] = {}
        waiting = self._named(definition, taken)
        while waiting and len(needed) < _MAX_RELATED:
            one = waiting.pop(0)
            if one not in needed and isinstance(one, griffe.Class):
                waiting += self._named(one, _constructor(one.name, self._definitions.lineage(one))[1])
            needed[one] = None
        needed.pop(definition, None)
        lines = [line for one in needed for line in [*self._about(one), *self._made_by(one, definition)]]
        others = [one for one in self._named(definition, returned) if one not in (definition, *needed)]
        return [*lines, *(line for one in dict.fromkeys(others[:_MAX_RELATED]) for line in self._about(one))]

    def _named(self, definition: Definition, parts: _Expressions) -> list[Definition]:
        named = (self._definitions.named(definition.module, name) for name in signatures.names_in(parts))
        return [one for one in named if one is not None]

    def _about(self, definition: Definition) -> list[str]:
        if isinstance(definition, griffe.Attribute):
            return [f"# {self._called(definition)} = {literal(definition)}"]
        if isinstance(definition, griffe.Function):
            return []
        dotted = self._public.get(definition)
        calls, _ = _constructor(self._called(definition), self._definitions.lineage(definition))
        return ["", *(_import(dotted) if dotted else []), *calls]

    def _made_by(self, definition: Definition, user: Definition) -> list[str]:
        """Return lines about what makes objects of a class, besides its constructor."""
        makers = [lines for maker, lines in self._makers.get(definition, ()) if maker is not user]
        own_first = sorted(makers[:_MAX_MAKERS], key=len)
        return list(chain.from_iterable(own_first))

    def _called(self, definition: Definition) -> str:
        """Return the name under which programs import a definition; its own if it is not public."""
        return self._public.get(definition, definition.name).rpartition(".")[2]

    def _as_imported(self, definition: Definition, taken: _Expressions, calls: Iterable[str]) -> list[str]:
        """Return calls with the names of the package's classes and constants as programs import them."""
        named = {one.name: self._called(one) for one in self._named(definition, taken)}
        others = {name: called for name, called in named.items() if name != called}
        return [_WORD.sub(lambda word: others.get(word[0], word[0]), call) for call in calls]

    def _find_makers(self) -> dict[Definition, list[tuple[Definition, list[str]]]]:
        """Return by class what returns objects of it and takes none, with lines about it, the shortest first."""
        found: dict[Definition, list[tuple[Definition, list[str]]]] = {}
        for owner, dotted in self._public.items():
            for maker, call in _makers_in(owner, self._called(owner)):
                made: set[Definition] = {
                    one for one in self._named(owner, _results(maker)) if isinstance(one, griffe.Class)
                }
                is_own = bool(maker.labels & {"classmethod", "staticmethod"})
                made |= {owner} if is_own and str(getattr(maker, "returns", None)) == "Self" else set()
                taken = self._named(owner, _arguments(maker))
                for one in made.difference(taken, () if is_own else (owner,)):
                    lines = [*(["", *_import(dotted)] if one is not owner else []), call]
                    found.setdefault(one, []).append((owner, lines))
        return {one: sorted(makers, key=lambda maker: len(maker[1][-1])) for one, makers in found.items()}


# -- what is said of them ------------------------------------------------------------------------------------


def _import(dotted: str) -> list[str]:
    module, _, name = dotted.rpartition(".")
    return [f"from {module} import {name}"]


def _doc(definition: griffe.Object) -> str:
    """Return the docstring, of a function with overloads the first one; empty if there is none."""
    ones = [definition, *(definition.overloads or [] if isinstance(definition, griffe.Function) else [])]
    found = (one.docstring.value for one in ones if one.docstring is not None)
    return strip_control_chars(next(filter(None, found), "")[:MAX_DOC_CHARS])


def _documented(doc: str) -> list[str]:
    about = filter(None, [docstrings.description(doc), *docstrings.sections(doc)])
    examples = docstrings.examples(doc)
    return [*(f"{_INDENT}{line}" for line in about), *([NOT_RUN.rstrip()] if examples else []), *examples]


def _overloads(method: Method) -> Sequence[Method]:
    """Return what is called or read: the overloads of a function if there are any, else itself."""
    return (isinstance(method, griffe.Function) and method.overloads) or [method]


def _arguments(method: Method) -> list[signatures.Expression]:
    """Return what names the types of arguments: annotations and defaults, or else words of the documentation."""
    found = list(signatures.argument_expressions(_overloads(method)))
    return found if any(isinstance(part, griffe.Expr) for part in found) else [*found, *_names(method)[0]]


def _results(method: Method) -> list[signatures.Expression]:
    """Return what names the type of the result: its annotation, or else words of the documentation."""
    found = list(signatures.result_expressions(_overloads(method)))
    return found if any(found) else _names(method)[1]


def _names(method: Method) -> Sequence[list[signatures.Expression]]:
    return [list(map(griffe.ExprName, names)) for names in docstrings.named_types(_doc(method))]


def _makers_in(owner: Definition, called: str) -> Iterator[tuple[Method, str]]:
    """Yield what may return objects, with how it is called: a function, or the methods of a class."""
    if isinstance(owner, griffe.Function):
        yield owner, signatures.call(called, (owner.overloads or [owner])[0])
    elif isinstance(owner, griffe.Class):
        for method in _methods([owner]).values():
            yield method, _method_calls(called, method)[0]


def _constructor(name: str, lineage: Sequence[griffe.Class]) -> tuple[list[str], list[signatures.Expression]]:
    """Return how objects of a class are made, of an enumeration what it has; and the parts of its signature."""
    calls, parts = signatures.constructor_calls(name, lineage)
    members = signatures.enum_members(name, lineage)
    return [members] if members else calls, parts


def _methods(lineage: Sequence[griffe.Class]) -> dict[str, Method]:
    """Return the public methods and properties of a class by name, also those it inherits."""
    found: dict[str, Method] = {}
    for name, member in (item for node in lineage for item in node.members.items()):
        is_method = isinstance(member, griffe.Function) or signatures.is_property(member)
        if isinstance(member, Method) and is_method and not name.startswith("_"):
            found.setdefault(name, member)
    return found


def _method_calls(owner: str, method: Method) -> list[str]:
    subject = words(owner).replace(" ", "_")
    return [signatures.method_call(owner, subject, one) for one in _overloads(method)]


def _members(owner: str, methods: Mapping[str, Method]) -> list[str]:
    """Return a line for each method and property."""
    lines = []
    for method in islice(methods.values(), _MAX_METHODS):
        about = docstrings.summary(_doc(method))
        comment = f"  # {about}" if about else ""
        lines += [shortened(f"{line}{comment}", _MAX_LINE_CHARS) for line in _method_calls(owner, method)]
    return lines


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
        "signature": strip_control_chars(shortened("\n".join(calls), MAX_REFERENCE_CHARS)),
    }
    if examples := docstrings.examples(doc):
        metadata["examples"] = strip_control_chars("\n".join(examples))
    text = strip_control_chars("\n".join(docstrings.fitting(lines, MAX_REFERENCE_CHARS)).strip("\n") + "\n")
    return Document(text, metadata=metadata, id=f"{dotted}#{dotted.rpartition('.')[2]}")
