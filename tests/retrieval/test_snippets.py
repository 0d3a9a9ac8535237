"""The snippet store: search, persistence, merging and updates."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
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
from code_chains.retrieval.store import Changes, SnippetStore
from code_chains.storage.sqlite_connections import connect


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


def test_a_filter_finds_a_rare_match(embedding: Recording) -> None:
    store = numbered(400, embedding)
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


def test_the_nearest_are_found_after_deleting_and_adding(embedding: Recording) -> None:
    store = numbered(300, embedding)
    gone = store.similarity_search("print(7)", k=1)[0]
    store.delete([str(gone.id)])
    store.add_texts(["print('new')"])
    assert store.similarity_search("print('new')", k=1)[0].page_content == "print('new')"
    assert gone not in store.similarity_search("print(7)", k=10)
    store.delete([str(one.id) for one in store.similarity_search("print(1)", k=600)[20:]])
    assert len(store.similarity_search("print(2)", k=20)) == 20


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


def test_a_folder_holds_one_file_and_nothing_else(embedding: Recording, tmp_path: Path) -> None:
    store = numbered(3, embedding)
    store.save(tmp_path)
    store.add_and_save([Document("more")])
    assert [path.name for path in tmp_path.iterdir()] == ["snippets.sqlite"]


def altered(statement: str, *values: object) -> Callable[[Path], None]:
    """Somebody who can write to a saved store changes it."""

    def alter(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "snippets.sqlite")) as connection:
            connection.execute(statement, values)
            connection.commit()

    return alter


def with_value(value: bytes) -> Callable[[Path], None]:
    return altered("UPDATE entries SET value = ? WHERE id = 3", value)


def overwritten(folder: Path) -> None:
    data = (folder / "snippets.sqlite").read_bytes()
    (folder / "snippets.sqlite").write_bytes(data[:2000] + b"nonsense" * 4000)


VECTOR = np.zeros(32, "<f4").tobytes()
SNIPPET = b'["x", "print(1)", {}]\0'
DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda folder: (folder / "snippets.sqlite").write_bytes(b"{" * 9000),
    "cut off": lambda folder: os.truncate(folder / "snippets.sqlite", 5000),
    "overwritten": overwritten,
    "empty": lambda folder: os.truncate(folder / "snippets.sqlite", 0),
    "of another schema": altered("CREATE VIEW v AS SELECT 1"),
    "of another application": altered("PRAGMA application_id = 7"),
    "of another format": altered(
        "UPDATE entries SET value = CAST(? AS BLOB) WHERE key = ''", '["other", "e", 1]'
    ),
    "without a note": altered("DELETE FROM entries WHERE key = ''"),
    "a note that is nested": altered("UPDATE entries SET value = ? WHERE key = ''", b"[" * 100_000),
    "a note of something else": altered("UPDATE entries SET value = ? WHERE key = ''", b"[1, 2]"),
    "no JSON": with_value(b"{\0" + VECTOR),
    "no snippet": with_value(b'["x", 1, {}]\0' + VECTOR),
    "a snippet twice": altered(
        "INSERT INTO entries SELECT id + 9, key || 'x', size, expires, used, value FROM entries WHERE id = 3"
    ),
    "no vector": with_value(SNIPPET),
    "a vector that is too short": with_value(SNIPPET + VECTOR[:-4]),
    "no whole numbers": with_value(SNIPPET + VECTOR[:-1]),
    "numbers without end": with_value(SNIPPET + np.full(32, np.inf, "<f4").tobytes()),
    "a value of another kind": altered("UPDATE entries SET value = 7 WHERE id = 3"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_store_is_a_store_error(
    embedding: Recording, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    numbered(3, embedding).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(StoreError, match=r"damaged|another kind|were changed"):
        SnippetStore.load(tmp_path, embedding)


def test_a_store_of_an_earlier_version_says_how_to_create_it_again(
    embedding: Recording, tmp_path: Path
) -> None:
    (tmp_path / "snippets.json").write_text('{"format": "code-chains snippets 2", "snippets": []}')
    for read in (SnippetStore.load, SnippetStore.open):
        with pytest.raises(StoreError, match=r"earlier version.*code-chains index"):
            read(tmp_path, embedding)
    (tmp_path / "snippets.json").write_text("{}")  # Somebody else's.
    with pytest.raises(InputError, match="no code"):
        SnippetStore.open(tmp_path, embedding)


def test_loading_embeds_nothing_and_finds_the_same(embedding: Recording, tmp_path: Path) -> None:
    store = numbered(300, embedding)
    store.save(tmp_path)
    embedding.asked.clear()
    loaded = SnippetStore.load(tmp_path, embedding)
    assert [loaded.similarity_search(f"print({n})", k=5) for n in range(20)] == [
        store.similarity_search(f"print({n})", k=5) for n in range(20)
    ]
    assert embedding.asked == []


def test_ids_and_texts_of_any_characters_are_saved(embedding: Recording, tmp_path: Path) -> None:
    store = SnippetStore.from_texts(
        ["a\0b", "c"], embedding, [{"\udc81": "\0\udc82"}, {}], ids=["\udc80", "\0"]
    )
    store.save(tmp_path)
    loaded = SnippetStore.load(tmp_path, embedding)
    assert loaded.get_by_ids(["\udc80", "\0"]) == store.get_by_ids(["\udc80", "\0"])


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
    store.add_texts(["new" * 10_000])
    full(monkeypatch)
    with pytest.raises(StoreError, match="disk is full"):
        store.save(tmp_path)
    monkeypatch.undo()
    assert len(SnippetStore.load(tmp_path, embedding)) == 3
    store.save(tmp_path)
    assert len(SnippetStore.load(tmp_path, embedding)) == 4


def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has no room for what is saved."""

    def limited(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
        connection = connect(path, mode, timeout)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr("code_chains.storage.sqlite_connections.connect", limited)


def test_a_process_that_is_killed_while_it_saves_leaves_the_old_store(
    embedding: Recording, tmp_path: Path
) -> None:
    numbered(3, embedding).save(tmp_path)
    code = f"""
import os, sqlite3
connection = sqlite3.connect({str(tmp_path / "snippets.sqlite")!r}, isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM entries")
connection.executemany("INSERT INTO entries VALUES (?, ?, 1, NULL, 1, zeroblob(9000))", [(n, n) for n in range(99)])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert len(SnippetStore.load(tmp_path, embedding)) == 3
    assert SnippetStore.load(tmp_path, embedding).add_and_save([Document("new")])
    assert len(SnippetStore.load(tmp_path, embedding)) == 4


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
    (tmp_path / "snippets.sqlite").write_text("{" * 9000)
    store.save(tmp_path)
    assert texts(SnippetStore.load(tmp_path, embedding)) == texts(store)


def test_saving_writes_all_where_the_file_was_deleted_or_others_have_damaged_it(
    embedding: Recording, tmp_path: Path
) -> None:
    store, _ = both(tmp_path, embedding)
    (tmp_path / "snippets.sqlite").unlink()
    store.add_and_save([Document("new")])
    assert texts(SnippetStore.load(tmp_path, embedding)) == texts(store)
    altered("UPDATE entries SET value = ? WHERE key = ''", b'["code-chains snippets 4", "Recording", 9]')(
        tmp_path
    )
    with_value(b"{")(tmp_path)
    store.add_and_save([Document("newer")])
    assert texts(SnippetStore.load(tmp_path, embedding)) == texts(store)


@pytest.mark.slow
def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
import sys
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from code_chains import SnippetStore
store = SnippetStore.load({str(tmp_path)!r}, DeterministicFakeEmbedding(size=8))
for number in range(10):
    store.add_and_save([Document(f"{{sys.argv[1]}} {{number}}")])
"""
    fake = DeterministicFakeEmbedding(size=8)
    SnippetStore.from_texts(["first"], fake).save(tmp_path)
    running = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(3)]
    assert [one.wait(100) for one in running] == [0, 0, 0]
    assert len(SnippetStore.load(tmp_path, fake)) == 31


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


