"""Snippets that are found again."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from code_chains.errors import InputError, StoreError
from code_chains.snippets import INSIDE, Changes, SnippetStore, _cells


class Counting(DeterministicFakeEmbedding):
    """Embeddings that remember what they were asked for."""

    size: int = 32
    asked: list[str]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.extend(texts)
        return super().embed_documents(texts)


@pytest.fixture
def embedding() -> Counting:
    return Counting(asked=[])


class TestAsVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return SnippetStore(self.get_embeddings())


class _Searching(BaseRetriever):
    """The store's retriever, made anew with `k=` as the suite wants it."""

    k: int = 4

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> Any:
        store = SnippetStore.from_texts([f"print({n})" for n in range(5)], Counting(asked=[]))
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
    return SnippetStore.from_texts(texts, embedding, [{"even": n % 2 == 0, "n": n} for n in range(count)], **kwargs)


def test_the_same_text_scores_one(embedding: Counting) -> None:
    ((_, score),) = numbered(9, embedding).similarity_search_with_score("print(7)", k=1)
    assert score == pytest.approx(1)


def test_a_threshold_keeps_the_nearest_and_drops_the_far(embedding: Counting) -> None:
    retriever = numbered(9, embedding).as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9}
    )
    assert [one.page_content for one in retriever.invoke("print(7)")] == ["print(7)"]


@pytest.mark.parametrize("approximate_from", [100, 100_000])
def test_a_filter_finds_what_only_one_of_many_has(embedding: Counting, approximate_from: int) -> None:
    store = numbered(400, embedding, approximate_from=approximate_from)
    found = store.similarity_search("print(1)", k=3, filter={"n": 399})
    assert [one.metadata["n"] for one in found] == [399]


def test_a_filter_may_name_several_values_or_be_a_function(embedding: Counting) -> None:
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
    embedding: Counting, wanted: object, found: set[str]
) -> None:
    tags: list[dict[str, Any]] = [{"tags": ["w", "x"]}, {"tags": ["y", "z"]}, {"tags": {"of": "one"}}, {}]
    store = SnippetStore.from_texts(["a", "b", "c", "d"], embedding, tags)
    assert {one.page_content for one in store.similarity_search("a", filter={"tags": wanted})} == found


def test_approximate_search_finds_nearly_what_exact_search_finds(embedding: Counting) -> None:
    exact, near = numbered(2000, embedding), numbered(2000, embedding, approximate_from=1000)
    same = [
        exact.similarity_search(f"print({n})", k=1) == near.similarity_search(f"print({n})", k=1) for n in range(100)
    ]
    assert np.mean(same) > 0.95


def test_deleting_and_adding_go_on_in_an_approximate_index(embedding: Counting) -> None:
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


def test_what_is_found_cannot_change_the_store(embedding: Counting) -> None:
    store = numbered(1, embedding)
    store.similarity_search("print(0)")[0].metadata["n"] = "changed"
    assert store.similarity_search("print(0)")[0].metadata["n"] == 0


async def test_asynchronous_search_finds_the_same(embedding: Counting) -> None:
    store = numbered(9, embedding)
    assert await store.asimilarity_search("print(3)") == store.similarity_search("print(3)")


def test_threads_may_add_while_others_search(embedding: Counting) -> None:
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
def test_what_is_deleted_during_a_search_is_no_error(
    embedding: Counting, monkeypatch: pytest.MonkeyPatch, way: str
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


def test_metadata_that_is_no_json_is_refused_before_anything_is_added(embedding: Counting) -> None:
    store = numbered(2, embedding)
    with pytest.raises(InputError, match="JSON"):
        store.add_texts(["fine", "not"], [{}, {"bad": object()}])
    assert len(store) == 2


def test_embeddings_that_fail_leave_the_store_as_it_was(embedding: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    store = numbered(2, embedding)
    monkeypatch.setattr(Counting, "embed_documents", lambda self, texts: [[1.0, 2.0]] * len(texts))
    with pytest.raises(InputError, match="32"):
        store.add_texts(["print(0)"], [{"n": "other"}], ids=store.add_texts([]) or ["x"])
    assert [one.metadata["n"] for one in store.similarity_search("print(0)", k=1)] == [0]


def test_an_approximate_search_finds_as_many_as_asked_for_though_most_is_deleted(embedding: Counting) -> None:
    store = numbered(600, embedding, approximate_from=10)
    store.delete([str(one.id) for one in store.similarity_search("print(1)", k=600)[20:]])
    assert len(store.similarity_search("print(2)", k=20)) == 20


def test_cells_grow_with_the_store(embedding: Counting) -> None:
    store = numbered(100, embedding, approximate_from=100)
    store.add_texts([f"more {n}" for n in range(1500)])
    exact = SnippetStore.from_texts([f"print({n})" for n in range(100)] + [f"more {n}" for n in range(1500)], embedding)
    same = [store.similarity_search(f"more {n}", k=1) == exact.similarity_search(f"more {n}", k=1) for n in range(50)]
    assert np.mean(same) > 0.95


@pytest.mark.parametrize("approximate_from", [10, 10_000])
def test_a_loaded_store_searches_as_it_was_asked_to(embedding: Counting, tmp_path: Path, approximate_from: int) -> None:
    numbered(300, embedding, approximate_from=10_010 - approximate_from).save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding, approximate_from=approximate_from)
    assert loaded.similarity_search("print(7)", k=1)[0].page_content == "print(7)"
    assert bool(_cells(loaded._index)) == (approximate_from == 10)


def test_the_length_of_a_vector_changes_nothing(embedding: Counting) -> None:
    store, vector = numbered(20, embedding), embedding.embed_query("print(3)")
    longer = [7 * number for number in vector]
    assert store.similarity_search_by_vector(longer) == store.similarity_search_by_vector(vector)


# -- keeping -------------------------------------------------------------------------------------------------------------


def test_what_was_saved_is_found_after_loading(embedding: Counting, tmp_path: Path) -> None:
    store = numbered(20, embedding)
    store.save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding)
    assert loaded.similarity_search("print(4)") == store.similarity_search("print(4)")


