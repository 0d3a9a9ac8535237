"""The snippet store: search, persistence, merging and updates."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from code_chains.errors import InputError, StoreError
from code_chains.retrieval.embeddings import identity
from code_chains.retrieval.store import Changes, SnippetStore
from code_chains.storage.files import sha256_file


class Recording(DeterministicFakeEmbedding):
    """Embeddings that record the embedded texts."""

    size: int = 32
    asked: list[str]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.extend(texts)
        return super().embed_documents(texts)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def embedding() -> Recording:
    return Recording(asked=[])


class TestAsVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return SnippetStore(self.get_embeddings())


class _Searching(BaseRetriever):
    """The store's retriever with the `k` of the suite."""

    k: int = 4

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> Any:
        store = SnippetStore.from_texts([f"print({n})" for n in range(5)], Recording(asked=[]))
        return store.as_retriever(search_kwargs={"k": kwargs.get("k", self.k)}).invoke(query)


class TestAsRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return _Searching

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return "print(3)"


# -- searching -----------------------------------------------------------------------------------------------------------


def numbered(count: int, embedding: Embeddings, **kwargs: Any) -> SnippetStore:
    texts = [f"print({number})" for number in range(count)]
    return SnippetStore.from_texts(
        texts, embedding, [{"even": n % 2 == 0, "n": n} for n in range(count)], **kwargs
    )


def test_the_same_text_scores_one(embedding: Recording) -> None:
    ((_, score),) = numbered(9, embedding).similarity_search_with_score("print(7)", k=1)
    assert score == pytest.approx(1)


def test_a_threshold_drops_distant_snippets(embedding: Recording) -> None:
    retriever = numbered(9, embedding).as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9}
    )
    assert [one.page_content for one in retriever.invoke("print(7)")] == ["print(7)"]


@pytest.mark.parametrize("approximate_from", [100, 100_000])
def test_a_filter_finds_a_rare_match(embedding: Recording, approximate_from: int) -> None:
    store = numbered(400, embedding, approximate_from=approximate_from)
    found = store.similarity_search("print(1)", k=3, filter={"n": 399})
    assert [one.metadata["n"] for one in found] == [399]


def test_a_filter_may_name_several_values_or_be_a_function(embedding: Recording) -> None:
    store = numbered(9, embedding)
    named = store.similarity_search("print(1)", k=9, filter={"n": [2, 3]})
    asked = store.similarity_search("print(1)", k=9, filter=lambda one: one.metadata["n"] in (2, 3))
    assert {one.metadata["n"] for one in named} == {one.metadata["n"] for one in asked} == {2, 3}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"x", "y"}, {"a", "b"}),
        (["z"], {"b"}),
        ("x", {"a"}),
        (["x", "w"], {"a"}),
        ({"of": "one"}, {"c"}),
        ([{"of": "one"}], {"c"}),
        ({"v"}, set()),
    ],
)
def test_a_list_in_the_metadata_passes_where_any_of_it_is_wanted(
    embedding: Recording, wanted: object, found: set[str]
) -> None:
    tags: list[dict[str, Any]] = [{"tags": ["w", "x"]}, {"tags": ["y", "z"]}, {"tags": {"of": "one"}}, {}]
    store = SnippetStore.from_texts(["a", "b", "c", "d"], embedding, tags)
    assert {one.page_content for one in store.similarity_search("a", filter={"tags": wanted})} == found


@pytest.mark.slow
def test_approximate_search_finds_nearly_what_exact_search_finds(embedding: Recording) -> None:
    exact, near = numbered(2000, embedding), numbered(2000, embedding, approximate_from=1000)
    same = [
        exact.similarity_search(f"print({n})", k=1) == near.similarity_search(f"print({n})", k=1)
        for n in range(100)
    ]
    assert np.mean(same) > 0.95


def test_deleting_and_adding_go_on_in_an_approximate_index(embedding: Recording) -> None:
    store = numbered(300, embedding, approximate_from=200)
    gone = store.similarity_search("print(7)", k=1)[0]
    store.delete([str(gone.id)])
    store.add_texts(["print('new')"])
    assert store.similarity_search("print('new')", k=1)[0].page_content == "print('new')"
    assert gone not in store.similarity_search("print(7)", k=10)


