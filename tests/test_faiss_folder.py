"""Folders that the community FAISS has saved, hostile ones included."""

from __future__ import annotations

import os
import pickle
import struct
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from code_chains import SnippetStore, create_code_chain
from code_chains.errors import StoreError
from code_chains.retrieval import faiss_folder
from code_chains.retrieval.faiss_folder import read_faiss_folder
from code_chains.testing import ScriptedModel

FAKE = DeterministicFakeEmbedding(size=16)
METADATA: dict[str, Any] = {
    "source": "a.py",
    "tags": ["x", "y", ("z",)],
    "nested": {"n": 1, "big": 2**70, "negative": -5, "ratio": 2.5, "none": None, "yes": True, "no": False},
}


def saved(folder: Path, documents: list[Document], **kwargs: Any) -> Path:
    FAISS.from_documents(documents, FAKE).save_local(str(folder), **kwargs)
    return folder


def written(folder: Path, data: bytes) -> Path:
    (folder / "index.pkl").write_bytes(data)
    return folder


def pickled(folder: Path, value: object, protocol: int = 4) -> Path:
    return written(folder, pickle.dumps(value, protocol=protocol))


def store_of(*documents: Document) -> tuple[InMemoryDocstore, dict[int, str]]:
    ids = {number: f"id{number}" for number in range(len(documents))}
    return InMemoryDocstore({f"id{number}": document for number, document in enumerate(documents)}), ids


# -- real folders --------------------------------------------------------------------------------------------------------


def test_texts_metadata_and_ids_are_carried_over(tmp_path: Path) -> None:
    documents = [Document("print('ä')", metadata=METADATA, id="first"), Document("x" * 100_000, id="second")]
    first, second = read_faiss_folder(saved(tmp_path, documents), "index")
    assert (first.id, first.page_content) == ("first", "print('ä')")
    assert first.metadata == METADATA | {"tags": ["x", "y", ["z"]]}
    assert (second.id, second.page_content, second.metadata) == ("second", "x" * 100_000, {})


def test_the_folder_of_a_large_index_is_read_in_the_order_of_its_vectors(tmp_path: Path) -> None:
    shared = {"source": "shared.py", "tags": ["shared"]}
    documents = [Document(f"print({number})", metadata=shared | {"n": number}) for number in range(3000)]
    read = read_faiss_folder(saved(tmp_path, documents), "index")
    assert [(one.page_content, one.metadata) for one in read] == [
        (one.page_content, one.metadata) for one in documents
    ]


@pytest.mark.parametrize("protocol", [4, 5])
def test_both_protocols_of_python_are_read(tmp_path: Path, protocol: int) -> None:
    pickled(tmp_path, store_of(Document("a"), Document("b", metadata=METADATA)), protocol)
    assert [one.page_content for one in read_faiss_folder(tmp_path, "index")] == ["a", "b"]


def test_what_was_deleted_is_left_out(tmp_path: Path) -> None:
    store = FAISS.from_documents([Document("a", id="1"), Document("b", id="2"), Document("c", id="3")], FAKE)
    store.delete(["2"])
    store.save_local(str(tmp_path))
    assert [one.id for one in read_faiss_folder(tmp_path, "index")] == ["1", "3"]


def test_an_empty_store_has_no_documents(tmp_path: Path) -> None:
    assert read_faiss_folder(pickled(tmp_path, store_of()), "index") == []


def test_a_store_of_a_folder_finds_its_texts(tmp_path: Path) -> None:
    saved(
        tmp_path,
        [Document("print(1)"), Document("print(2)", metadata={"source": "two.py"})],
        index_name="mine",
    )
    store = SnippetStore.from_faiss(tmp_path, FAKE, index_name="mine")
    assert store.similarity_search("print(2)", k=1)[0].metadata == {"source": "two.py"}


def test_other_embeddings_may_be_used(tmp_path: Path) -> None:
    store = SnippetStore.from_faiss(
        saved(tmp_path, [Document("print(1)")]), DeterministicFakeEmbedding(size=8)
    )
    assert len(store.similarity_search("print(1)")) == 1


def test_a_chain_shows_its_examples(tmp_path: Path) -> None:
    saved(tmp_path, [Document("print(sum([1, 2]))", metadata={"source": "sum.py"})])
    snippets = SnippetStore.from_faiss(tmp_path, FAKE)
    model = ScriptedModel(lambda messages: "print(3)")
    with create_code_chain(model, executor="none", snippets=snippets, interpret=False) as chain:
        assert [one.name for one in chain.invoke("What is 1 + 2?")["sources"]] == ["sum.py"]


# -- hostile files -------------------------------------------------------------------------------------------------------