def test_ids_go_on_after_loading(embedding: Counting, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding)
    loaded.add_texts(["new"])
    assert len({one.page_content for one in loaded.similarity_search("new", k=9)}) == 4


def test_a_folder_holds_an_index_and_json_and_nothing_else(embedding: Counting, tmp_path: Path) -> None:
    store = numbered(3, embedding)
    store.save(tmp_path)
    store.save(tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix != ".lock") == [".faiss", ".json"]
    assert json.loads((tmp_path / "snippets.json").read_text())["snippets"][0]["text"] == "print(0)"


@pytest.mark.parametrize("damage", ["json", "index", "format", "missing"])
def test_a_damaged_index_is_said_to_be_damaged(embedding: Counting, tmp_path: Path, damage: str) -> None:
    numbered(3, embedding).save(tmp_path)
    note, index = tmp_path / "snippets.json", next(tmp_path.glob("*.faiss"))
    if damage == "json":
        note.write_text(note.read_text()[:-20])
    elif damage == "format":
        note.write_text(json.dumps({"format": "something else"}))
    elif damage == "index":
        index.write_bytes(index.read_bytes()[:-1] + b"?")
    else:
        index.unlink()
    with pytest.raises(StoreError, match="damaged"):
        SnippetStore.load(tmp_path, embedding)