def test_diverse_results_leave_out_near_doubles() -> None:
    class Plain(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return {"a": [1, 0.0], "a2": [1, 0.01], "b": [0.8, 0.6]}[text]

    store = SnippetStore.from_texts(["a", "a2", "b"], Plain())
    found = store.max_marginal_relevance_search("a", k=2, lambda_mult=0.3)
    assert [one.page_content for one in found] == ["a", "b"]


def test_changing_a_search_result_does_not_change_the_store(embedding: Recording) -> None:
    store = numbered(1, embedding)
    store.similarity_search("print(0)")[0].metadata["n"] = "changed"
    assert store.similarity_search("print(0)")[0].metadata["n"] == 0


async def test_asynchronous_search_finds_the_same(embedding: Recording) -> None:
    store = numbered(9, embedding)
    assert await store.asimilarity_search("print(3)") == store.similarity_search("print(3)")


def test_threads_may_add_while_others_search(embedding: Recording) -> None:
    store = numbered(50, embedding)
    threads = [
        threading.Thread(target=lambda start=start: [store.add_texts([f"{start}-{n}"]) for n in range(20)])
        for start in range(4)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert len(store.similarity_search("print(1)", k=5)) == 5
    assert len(store) == 50 + 80


@pytest.mark.parametrize("way", ["similarity_search", "max_marginal_relevance_search"])
def test_deleting_during_a_search_is_no_error(
    embedding: Recording, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    class Between:
        """A lock that lets another thread in as soon as it is free."""

        def __init__(self) -> None:
            self.depth = 0

        def __enter__(self) -> None:
            self.depth += 1

        def __exit__(self, *_: object) -> None:
            self.depth -= 1
            if not self.depth:
                monkeypatch.setattr(store, "_lock", threading.RLock())
                store.delete()

    store = numbered(9, embedding)
    monkeypatch.setattr(store, "_lock", Between())
    assert len(getattr(store, way)("print(1)", k=3)) == 3


def test_an_empty_store_of_offline_embeddings_has_nothing_diverse() -> None:
    assert SnippetStore().max_marginal_relevance_search("print(1)") == []


def test_metadata_other_than_json_is_refused_before_anything_is_added(embedding: Recording) -> None:
    store = numbered(2, embedding)
    with pytest.raises(InputError, match="JSON"):
        store.add_texts(["fine", "not"], [{}, {"bad": object()}])
    assert len(store) == 2


def test_embeddings_that_fail_leave_the_store_as_it_was(
    embedding: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = numbered(2, embedding)
    monkeypatch.setattr(Recording, "embed_documents", lambda self, texts: [[1.0, 2.0]] * len(texts))
    with pytest.raises(InputError, match="32"):
        store.add_texts(["print(0)"], [{"n": "other"}], ids=store.add_texts([]) or ["x"])
    assert [one.metadata["n"] for one in store.similarity_search("print(0)", k=1)] == [0]


def test_an_approximate_search_returns_k_snippets_after_most_are_deleted(embedding: Recording) -> None:
    store = numbered(600, embedding, approximate_from=10)
    store.delete([str(one.id) for one in store.similarity_search("print(1)", k=600)[20:]])
    assert len(store.similarity_search("print(2)", k=20)) == 20


def test_cells_grow_with_the_store(embedding: Recording) -> None:
    store = numbered(100, embedding, approximate_from=100)
    store.add_texts([f"more {n}" for n in range(1500)])
    exact = SnippetStore.from_texts(
        [f"print({n})" for n in range(100)] + [f"more {n}" for n in range(1500)], embedding
    )
    same = [
        store.similarity_search(f"more {n}", k=1) == exact.similarity_search(f"more {n}", k=1)
        for n in range(50)
    ]
    assert np.mean(same) > 0.95


@pytest.mark.parametrize("approximate_from", [10, 10_000])
def test_a_loaded_store_uses_its_own_search_mode(
    embedding: Recording, tmp_path: Path, approximate_from: int
) -> None:
    numbered(300, embedding, approximate_from=10_010 - approximate_from).save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding, approximate_from=approximate_from)
    assert loaded.similarity_search("print(7)", k=1)[0].page_content == "print(7)"
    assert bool(loaded._index.cells) == (approximate_from == 10)


def test_the_length_of_a_vector_changes_nothing(embedding: Recording) -> None:
    store, vector = numbered(20, embedding), embedding.embed_query("print(3)")
    longer = [7 * number for number in vector]
    assert store.similarity_search_by_vector(longer) == store.similarity_search_by_vector(vector)


# -- saving --------------------------------------------------------------------------------------------------------------


def test_a_loaded_store_finds_the_same(embedding: Recording, tmp_path: Path) -> None:
    store = numbered(20, embedding)
    store.save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding)
    assert loaded.similarity_search("print(4)") == store.similarity_search("print(4)")


def test_ids_go_on_after_loading(embedding: Recording, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding)
    loaded.add_texts(["new"])
    assert len({one.page_content for one in loaded.similarity_search("new", k=9)}) == 4


def test_a_folder_holds_vectors_and_json_and_nothing_else(embedding: Recording, tmp_path: Path) -> None:
    store = numbered(3, embedding)
    store.save(tmp_path)
    store.save(tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix != ".lock") == [".f32", ".json"]
    assert json.loads((tmp_path / "snippets.json").read_text())["snippets"][0]["text"] == "print(0)"


NOTES = {
    "cut off": lambda note: json.dumps(note)[:-20],
    "of another format": lambda note: json.dumps(note | {"format": "something else"}),
    "a number twice": lambda note: json.dumps(note | {"snippets": [note["snippets"][0] | {"id": "x"}] * 3}),
    "a number of FAISS's own": lambda note: json.dumps(
        note | {"snippets": [note["snippets"][0] | {"number": -1}]}
    ),
    "a number without end": lambda note: json.dumps(
        note | {"snippets": [note["snippets"][0] | {"number": 1e999}]}
    ),
    "a next number out of range": lambda note: json.dumps(note | {"next": 2**63}),
    "nested": lambda note: "[" * 100_000,
}


@pytest.mark.parametrize("damage", NOTES.values(), ids=NOTES)
def test_a_damaged_store_is_reported_as_damaged(embedding: Recording, tmp_path: Path, damage: Any) -> None:
    numbered(3, embedding).save(tmp_path)
    note = tmp_path / "snippets.json"
    note.write_text(damage(json.loads(note.read_text())))
    with pytest.raises(StoreError, match="damaged"):
        SnippetStore.load(tmp_path, embedding)


def rewritten(folder: Path, data: bytes | None = None, **changes: Any) -> None:
    """A saved store after somebody who can write to its folder has changed its vectors or what is noted of them."""
    note = json.loads((folder / "snippets.json").read_text())
    if data is not None:
        (folder / note["vectors"]).write_bytes(data)
        note["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / "snippets.json").write_text(json.dumps(note | changes))


def piped(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    rewritten(folder, vectors="pipe")


VECTORS: dict[str, Callable[[Path], object]] = {
    "changed": lambda folder: next(folder.glob("*.f32")).write_bytes(bytes(3 * 32 * 4)),
    "missing": lambda folder: next(folder.glob("*.f32")).unlink(),
    "not noted": lambda folder: rewritten(folder, vectors=None),
    "too few": lambda folder: rewritten(folder, bytes(2 * 32 * 4)),
    "an index of FAISS": lambda folder: rewritten(folder, b"IxM2" + bytes(200)),
    "no numbers": lambda folder: rewritten(folder, np.full((3, 32), np.nan, "<f4").tobytes()),
    "of negative size": lambda folder: rewritten(folder, size=-32),
    "of a size without end": lambda folder: rewritten(folder, size=1e999),
    "more cells than vectors": lambda folder: rewritten(folder, cells=10**12),
    "a FIFO": piped,
    "a folder": lambda folder: rewritten(folder, vectors=".."),
    "a device": lambda folder: rewritten(folder, vectors="/dev/zero"),
}


@pytest.mark.parametrize("damage", VECTORS.values(), ids=VECTORS)
def test_unusable_vectors_are_embedded_again_from_the_texts(
    embedding: Recording, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object]
) -> None:
    numbered(3, embedding).save(tmp_path)
    damage(tmp_path)
    embedding.asked.clear()
    loaded = SnippetStore.load(tmp_path, embedding)
    assert loaded.similarity_search("print(2)", k=1)[0].page_content == "print(2)"
    assert len(embedding.asked) == 3
    assert "cannot be used" in caplog.text


@pytest.mark.parametrize("approximate_from", [10, 10_000])
def test_loading_embeds_nothing_and_finds_the_same(
    embedding: Recording, tmp_path: Path, approximate_from: int
) -> None:
    store = numbered(300, embedding, approximate_from=approximate_from)
    store.save(tmp_path)
    embedding.asked.clear()
    loaded = SnippetStore.load(tmp_path, embedding, approximate_from=approximate_from)
    assert [loaded.similarity_search(f"print({n})", k=5) for n in range(20)] == [
        store.similarity_search(f"print({n})", k=5) for n in range(20)
    ]
    assert embedding.asked == []


def test_an_emptied_store_can_be_saved(embedding: Recording, tmp_path: Path) -> None:
    store = numbered(2, embedding)
    store.delete([str(one.id) for one in store.similarity_search("print(1)", k=2)])
    store.save(tmp_path)
    assert len(SnippetStore.load(tmp_path, embedding)) == 0


def test_saved_files_are_readable_by_their_user_alone(embedding: Recording, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path / "new")
    kept = [path for path in (tmp_path / "new").iterdir() if path.suffix != ".lock"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_an_index_of_other_embeddings_is_refused(embedding: Recording, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    with pytest.raises(StoreError, match="Recording"):
        SnippetStore.load(tmp_path, DeterministicFakeEmbedding(size=32))


def test_a_folder_without_an_index_is_reported(embedding: Recording, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="code-chains index"):
        SnippetStore.load(tmp_path, embedding)


def test_a_save_that_fails_leaves_the_old_one(
    embedding: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = numbered(3, embedding)
    store.save(tmp_path)
    store.add_texts(["new"])
    monkeypatch.setattr(
        "code_chains.storage.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(StoreError, match="disk full"):
        store.save(tmp_path)
    assert len(SnippetStore.load(tmp_path, embedding)) == 3


def both(folder: Path, embedding: Embeddings) -> tuple[SnippetStore, SnippetStore]:
    """A folder as two processes have loaded it."""
    numbered(3, embedding).save(folder)
    return SnippetStore.load(folder, embedding), SnippetStore.load(folder, embedding)


def texts(store: SnippetStore) -> set[str]:
    return {one.page_content for one in store.similarity_search("print(0)", k=99)}


def test_two_stores_saved_into_one_folder_are_merged(embedding: Recording, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.add_and_save([Document("from one")])
    other.add_and_save([Document("from other")])
    one.add_texts(["one more"])
    one.save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) >= {"print(0)", "from one", "from other", "one more"}


def test_merged_snippets_are_found_after_saving(embedding: Recording, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.add_and_save([Document("from one")])
    other.add_and_save([])
    assert texts(other) == texts(one)


def test_deletions_survive_a_merge(embedding: Recording, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.delete([str(one.similarity_search("print(0)", k=1)[0].id)])
    one.save(tmp_path)
    other.delete([str(other.similarity_search("print(1)", k=1)[0].id)])
    other.add_and_save([Document("new")])
    assert texts(SnippetStore.load(tmp_path, embedding)) == {"print(2)", "new"}


def test_a_store_of_another_folder_replaces_the_previous_one(embedding: Recording, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    SnippetStore.from_texts(["alone"], embedding).save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) == {"alone"}


def test_saving_repairs_a_damaged_folder(embedding: Recording, tmp_path: Path) -> None:
    store, _ = both(tmp_path, embedding)
    (tmp_path / "snippets.json").write_text("{")
    store.save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) == texts(store)


def test_threads_that_save_and_load_at_once_always_find_a_whole_store(
    embedding: Recording, tmp_path: Path
) -> None:
    def learn(number: int, store: SnippetStore) -> None:
        for more in range(10):
            store.add_and_save([Document(f"{number} {more}")])

    with ThreadPoolExecutor(4) as pool:
        saving = [pool.submit(learn, number, store) for number, store in enumerate(both(tmp_path, embedding))]
        while not all(one.done() for one in saving):
            assert len(SnippetStore.load(tmp_path, embedding)) >= 3
    assert len(SnippetStore.load(tmp_path, embedding)) == 3 + 20


def test_add_and_save_needs_a_folder(embedding: Recording) -> None:
    with pytest.raises(StoreError, match=r"save\(folder\)"):
        numbered(1, embedding).add_and_save([Document("new")])


@pytest.mark.parametrize("damage", ["folder", "index"])
def test_a_folder_that_cannot_be_written_is_a_store_error(
    embedding: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    if damage == "folder":
        (tmp_path / "index").write_text("a file")
    else:
        monkeypatch.setattr(
            "faiss.IndexIDMap2.reconstruct_batch", lambda *_: (_ for _ in ()).throw(RuntimeError("lost"))
        )
    with pytest.raises(StoreError, match="cannot be saved"):
        numbered(1, embedding).save(tmp_path / "index")


def test_a_folder_that_cannot_be_locked_can_still_be_read(
    embedding: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(3, embedding).save(tmp_path)
    monkeypatch.setattr(
        "filelock.FileLock.acquire", lambda *_, **__: (_ for _ in ()).throw(PermissionError("read-only"))
    )
    assert len(SnippetStore.load(tmp_path, embedding)) == 3


# -- bringing up to date -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "one.py").write_text('"""Add one."""\nprint(1 + 1)\n')
    (folder / "two.py").write_text('"""Add two."""\nprint(2 + 2)\n')
    return folder


def test_files_with_the_same_name_are_both_in_the_store(embedding: Recording, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text(f"print({name!r})")
    assert len(SnippetStore.from_files([tmp_path / "a/x.py", tmp_path / "b/x.py"], embedding)) == 2


def test_one_text_and_one_file_are_refused_where_several_are_expected(
    embedding: Recording, folder: Path
) -> None:
    with pytest.raises(InputError, match="a list of texts"):
        SnippetStore.from_texts("print(1)", embedding)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"is a file\. Pass the folder"):
        SnippetStore.from_folder(folder / "two.py", embedding)


def test_only_what_changed_is_embedded_again(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    embedding.asked.clear()
    (folder / "two.py").write_text('"""Add two twice."""\nprint(2 + 2)\n')
    (folder / "three.py").write_text('"""Add three."""\nprint(3 + 3)\n')
    assert store.update(folder) == Changes(added=1, updated=1, unchanged=1)
    assert sorted(embedding.asked) == ["three. Add three.", "two. Add two twice."]


def test_an_update_deletes_snippets_of_deleted_files(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    store.add_texts(["of no folder"])
    (folder / "one.py").unlink()
    assert store.update(folder) == Changes(deleted=1, unchanged=1)
    assert len(store) == 2


def test_a_search_sees_all_of_an_update_or_nothing_of_it(
    embedding: Recording, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []

    class Observer:
        """A lock that lets a search in whenever it becomes free."""

        lock, depth = threading.RLock(), 0

        def __enter__(self) -> None:
            self.lock.acquire()
            self.depth += 1

        def __exit__(self, *_: object) -> None:
            self.depth -= 1
            if not self.depth:
                seen.append({Path(one.metadata["source"]).name for one in store._index.documents.values()})
            self.lock.release()

    store = SnippetStore.from_folder(folder, embedding)
    (folder / "one.py").rename(folder / "three.py")
    monkeypatch.setattr(store, "_lock", Observer())
    store.update(folder)
    assert {frozenset(names) for names in seen} == {
        frozenset({"one.py", "two.py"}),
        frozenset({"two.py", "three.py"}),
    }


def test_updates_of_several_threads_leave_the_store_as_the_folder_is(
    embedding: Recording, folder: Path
) -> None:
    store = SnippetStore(embedding)

    def change(number: int) -> None:
        (folder / f"new{number}.py").write_text(f"print({number})")
        store.update(folder)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(12)))
    assert {one.metadata["source"] for one in store._index.documents.values()} == {
        p.name for p in folder.iterdir()
    }


def test_a_folder_is_opened_as_it_is_now_with_what_was_added(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.open(folder, embedding)
    store.add_texts(["learned"])
    store.save(store.folder or "")
    (folder / "one.py").unlink()
    embedding.asked.clear()
    again = SnippetStore.open(folder, embedding)
    assert (len(again), embedding.asked) == (2, [])


def ids(store: SnippetStore) -> set[str]:
    return {str(one.id) for one in store.similarity_search("print(0)", k=99)}


def test_a_folder_is_identified_by_its_real_path(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.open(folder, embedding)
    store.save(store.folder or "")
    folder.with_name("link").symlink_to(folder)
    embedding.asked.clear()
    assert ids(SnippetStore.open(folder.with_name("link"), embedding)) == ids(store)
    assert embedding.asked == []


def test_the_cache_has_an_index_per_embedding(embedding: Recording, folder: Path) -> None:
    other = DeterministicFakeEmbedding(size=8)
    for one in (embedding, other):
        store = SnippetStore.open(folder, one)
        store.save(store.folder or "")
    embedding.asked.clear()
    assert len(SnippetStore.open(folder, embedding)) == len(SnippetStore.open(folder, other)) == 2
    assert embedding.asked == []


HAS_MODES = pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")


@pytest.mark.parametrize("damage", ["nonsense", pytest.param("writable", marks=HAS_MODES)])
def test_an_unusable_cached_index_is_created_again(
    embedding: Recording, folder: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    store = SnippetStore.open(folder, embedding)
    store.add_texts(["not in the folder"])
    store.save(store.folder or "")
    assert store.folder
    if damage == "nonsense":
        (store.folder / "snippets.json").write_text("{")
    else:
        store.folder.chmod(0o777)
    assert len(SnippetStore.open(folder, embedding)) == 2
    assert "created again" in caplog.text or "other users may write" in caplog.text


def hostile(place: Path, victim: Path, embedding: Embeddings, version: int) -> None:
    """An index that has FAISS map a file of the user's for writing, in the format of an earlier version."""
    place.mkdir(exist_ok=True)
    cells = faiss.IndexIVFFlat(faiss.IndexFlatIP(32), 32, 1, faiss.METRIC_INNER_PRODUCT)
    cells.train(np.eye(40, 32, dtype=np.float32))
    lists = faiss.OnDiskInvertedLists(1, cells.code_size, str(victim))
    cells.replace_invlists(lists)
    index = faiss.IndexIDMap2(cells)
    index.add_with_ids(np.eye(1, 32, dtype=np.float32), np.zeros(1, np.int64))
    faiss.write_index(index, str(place / "index-1.faiss"))
    note = {
        "embedding": identity(embedding),
        "sha256": sha256_file(place / "index-1.faiss"),
        "next": 1,
        "size": 32,
        "cells": 0,
        "snippets": [{"number": 0, "id": "x", "text": "x", "metadata": {"origin": "."}}],
    }
    named = note | {
        "format": f"code-chains snippets {version}",
        ("index", "vectors")[version - 1]: "index-1.faiss",
    }
    (place / "snippets.json").write_text(json.dumps(named))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("inside", [".code_chains", ".cache", "."])
def test_opening_a_folder_of_a_stranger_writes_to_no_file_of_the_user(
    embedding: Recording, folder: Path, tmp_path: Path, version: int, inside: str
) -> None:
    victim = tmp_path / "victim"
    hostile(folder / inside, victim, embedding, version)
    victim.write_bytes(b"precious" * 100_000)
    with suppress(StoreError):
        SnippetStore.open(folder, embedding).add_texts(["new"])
    assert victim.read_bytes() == b"precious" * 100_000


def test_a_lock_that_is_a_link_empties_no_file_of_the_user(embedding: Recording, tmp_path: Path) -> None:
    numbered(1, embedding).save(tmp_path / "store")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "store" / "snippets.lock").unlink(missing_ok=True)
    (tmp_path / "store" / "snippets.lock").symlink_to(victim)
    assert len(SnippetStore.load(tmp_path / "store", embedding)) == 1
    assert victim.read_text() == "precious"


def test_an_index_beside_the_code_is_not_loaded(embedding: Recording, folder: Path) -> None:
    SnippetStore.from_texts(["planted"], embedding).save(folder / ".code_chains")
    assert "planted" not in texts(SnippetStore.open(folder, embedding))


def test_a_store_saved_elsewhere_knows_the_folder_of_its_code(
    embedding: Recording, folder: Path, tmp_path: Path
) -> None:
    SnippetStore.open(folder, embedding).save(tmp_path / "elsewhere")
    assert SnippetStore.load(tmp_path / "elsewhere", embedding).update(folder) == Changes(unchanged=2)


def test_a_save_that_fails_changes_no_id(
    embedding: Recording, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    before = ids(store)
    monkeypatch.setattr(
        "code_chains.storage.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(StoreError):
        store.save(folder / "saved")
    assert ids(store) == before


def test_the_fingerprint_follows_the_content(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    before = store.fingerprint
    assert SnippetStore.from_folder(folder, embedding).fingerprint == before
    store.delete([str(store.similarity_search("one")[0].id)])
    assert store.fingerprint != before