@pytest.mark.parametrize("damage", ["folder", "index", "database of somebody else"])
def test_a_folder_that_cannot_be_written_is_a_store_error(
    embedding: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    if damage == "folder":
        (tmp_path / "index").write_text("a file")
    elif damage == "index":
        monkeypatch.setattr(
            "faiss.IndexIDMap2.reconstruct_batch", lambda *_: (_ for _ in ()).throw(RuntimeError("lost"))
        )
    else:
        (tmp_path / "index").mkdir()
        altered("CREATE TABLE theirs (x)")(tmp_path / "index")
    with pytest.raises(StoreError, match="cannot be saved"):
        numbered(1, embedding).save(tmp_path / "index")


def test_a_folder_that_cannot_be_written_to_can_still_be_read(
    embedding: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(3, embedding).save(tmp_path)
    monkeypatch.setattr("code_chains.retrieval.persistence.os.access", lambda *_: False)
    assert len(SnippetStore.load(tmp_path, embedding)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["snippets.sqlite"]


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
        (store.folder / "snippets.sqlite").write_text("{" * 9000)
    else:
        store.folder.chmod(0o777)
    assert len(SnippetStore.open(folder, embedding)) == 2
    assert "created again" in caplog.text or "other users may write" in caplog.text


@pytest.mark.parametrize("inside", [".code_chains", ".cache", "."])
def test_opening_a_folder_of_a_stranger_writes_to_no_file_of_the_user(
    embedding: Recording, folder: Path, tmp_path: Path, inside: str
) -> None:
    """A journal beside a database names another file, which SQLite deletes when it replays the journal."""
    victim, place = tmp_path / "victim", folder / inside
    victim.write_bytes(b"precious" * 100_000)
    numbered(1, embedding).save(place)
    name = bytes(str(victim), "utf-8")
    magic = bytes.fromhex("d9d505f920a163d7")
    journal = magic + bytes(504) + name + len(name).to_bytes(4) + sum(name).to_bytes(4) + magic
    (place / "snippets.sqlite-journal").write_bytes(journal)
    with suppress(StoreError):
        store = SnippetStore.open(folder, embedding)
        store.add_texts(["new"])
        store.save(place)
    assert victim.read_bytes() == b"precious" * 100_000


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
    store.save(folder / "saved")
    store.add_texts(["more" * 10_000])
    before = ids(store)
    full(monkeypatch)
    with pytest.raises(StoreError):
        store.save(folder / "saved")
    assert ids(store) == before


def test_the_fingerprint_follows_the_content(embedding: Recording, folder: Path) -> None:
    store = SnippetStore.from_folder(folder, embedding)
    before = store.fingerprint
    assert SnippetStore.from_folder(folder, embedding).fingerprint == before
    store.delete([str(store.similarity_search("one")[0].id)])
    assert store.fingerprint != before


def test_an_index_behind_a_link_is_neither_read_nor_written(embedding: Recording, tmp_path: Path) -> None:
    one = SnippetStore(embedding)
    one.add_texts(["print(1)"])
    one.save(tmp_path / "one")
    before = (tmp_path / "one" / "snippets.sqlite").read_bytes()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "snippets.sqlite").symlink_to(tmp_path / "one" / "snippets.sqlite")
    with pytest.raises(StoreError, match="symbolic link"):
        SnippetStore.load(tmp_path / "two", embedding)
    with pytest.raises(StoreError, match="symbolic link"):
        SnippetStore(embedding).save(tmp_path / "two")
    assert (tmp_path / "one" / "snippets.sqlite").read_bytes() == before