def test_an_index_of_other_embeddings_is_refused(embedding: Counting, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    with pytest.raises(StoreError, match="Counting"):
        SnippetStore.load(tmp_path, DeterministicFakeEmbedding(size=32))


def test_a_folder_without_an_index_is_said_to_have_none(embedding: Counting, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="code-chains index"):
        SnippetStore.load(tmp_path, embedding)


def test_a_save_that_fails_leaves_the_old_one(
    embedding: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = numbered(3, embedding)
    store.save(tmp_path)
    store.add_texts(["new"])
    monkeypatch.setattr("code_chains.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(StoreError, match="disk full"):
        store.save(tmp_path)
    assert len(SnippetStore.load(tmp_path, embedding)) == 3


def both(folder: Path, embedding: Embeddings) -> tuple[SnippetStore, SnippetStore]:
    """A folder as two processes have loaded it."""
    numbered(3, embedding).save(folder)
    return SnippetStore.load(folder, embedding), SnippetStore.load(folder, embedding)


def texts(store: SnippetStore) -> set[str]:
    return {one.page_content for one in store.similarity_search("print(0)", k=99)}


def test_two_that_save_into_one_folder_lose_nothing(embedding: Counting, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.add_and_save([Document("from one")])
    other.add_and_save([Document("from other")])
    one.add_texts(["one more"])
    one.save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) >= {"print(0)", "from one", "from other", "one more"}


def test_what_another_saved_is_found_after_saving(embedding: Counting, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.add_and_save([Document("from one")])
    other.add_and_save([])
    assert texts(other) == texts(one)


def test_what_one_deleted_does_not_come_back_with_what_another_saves(embedding: Counting, tmp_path: Path) -> None:
    one, other = both(tmp_path, embedding)
    one.delete([str(one.similarity_search("print(0)", k=1)[0].id)])
    one.save(tmp_path)
    other.delete([str(other.similarity_search("print(1)", k=1)[0].id)])
    other.add_and_save([Document("new")])
    assert texts(SnippetStore.load(tmp_path, embedding)) == {"print(2)", "new"}


def test_a_store_of_another_folder_takes_the_place_of_what_was_there(embedding: Counting, tmp_path: Path) -> None:
    numbered(3, embedding).save(tmp_path)
    SnippetStore.from_texts(["alone"], embedding).save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) == {"alone"}


def test_a_damaged_folder_is_healed_by_saving(embedding: Counting, tmp_path: Path) -> None:
    store, _ = both(tmp_path, embedding)
    (tmp_path / "snippets.json").write_text("{")
    store.save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) == texts(store)


def test_threads_that_save_and_load_at_once_always_find_a_whole_store(embedding: Counting, tmp_path: Path) -> None:
    def learn(number: int, store: SnippetStore) -> None:
        for more in range(10):
            store.add_and_save([Document(f"{number} {more}")])

    with ThreadPoolExecutor(4) as pool:
        saving = [pool.submit(learn, number, store) for number, store in enumerate(both(tmp_path, embedding))]
        while not all(one.done() for one in saving):
            assert len(SnippetStore.load(tmp_path, embedding)) >= 3
    assert len(SnippetStore.load(tmp_path, embedding)) == 3 + 20


def test_a_store_without_a_folder_cannot_save_what_is_added(embedding: Counting) -> None:
    with pytest.raises(StoreError, match="no folder"):
        numbered(1, embedding).add_and_save([Document("new")])


@pytest.mark.parametrize("damage", ["folder", "index"])
def test_a_folder_that_cannot_be_written_is_a_store_error(
    embedding: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    if damage == "folder":
        (tmp_path / "index").write_text("a file")
    else:
        monkeypatch.setattr("faiss.write_index", lambda *_: (_ for _ in ()).throw(RuntimeError("disk full")))
    with pytest.raises(StoreError, match="cannot be kept"):
        numbered(1, embedding).save(tmp_path / "index")


def test_a_folder_that_cannot_be_locked_can_still_be_read(
    embedding: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_files_of_one_name_are_both_in_the_store(embedding: Counting, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text(f"print({name!r})")
    assert len(SnippetStore.from_files([tmp_path / "a/x.py", tmp_path / "b/x.py"], embedding)) == 2


def test_only_what_changed_is_embedded_again(embedding: Counting, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    embedding.asked.clear()
    (folder / "two.py").write_text('"""Add two twice."""\nprint(2 + 2)\n')
    (folder / "three.py").write_text('"""Add three."""\nprint(3 + 3)\n')
    assert store.update(folder) == Changes(added=1, updated=1, unchanged=1)
    assert sorted(embedding.asked) == ["three. Add three.", "two. Add two twice."]


def test_what_is_gone_from_a_folder_goes_from_the_store(embedding: Counting, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    store.add_texts(["of no folder"])
    (folder / "one.py").unlink()
    assert store.update(folder) == Changes(deleted=1, unchanged=1)
    assert len(store) == 2


def test_a_folder_is_opened_as_it_is_now_with_what_was_added(embedding: Counting, folder: Path) -> None:
    store = SnippetStore.open(folder, embedding)
    store.add_texts(["learned"])
    store.save(store.folder or "")
    (folder / "one.py").unlink()
    embedding.asked.clear()
    again = SnippetStore.open(folder, embedding)
    assert (len(again), embedding.asked) == (2, [])


def ids(store: SnippetStore) -> set[str]:
    return {str(one.id) for one in store.similarity_search("print(0)", k=99)}


@pytest.mark.parametrize("made", ["opened", "indexed"])
def test_a_folder_that_was_moved_with_its_index_is_brought_up_to_date(
    embedding: Counting, folder: Path, made: str
) -> None:
    store = SnippetStore.open(folder, embedding) if made == "opened" else SnippetStore.from_folder(folder, embedding)
    store.save(folder / INSIDE)
    moved = folder.rename(folder.with_name("moved"))
    (moved / "one.py").write_text("print('changed')")
    again = SnippetStore.open(moved, embedding)
    assert texts(again) == {"print('changed')\n", '"""Add two."""\nprint(2 + 2)\n'}
    assert ids(again) == ids(store)


def test_a_moved_folder_is_indexed_again_without_doubles(embedding: Counting, folder: Path) -> None:
    SnippetStore.from_folder(folder, embedding).save(folder / INSIDE)
    moved = folder.rename(folder.with_name("moved"))
    assert SnippetStore.load(moved / INSIDE, embedding).update(moved) == Changes(unchanged=2)


def test_an_index_elsewhere_knows_whose_it_is(embedding: Counting, folder: Path, tmp_path: Path) -> None:
    SnippetStore.open(folder, embedding).save(folder / INSIDE)
    SnippetStore.load(folder / INSIDE, embedding).save(tmp_path / "elsewhere")
    assert SnippetStore.load(tmp_path / "elsewhere", embedding).update(folder) == Changes(unchanged=2)


def test_an_index_that_names_its_folder_by_its_path_is_still_understood(embedding: Counting, folder: Path) -> None:
    SnippetStore.from_folder(folder, embedding).save(folder.with_name("elsewhere"))
    folder.with_name("elsewhere").rename(folder / INSIDE)
    assert SnippetStore.load(folder / INSIDE, embedding).update(folder) == Changes(unchanged=2)


def test_a_save_that_fails_changes_no_id(embedding: Counting, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    before = ids(store)
    monkeypatch.setattr("code_chains.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(StoreError):
        store.save(folder / INSIDE)
    assert ids(store) == before


def test_the_fingerprint_follows_the_content(embedding: Counting, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    before = store.fingerprint
    assert SnippetStore.from_folder(folder, embedding).fingerprint == before
    store.delete([str(store.similarity_search("one")[0].id)])
    assert store.fingerprint != before
