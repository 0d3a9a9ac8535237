"""The embedded model: llama.cpp in this process, used like any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models import LangSmithParams, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from pydantic import PrivateAttr, SecretStr

from code_chains.callbacks.pricing import EMBEDDED
from code_chains.errors import ConfigurationError, MissingExtraError, WeightsError
from code_chains.models.choice import install_local
from code_chains.models.hub import PREFIX, HubFile
from code_chains.models.prompts import SavedPrompts
from code_chains.models.weights import CATALOGUE

_CODE_GRAMMAR = r'root ::= "```python\n" [^`]+ "\n```"'
"""A grammar that restricts replies to one fenced program, even of a small model."""
_CONTEXT_TOKENS = 8192
_MAX_REPLY_TOKENS = 1024
_UNKNOWN_ADDRESS = "http://127.0.0.1"
"""The address of a server that was not started."""

_lock = threading.Lock()


class _Found(NamedTuple):
    """The weights that a name stands for.

    Attributes:
        name: The name; of `local` the one of the model that it is.
        path: The file.
        title: What the server calls it, without folders of this machine.
        sha256: Its checksum, of a file of the hub, where the same name may be another file some day.
    """

    name: str
    path: Path
    title: str
    sha256: str = ""


class _Server:
    """The server of a file: its API key, its HTTP clients, and once it was started its address.

    Args:
        found: The weights.
    """

    def __init__(self, found: _Found) -> None:
        self.path, self.title, self.sha256 = found.path, found.title, found.sha256
        self.api_key = SecretStr(secrets.token_urlsafe(32))
        self.runtime: Any = None
        self._lock = threading.Lock()
        # A proxy from the environment would see the key and the prompts, and could not reach this port anyway.
        self.client = DefaultHttpxClient(trust_env=False)
        # A connection belongs to an event loop, and each `asyncio.run` has another one: none is kept for a later call.
        self.async_client = DefaultAsyncHttpxClient(trust_env=False, headers={"Connection": "close"})
        atexit.register(self.client.close)
        self.prompts = SavedPrompts(self.client, found.path, [_runtime().BUILD_INFO, _CONTEXT_TOKENS])

    def start(self) -> str:
        """Load the weights, unless that was done, and return the address.

        Raises:
            WeightsError: They cannot be loaded.
        """
        with self._lock:
            if self.runtime is None:
                runtime = _runtime()
                try:
                    self.runtime = runtime.Server(_parameters(runtime, self))
                except Exception as error:
                    raise WeightsError(f"The model in {self.path} cannot be loaded: {error}.") from error
            return str(self.runtime.listening_address)

    def prepare(self, messages: Sequence[dict[str, Any]]) -> None:
        """Let the beginning of a prompt be evaluated, or restored from disk; see `SavedPrompts`."""
        self.prompts.prepare(self.start(), self.api_key.get_secret_value(), messages)

    def model_options(self) -> dict[str, Any]:
        """Return the options of a `ChatOpenAI` for this server."""
        address = _UNKNOWN_ADDRESS if self.runtime is None else self.runtime.listening_address
        clients = {"http_client": self.client, "http_async_client": self.async_client}
        return {"base_url": f"{address}/v1", "api_key": self.api_key, **clients}


_servers: dict[Path, _Server] = {}


class ChatLocal(ChatOpenAI):
    """The embedded model as a chat model; created by `load_local`. Its server starts with the first call at the latest."""

    _server: _Server = PrivateAttr()

    def _start(self, messages: list[BaseMessage]) -> None:
        """Start the server, let the clients know its address, and prepare it for a prompt."""
        address = f"{self._server.start()}/v1"
        self.root_client.base_url = self.root_async_client.base_url = address
        self._server.prepare(self._get_request_payload(messages)["messages"])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._start(messages)
        return super()._generate(messages, *args, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self._start(messages)
        yield from super()._stream(messages, *args, **kwargs)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.to_thread(self._start, messages)
        return await super()._agenerate(messages, *args, **kwargs)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        await asyncio.to_thread(self._start, messages)
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Traces must not learn the folders of this machine.
        name = self.model_name if self.model_name in CATALOGUE else self._server.title
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": EMBEDDED, "ls_model_name": name}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The settings that determine replies; the port of its server does not."""
        return {"weights": self._server.sha256 or self.model_name, **self._default_params}

    def for_code(self) -> Runnable[LanguageModelInput, Any]:
        """Return the same model, restricted by a grammar to replies with one fenced program."""
        return self.bind(extra_body={"grammar": _CODE_GRAMMAR})