class Calls:
    """An object that runs something when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.arguments


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value.encode())]) + value.encode() + b"\x94"


def named(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93\x94"


PROTO = b"\x80\x04"
DOCUMENT = named("langchain_core.documents.base", "Document")
DOCSTORE = named("langchain_community.docstore.in_memory", "InMemoryDocstore")


def one_document(metadata: bytes) -> bytes:
    """A file with one document, whose metadata are these opcodes."""
    fields = b"}(" + text("page_content") + text("print(1)") + text("metadata") + metadata + b"u"
    document = DOCUMENT + b")\x81}(" + text("__dict__") + fields + b"ub"
    docstore = DOCSTORE + b")\x81}" + text("_dict") + b"}" + text("a") + document + b"ssb"
    return PROTO + docstore + b"}K\x00" + text("a") + b"s\x86."


def executed(marker: Path) -> dict[str, bytes]:
    command = f"touch {marker}"
    reduce = pickle.dumps((Calls(os.system, command), {}), protocol=4)
    return {
        "os.system": reduce,
        "os.system in protocol 0": pickle.dumps((Calls(os.system, command), {}), protocol=0),
        "os.system in protocol 2": pickle.dumps((Calls(os.system, command), {}), protocol=2),
        "eval": pickle.dumps((Calls(eval, f"open({str(marker)!r}, 'w').close()"), {}), protocol=4),
        "exec in metadata": pickle.dumps(
            store_of(Document("a", metadata={"x": Calls(exec, f"open({str(marker)!r}, 'w').close()")})),
            protocol=4,
        ),
        "getattr": pickle.dumps((Calls(getattr, "a", "upper"), {}), protocol=4),
        "a class with a call": PROTO + named("subprocess", "Popen") + text(command) + b"\x85\x81.",
        "a document as a function": PROTO + DOCUMENT + text(command) + b"\x85R.",
        "a document with arguments": PROTO + DOCUMENT + text(command) + b"\x85\x81.",
        "a dotted name": PROTO
        + named("langchain_core.documents.base", "Document.__init__.__globals__")
        + b").",
        "a module of documents": PROTO + named("langchain_core.documents", "base.sys") + b")\x81.",
        "GLOBAL": b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.",
        "INST": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "OBJ": PROTO + b"(" + named("os", "system") + text(command) + b"o.",
        "NEWOBJ_EX": PROTO + DOCUMENT + b")}\x92.",
        "EXT1": PROTO + b"\x82\x01.",
        "PERSID": b"Pid\n.",
        "BINPERSID": PROTO + text("id") + b"Q.",
        "NEXT_BUFFER": b"\x80\x05\x97.",
        "a state of a class": PROTO + DOCUMENT + b"}" + text("__init__") + text("x") + b"sb.",
        "a state of a dict": PROTO + b"}}" + text("__class__") + text("x") + b"sb.",
    }


@pytest.mark.parametrize("attack", executed(Path("x")))
def test_nothing_in_a_file_is_ever_executed(tmp_path: Path, attack: str) -> None:
    marker = tmp_path / "executed"
    written(tmp_path, executed(marker)[attack])
    with pytest.raises(StoreError, match="cannot be read"):
        SnippetStore.from_faiss(tmp_path, FAKE)
    assert not marker.exists()


def test_the_attacks_are_real(tmp_path: Path) -> None:
    for attack in (
        "os.system",
        "os.system in protocol 0",
        "os.system in protocol 2",
        "exec in metadata",
        "GLOBAL",
        "INST",
    ):
        marker = tmp_path / attack.replace(" ", "-")
        pickle.loads(executed(marker)[attack])
        assert marker.exists(), attack


def test_no_module_is_imported_that_a_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StoreError, match="'planted', 'Document'"):
        read_faiss_folder(written(tmp_path, PROTO + named("planted", "Document") + b")\x81."), "index")


MALFORMED = {
    "empty": b"",
    "text": b"not a pickle",
    "an unknown opcode": PROTO + b"\xff",
    "without STOP": PROTO + b"}",
    "an empty stack": PROTO + b".",
    "a value too few for a tuple": PROTO + b"N\x86.",
    "a MARK that was never set": PROTO + b"u.",
    "a memo that was never set": PROTO + b"h\x05.",
    "a memo of the last": PROTO + b"N\x94j\xff\xff\xff\xff.",
    "MEMOIZE of nothing": PROTO + b"\x94.",
    "items of a list": PROTO + b"](NNu.",
    "a key without its value": PROTO + b"}(Nu.",
    "an unhashable key": PROTO + b"}]Ns.",
    "values appended to a dict": PROTO + b"}(NNe.",
    "elements of no set": PROTO + b"}(NN\x90.",
    "a class by numbers": PROTO + b"K\x01K\x02\x93.",
    "a text that says it is huge": PROTO + b"\x8d" + struct.pack("<Q", 2**62) + b"x.",
    "a text that says it is larger than any": PROTO + b"\x8d" + struct.pack("<Q", 2**64 - 1) + b"x.",
    "a frame that says it is huge": PROTO + b"\x95" + struct.pack("<Q", 2**63) + b"}.",
    "a number that says it is huge": PROTO + b"\x8b" + struct.pack("<I", 2**31 - 1) + b"x.",
    "a number of negative length": PROTO + b"\x8b" + struct.pack("<i", -1) + b".",
    "text that is no UTF-8": PROTO + b"\x8c\x02\xff\xff.",
    "no pair": PROTO + b"N.",
    "no store": PROTO + b"}}\x86.",
    "a store without documents": PROTO + DOCSTORE + b")\x81}\x86.",
    "a store that is a document": PROTO + DOCUMENT + b")\x81}b}\x86.",
    "a document that is a store": pickle.dumps(
        (InMemoryDocstore({"a": InMemoryDocstore()}), {0: "a"}),  # type: ignore[dict-item]
        protocol=4,
    ),
    "a document that is a text": pickle.dumps((InMemoryDocstore({"a": "text"}), {0: "a"}), protocol=4),  # type: ignore[dict-item]
    "a document that is missing": pickle.dumps((InMemoryDocstore(), {0: "a"}), protocol=4),
    "an id that is not text": pickle.dumps((InMemoryDocstore(), {0: ["a"]}), protocol=4),
    "metadata that are not JSON": pickle.dumps(
        store_of(Document("a", metadata={"day": date(2026, 1, 2)})), protocol=4
    ),
    "metadata with a set": pickle.dumps(store_of(Document("a", metadata={"set": {1, 2}})), protocol=4),
    "metadata with bytes": pickle.dumps(store_of(Document("a", metadata={"bytes": b"x"})), protocol=4),
    "metadata that are no dict": one_document(b"]"),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(StoreError, match=r"index\.pkl' cannot be read: .*save_local"):
        read_faiss_folder(written(tmp_path, data), "index")


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    data = pickle.dumps(store_of(Document("a", metadata=METADATA), Document("b")), protocol=4)
    for length in range(len(data)):
        with pytest.raises(StoreError):
            read_faiss_folder(written(tmp_path, data[:length]), "index")


@pytest.mark.slow
def test_a_file_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    data = pickle.dumps(store_of(Document("a", metadata=METADATA), Document("b")), protocol=4)
    for place in range(len(data)):
        for value in (0, 0x2E, 0x52, 0x63, 0x81, 0x93, 0xFF, data[place] ^ 1):
            written(tmp_path, data[:place] + bytes([value]) + data[place + 1 :])
            try:
                documents = read_faiss_folder(tmp_path, "index")
            except StoreError:
                continue
            assert all(type(one) is Document and type(one.page_content) is str for one in documents)


def nested(opening: bytes, closing: bytes) -> bytes:
    return one_document(b"}" + text("x") + opening * 200_000 + closing * 200_000 + b"s")


def shared_list(levels: int) -> Any:
    value: list[Any] = ["leaf"]
    for _ in range(levels):
        value = [value, value]
    return value


def itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["x"] = value
    return value


def bombs() -> dict[str, bytes]:
    laughs, loop = Document("a"), Document("a")
    laughs.metadata["x"], loop.metadata["x"] = shared_list(60), itself()
    wide = Document("a")
    wide.metadata["x"] = ["y" * 1_000_000] * 10_000
    copies = Document("z" * 1_000_000)
    store = InMemoryDocstore({"a": copies}), dict.fromkeys(range(10_000), "a")
    return {
        "billion laughs": pickle.dumps(store_of(laughs), protocol=4),
        "a value within itself": pickle.dumps(store_of(loop), protocol=4),
        "a text that is repeated": pickle.dumps(store_of(wide), protocol=4),
        "a document that is repeated": pickle.dumps(store, protocol=4),
        "nested lists": nested(b"](", b"e"),
        "nested tuples": nested(b"(", b"t"),
        "a key of nested tuples": one_document(b"}" + b")" + b"\x85" * 200_000 + b"Ns"),
        "nested marks": PROTO + b"(" * 1_000_000 + b".",
        "memoized without end": PROTO + b"N" + b"\x94" * 3_000_000 + b".",
        "sets without end": PROTO + b"\x8f" * 3_000_000 + b".",
        "dicts without end": PROTO + b"}" * 3_000_000 + b".",
        "zeros": bytes(3_000_000),
    }


@pytest.mark.slow
@pytest.mark.parametrize("bomb", bombs())
def test_a_bomb_is_refused_in_little_time_and_memory(tmp_path: Path, bomb: str) -> None:
    import resource  # Not on Windows.

    written(tmp_path, bombs()[bomb])
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(StoreError, match="cannot be read"):
        read_faiss_folder(tmp_path, "index")
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000


def test_too_many_opcodes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_folder, "MAX_OPCODES", 1000)
    with pytest.raises(StoreError, match="more than 1000 opcodes"):
        read_faiss_folder(written(tmp_path, PROTO + b"N" * 1001 + b"."), "index")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "index.pkl").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(StoreError, match="1000000000000 bytes"):
        read_faiss_folder(tmp_path, "index")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index.pkl")
    with pytest.raises(StoreError, match="not a regular file"):
        read_faiss_folder(tmp_path, "index")


def test_a_folder_without_an_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{tmp_path}/index.pkl"):
        SnippetStore.from_faiss(tmp_path, FAKE)
