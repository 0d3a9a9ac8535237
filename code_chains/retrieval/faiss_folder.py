"""Read the documents of a folder that the community `FAISS.save_local` has written, without unpickling."""

from __future__ import annotations

import os
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from code_chains.errors import StoreError
from code_chains.storage.files import open_regular

__all__ = ["read_faiss_folder"]

MAX_FILE_BYTES = 256 << 20
MAX_OPCODES = 10_000_000
"""Limit for about 250,000 documents. An opcode allocates at most about 130 bytes in addition to its text."""
MAX_DEPTH = 50
"""Levels of nested metadata."""
MIN_EXPANDED_CHARS = 16 << 20
MAX_EXPANSION = 16
"""Limit of the documents' total characters, per byte of the file. A pickle refers to a repeated text by a number, so a short
file can describe gigabytes."""

_DOCSTORE, _DOCUMENT = "InMemoryDocstore", "Document"
_CLASSES = {
    ("langchain_community.docstore.in_memory", "InMemoryDocstore"): _DOCSTORE,
    ("langchain.docstore.in_memory", "InMemoryDocstore"): _DOCSTORE,
    ("langchain_core.documents.base", "Document"): _DOCUMENT,
    ("langchain.schema.document", "Document"): _DOCUMENT,
    ("langchain.schema", "Document"): _DOCUMENT,
    ("langchain.docstore.document", "Document"): _DOCUMENT,
}
"""Names of classes that a file may mention, as versions of LangChain have written them.

None of them is imported.
"""


def read_faiss_folder(folder: Path, index_name: str) -> list[Document]:
    """Read the documents of a FAISS vector store, in the order of their vectors.

    Only `<index_name>.pkl` is read. Its opcodes are interpreted here: they build texts, numbers, lists and
    dicts, and records with the name of a class. There is no code that imports, calls or constructs anything,
    so a hostile file determines the documents, and nothing else. The vectors in `<index_name>.faiss` are not
    read: the reader of FAISS opens other files that an index names.

    Args:
        folder: The folder given to `save_local`.
        index_name: The `index_name` given to `save_local`.

    Raises:
        StoreError: The file is missing, damaged or too large, or holds something else than documents with
            JSON metadata.
    """
    path = folder / f"{index_name}.pkl"
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise ValueError(f"it has {size} bytes, more than {MAX_FILE_BYTES}")
            data = file.read(MAX_FILE_BYTES)
        return _documents(
            _Interpreter().run(data), _Budget(max(MIN_EXPANDED_CHARS, MAX_EXPANSION * len(data)))
        )
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError) as error:
        raise StoreError(
            f"The documents in {str(path)!r} cannot be read: {error}. Pass a folder that FAISS.save_local has written, whose"
            " documents have JSON metadata; otherwise create the store from the original texts."
        ) from error