def load_local(name: str, *, start: bool = True, **options: Any) -> ChatLocal:
    """Load an embedded model; download it first if necessary.

    There is one server per file and process, on 127.0.0.1 at a free port; it ends with the process. It
    requires a random API key that only the returned model holds, and no page of another origin may read its
    responses.

    Args:
        name: `local` for the best one that suits this machine, `local:0.5b`, `local:1.5b`, `hf:OWNER/REPO:FILE`
            for a file of the model hub, or `gguf:PATH` for one on this machine.
        start: Whether to load the weights now; otherwise the first call does.
        **options: Passed to `ChatOpenAI`, e.g. `temperature=0.7`.

    Raises:
        ConfigurationError: There is no such model, or its runtime is not installed.
        WeightsError: The file cannot be downloaded, is damaged, or cannot be loaded.
    """
    found = _find(name)
    server = _server_of(found)
    if start:
        server.start()
    defaults = {
        "temperature": 0.0,
        "max_tokens": _MAX_REPLY_TOKENS,
        "seed": 7,
        "timeout": 600,
        "stream_usage": True,
    }
    model = ChatLocal(model=found.name, **{**defaults, **server.model_options(), **options})
    model._server = server
    return model


def _find(name: str) -> _Found:
    """Return the weights that a name stands for, installed."""
    if name.startswith("gguf:"):
        path = _file(name)
        return _Found(name, path, path.name)
    if name.startswith(PREFIX):
        file = HubFile.parse(name)
        _runtime()  # Before the download, which is useless without it.
        return _Found(file.name, file.install(), file.title, file.sha256)
    if name != "local" and name not in CATALOGUE:
        remedy = f"one of {['local', *CATALOGUE]}, hf:OWNER/REPO:FILE, or gguf:PATH"
        raise ConfigurationError("model", name, remedy)
    _runtime()
    weights = install_local() if name == "local" else CATALOGUE[name]
    path = weights.install()
    return _Found(weights.name, path, path.name)


def _file(name: str) -> Path:
    path = Path(name.removeprefix("gguf:")).expanduser()
    if not path.is_file():
        raise ConfigurationError("model", name, "gguf: with the path of a file that exists")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigurationError(
                "model", name, "gguf: with the path of a GGUF file; this file has another format"
            )
    return path.resolve()


def _runtime() -> Any:
    # Idle threads of GNU OpenMP spin by default and starve others; the variable is read at the first import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        if "libgomp" in str(error):
            raise WeightsError("The embedded model needs libgomp: `apt install libgomp1`.") from error
        instead = 'use a hosted model, such as "openai:gpt-5-mini" with OPENAI_API_KEY set'
        raise MissingExtraError("model", "local", "local", instead=instead) from error
    return xllamacpp


def _server_of(found: _Found) -> _Server:
    _runtime()  # Raises if it is not installed.
    with _lock:
        return _servers.setdefault(found.path, _servers.get(found.path) or _Server(found))


def _parameters(runtime: Any, server: _Server) -> Any:
    parameters = runtime.CommonParams()
    parameters.model.path = str(server.path)
    parameters.verbosity = -1
    parameters.warmup = False
    parameters.n_ctx = _CONTEXT_TOKENS
    parameters.n_parallel = 1
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(8, count)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    _restrict_access(parameters, server)
    return parameters


def _restrict_access(parameters: Any, server: _Server) -> None:
    """Restrict a server to holders of the key.

    llama.cpp does not check `Host`, so the key is the only protection.
    """
    parameters.api_keys = [server.api_key.get_secret_value()]
    parameters.cors_origins = ""  # The default reflects any origin.
    parameters.cors_credentials = False
    parameters.cors_methods = parameters.cors_headers = ""
    parameters.endpoint_slots = False
    parameters.ui = False
    if server.prompts.folder is not None:
        parameters.slot_save_path = f"{server.prompts.folder}{os.sep}"
    parameters.model_alias = {server.title}  # The default is the full path, including the home folder.
