"""The embedded model: llama.cpp inside this process, spoken to like any OpenAI-compatible server."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from langchain_core.language_models import LangSmithParams, LanguageModelInput
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI

from code_chains.errors import ConfigurationError, WeightsError, installing
from code_chains.prices import EMBEDDED
from code_chains.weights import CATALOGUE

__all__ = ["ChatLocal", "load_local"]

ONE_BLOCK = r'root ::= "```python\n" [^`]+ "\n```"'
"""A grammar that makes even a small model reply with one fenced program and nothing else."""
CONTEXT = 8192
LONGEST_REPLY = 1024

_lock = threading.Lock()
_servers: dict[Path, Any] = {}


class ChatLocal(ChatOpenAI):
    """The embedded model as a chat model; made by `load_local`."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": EMBEDDED}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells its replies from those of others; the port of its server does not."""
        return {"weights": self.model_name, **self._default_params}

    def for_code(self) -> Runnable[LanguageModelInput, Any]:
        """The same model, held by a grammar to reply with one fenced program."""
        return self.bind(extra_body={"grammar": ONE_BLOCK})


def load_local(name: str, **options: Any) -> ChatLocal:
    """Start an embedded model, fetching it first if need be.

    There is one server for each file and process, on 127.0.0.1 at a port of its own; it ends with the process.

    Args:
        name: `local`, `local:0.5b`, `local:1.5b`, or `gguf:PATH` for a file of your own.
        **options: Passed on to `ChatOpenAI`, e.g. `temperature=0.7`.

    Raises:
        ConfigurationError: There is no such model, or no runtime for it.
        WeightsError: The file cannot be fetched, is damaged, or cannot be loaded.
    """
    path = _weights_path(name)
    address = _serve(path)
    defaults = {"temperature": 0.0, "max_tokens": LONGEST_REPLY, "seed": 7, "timeout": 600, "stream_usage": True}
    return ChatLocal(model=name, base_url=f"{address}/v1", api_key="local", **{**defaults, **options})


def _weights_path(name: str) -> Path:
    if name.startswith("gguf:"):
        path = Path(name.removeprefix("gguf:")).expanduser()
        if not path.is_file():
            raise ConfigurationError("model", name, "gguf: with the path of a file that exists")
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ConfigurationError(
                    "model", name, "gguf: with the path of a GGUF file; this one is something else"
                )
        return path.resolve()
    weights = CATALOGUE.get("local:0.5b" if name == "local" else name)
    if weights is None:
        raise ConfigurationError("model", name, f"one of {['local', *CATALOGUE]}, or gguf:PATH")
    _runtime()  # Before the download: half a gigabyte is of no use without it.
    return weights.install()


def _runtime() -> Any:
    # The waiting threads of GNU OpenMP spin by default and starve everything else; it is read at the first import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        if "libgomp" in str(error):
            raise WeightsError("The embedded model needs libgomp: `apt install libgomp1`.") from error
        raise ConfigurationError("model", "local", f"{installing('local')}, or set OPENAI_API_KEY") from error
    return xllamacpp


def _serve(path: Path) -> str:
    runtime = _runtime()
    with _lock:
        if path not in _servers:
            parameters = runtime.CommonParams()
            parameters.model.path = str(path)
            parameters.verbosity = -1
            parameters.warmup = False
            parameters.n_ctx = CONTEXT
            parameters.n_parallel = 1
            threads = max(1, min(8, len(os.sched_getaffinity(0))))
            parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
            try:
                _servers[path] = runtime.Server(parameters)
            except Exception as error:
                raise WeightsError(f"The model in {path} cannot be loaded: {error}.") from error
        return str(_servers[path].listening_address)