# -- from bytes to values ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Record:
    """Stands for an instance: the name of its class, and the values of its attributes."""

    kind: str
    state: dict[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Class:
    kind: str


class _Set:
    """Stands for a set.

    The elements are dropped: pydantic only records in one which fields of a document were given.
    """


_SET = _Set()


class _Interpreter:
    """A stack machine for the opcodes that `pickle` writes for a document store (protocols 4 and 5).

    Invariant: what is on the stack is a str, int, float, bool, None, list, tuple, dict with str or int keys,
        `_Record`,
    `_Class` or `_SET`. No handler calls, hashes or compares anything else that comes from the file: a tuple
    that is nested a million times deep would end the process.
    """

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: list[Any] = []
        self._outer: list[list[Any]] = []  # The stacks below each open MARK.

    def run(self, data: bytes) -> Any:
        """Return the value that the opcodes describe.

        Raises:
            ValueError: There are too many opcodes, one that no document store needs, or one that makes no
                sense.
        """
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count >= MAX_OPCODES:
                raise ValueError(f"it has more than {MAX_OPCODES} opcodes")
            if opcode.name == "STOP":
                return self._stack.pop()
            if opcode.name in _LITERALS:
                self._stack.append(argument)
                continue
            handler = _HANDLERS.get(opcode.name)
            if handler is None:
                raise ValueError(
                    f"it uses the opcode {opcode.name}, which no documents with JSON metadata need"
                )
            handler(self, argument)
        raise ValueError("it is incomplete")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _pop_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._outer.pop()
        return values

    def _pop_tuple(self, length: int) -> None:
        if len(self._stack) < length:
            raise ValueError("a tuple has too few elements")
        values = tuple(self._stack[-length:])
        del self._stack[-length:]
        self._push(values)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise ValueError("items are set on something else than a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, int):
                raise ValueError(f"the key of a dict is a {type(key).__name__}")
            target[key] = value

    def _append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise ValueError("values are appended to something else than a list")
        target.extend(values)

    def _add_to_set(self, _: list[Any]) -> None:
        if self._stack[-1] is not _SET:
            raise ValueError("elements are added to something else than a set")

    def _find_class(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str or (module, name) not in _CLASSES:
            raise ValueError(
                f"it mentions {str(module)[:80]!r}, {str(name)[:80]!r}, which is no class of documents"
            )
        self._push(_Class(_CLASSES[module, name]))

    def _new(self) -> None:
        arguments, cls = self._stack.pop(), self._stack.pop()
        if type(cls) is not _Class or type(arguments) is not tuple or arguments:
            raise ValueError("it constructs something else than documents")
        self._push(_Record(cls.kind))

    def _build(self) -> None:
        state, record = self._stack.pop(), self._stack[-1]
        if type(record) is not _Record or type(state) is not dict or record.state is not None:
            raise ValueError("it sets attributes of something else than documents")
        record.state = state


_LITERALS = {
    "SHORT_BINUNICODE",
    "BINUNICODE",
    "BINUNICODE8",
    "BININT",
    "BININT1",
    "BININT2",
    "LONG1",
    "BINFLOAT",
}
_HANDLERS: Mapping[str, Callable[[_Interpreter, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "NONE": lambda machine, _: machine._push(None),
    "NEWTRUE": lambda machine, _: machine._push(True),
    "NEWFALSE": lambda machine, _: machine._push(False),
    "MARK": lambda machine, _: machine._mark(),
    "MEMOIZE": lambda machine, _: machine._memo.append(machine._stack[-1]),
    "BINGET": lambda machine, number: machine._push(machine._memo[number]),
    "LONG_BINGET": lambda machine, number: machine._push(machine._memo[number]),
    "EMPTY_TUPLE": lambda machine, _: machine._push(()),
    "TUPLE": lambda machine, _: machine._push(tuple(machine._pop_mark())),
    "TUPLE1": lambda machine, _: machine._pop_tuple(1),
    "TUPLE2": lambda machine, _: machine._pop_tuple(2),
    "TUPLE3": lambda machine, _: machine._pop_tuple(3),
    "EMPTY_LIST": lambda machine, _: machine._push([]),
    "APPEND": lambda machine, _: machine._append([machine._stack.pop()]),
    "APPENDS": lambda machine, _: machine._append(machine._pop_mark()),
    "EMPTY_DICT": lambda machine, _: machine._push({}),
    "SETITEM": lambda machine, _: machine._set_items([machine._stack.pop(-2), machine._stack.pop()]),
    "SETITEMS": lambda machine, _: machine._set_items(machine._pop_mark()),
    "EMPTY_SET": lambda machine, _: machine._push(_SET),
    "ADDITEMS": lambda machine, _: machine._add_to_set(machine._pop_mark()),
    "STACK_GLOBAL": lambda machine, _: machine._find_class(),
    "NEWOBJ": lambda machine, _: machine._new(),
    "BUILD": lambda machine, _: machine._build(),
}


# -- from values to documents --------------------------------------------------------------------------------


class _Budget:
    """The number of characters that may still come out of a file."""

    def __init__(self, chars: int) -> None:
        self._chars = chars

    def spend(self, chars: int) -> None:
        """Subtract from it.

        Raises:
            ValueError: It is exhausted.
        """
        self._chars -= chars
        if self._chars < 0:
            raise ValueError("its documents are far larger than the file")


def _documents(value: Any, budget: _Budget) -> list[Document]:
    """Return the documents of the pair (document store, ids by vector number) that `save_local` writes."""
    if type(value) is not tuple or len(value) != 2:
        raise ValueError("it does not hold a document store and its ids")
    by_id, ids = _attributes(value[0], _DOCSTORE).get("_dict"), value[1]
    if type(by_id) is not dict or type(ids) is not dict:
        raise ValueError("it does not hold a document store and its ids")
    documents = []
    for number in sorted(number for number in ids if type(number) is int):
        document_id = ids[number]
        if type(document_id) is not str or document_id not in by_id:
            raise ValueError(f"the document of vector {number} is missing")
        documents.append(_document(document_id, by_id[document_id], budget))
    return documents


def _document(document_id: str, value: Any, budget: _Budget) -> Document:
    fields = _attributes(value, _DOCUMENT).get("__dict__")
    if type(fields) is not dict:
        raise ValueError("a document has no fields")
    text, metadata = fields.get("page_content"), fields.get("metadata")
    if type(text) is not str or type(metadata) is not dict:
        raise ValueError("a document has no text or no metadata")
    budget.spend(len(text) + len(document_id))
    return Document(text, metadata=_json(metadata, budget), id=document_id)


def _attributes(value: Any, kind: str) -> dict[Any, Any]:
    if type(value) is not _Record or value.kind != kind:
        raise ValueError(f"it holds something else where a {kind} is expected")
    return value.state or {}


def _json(value: Any, budget: _Budget, depth: int = 0) -> Any:
    """Copy a value as plain JSON. What refers to itself exceeds the depth; what is shared is charged for each copy."""
    if depth > MAX_DEPTH:
        raise ValueError(f"metadata is nested more than {MAX_DEPTH} levels deep")
    budget.spend(len(value) + 1 if type(value) is str else 1)
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) in (list, tuple):
        return [_json(element, budget, depth + 1) for element in value]
    if type(value) is dict:
        return {_json(str(key), budget): _json(element, budget, depth + 1) for key, element in value.items()}
    raise ValueError("metadata is not JSON")
