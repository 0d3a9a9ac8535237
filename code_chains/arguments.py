"""The arguments of `create_code_chain`: checked, and resolved into the parts that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from langchain_classic.base_memory import BaseMemory
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from code_chains.analysis.checks import resolve_checks
from code_chains.callbacks.budget import Budget
from code_chains.chains.validate import ValidateChain
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import ConfigurationError
from code_chains.executors import (
    BackendExecutor,
    CloudExecutor,
    EngineExecutor,
    Executor,
    Limits,
    MontyExecutor,
    ProcessExecutor,
    SandboxExecutor,
    SqlExecutor,
    WasmExecutor,
)
from code_chains.executors.function import as_executor
from code_chains.executors.remote.backend import SandboxProtocol, is_backend
from code_chains.executors.strongest import strongest_executor
from code_chains.executors.tools import check_takes_tools
from code_chains.parts import Model, embedded
from code_chains.retrieval.curated import curated_snippets
from code_chains.retrieval.store import SnippetStore
from code_chains.settings import Data, Language, Prompts, Snippets
from code_chains.storage.sqlite import SqliteStore
from code_chains.toolbox import Toolbox

ExecutorName = Literal[
    "strongest",
    "sandbox",
    "docker",
    "podman",
    "e2b",
    "modal",
    "daytona",
    "monty",
    "sql",
    "wasm",
    "none",
]
_EXECUTORS: Mapping[str, Callable[..., Executor]] = MappingProxyType(
    {
        "strongest": strongest_executor,
        "sandbox": SandboxExecutor,
        "docker": partial(EngineExecutor, "docker"),
        "podman": partial(EngineExecutor, "podman"),
        "e2b": partial(CloudExecutor, "e2b"),
        "modal": partial(CloudExecutor, "modal"),
        "daytona": partial(CloudExecutor, "daytona"),
        "monty": MontyExecutor,
        "sql": SqlExecutor,
        "wasm": WasmExecutor,
        "none": ProcessExecutor,
    }
)
_HISTORY_KEYS = {"history", "chat_history"}
PACKAGE_PREFIX = "package:"
"""What precedes the name of an installed package whose references are the snippets."""


def check_memory(memory: object, data: Data) -> None:
    """Raise if a model of the memory would see what `schema_only` keeps from models."""
    if data.schema_only and _may_ask_model(memory):
        because = "with schema_only a memory that summarizes would see the data"
        raise ConfigurationError("memory", memory, "a ConversationMemory without summarize=", because=because)


def check_answer_type(answer_type: object, executor: Executor) -> None:
    """Raise if there is a type, and the executor does not return values."""
    if answer_type is not None and not executor.returns_values:
        because = f"{type(executor).__name__} does not return values"
        remedy = "an executor that does, such as SandboxExecutor()"
        raise ConfigurationError("answer_type", answer_type, remedy, because=because)


def check_budget(budget: object) -> None:
    """Raise unless a budget is one."""
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError("budget", budget, "a Budget, e.g. Budget(tokens=10_000)")


def resolve_data(data: object) -> Data:
    """Return what models are told of data."""
    if not isinstance(data, Data):
        raise ConfigurationError("data", data, "a Data, e.g. Data(schema_only=True)")
    return data


def resolve_language(language: object) -> Language:
    """Return the language of answers."""
    if isinstance(language, str):
        return Language(language)
    if not isinstance(language, Language):
        raise ConfigurationError("language", language, '"auto", a language such as "es", or a Language')
    return language


def resolve_prompts(instructions: object) -> Prompts:
    """Return what models are told besides the question."""
    if isinstance(instructions, Prompts):
        return instructions
    return Prompts(cast("str", instructions))  # Which checks it.


def resolve_validate(checks: object, executor: Executor, toolbox: Toolbox | None) -> ValidateChain:
    """Return the chain of the static checks, for programs of an executor with its tools.

    Raises:
        ConfigurationError: There is no such policy, or it reads another language.
    """
    validate = checks if isinstance(checks, ValidateChain) else ValidateChain(cast("str", checks))
    policy = validate.checks
    if executor.language != "python":
        if policy == resolve_checks("strict"):
            because = "the strict policy reads Python"
            raise ConfigurationError("checks", "strict", '"none" or functions of your own', because=because)
        if policy == resolve_checks("standard"):
            policy = ()
    own = {
        "checks": policy,
        "language": executor.language,
        "has_module": validate.has_module or (executor.has_module if policy else None),
        "toolbox": toolbox if executor.language == "python" else None,
    }
    return validate.model_copy(update=own)


def resolve_snippets(
    snippets: object, chat_model: Model, executor: Executor
) -> tuple[VectorStore | Runnable[str, list[Document]] | None, Snippets]:
    """Return where examples for the model come from, and how; None for none.

    Raises:
        ConfigurationError: There is no such source, or nothing can be added to it.
    """
    value = snippets if isinstance(snippets, Snippets) else Snippets(cast("bool", snippets))
    store = _open_snippets(value.source, chat_model, executor)
    if value.learn and (value.source is True or not isinstance(store, SnippetStore)):
        because = "verified programs are added to the snippets"
        remedy = "a SnippetStore or a folder as its source"
        raise ConfigurationError("Snippets.learn", True, remedy, because=because)
    return store, value


def _open_snippets(
    source: object, chat_model: Model, executor: Executor
) -> VectorStore | Runnable[str, list[Document]] | None:
    if source is False or source is None:
        return None
    if source is True:
        weights = embedded(chat_model)  # Curated ones harm a model that copies them.
        return curated_snippets() if weights is None or weights.learns_from_examples else None
    if isinstance(source, str) and source.startswith(PACKAGE_PREFIX):
        package = source.removeprefix(PACKAGE_PREFIX)
        store = SnippetStore.from_package(package)
        if executor.has_module(package.partition(".")[0]):  # Not where a run costs a machine of a service.
            store.run_examples(executor.run)
        return store
    if isinstance(source, str | Path):
        return SnippetStore.open(source)
    if isinstance(source, VectorStore | Runnable):
        return source
    raise ConfigurationError(
        "snippets",
        source,
        'True, a folder, "package:NAME", a SnippetStore, a vector store or retriever, or Snippets(…)',
    )


def resolve_cache(cache: object) -> ByteStore | None:
    """Return the store of answers; None without a cache."""
    if cache is None or cache is False:
        return None
    if isinstance(cache, BaseStore):
        return cache
    if cache is True or isinstance(cache, str | Path):
        return answers_store(None if cache is True else cache)
    raise ConfigurationError("cache", cache, "True, a path, or a ByteStore, e.g. SqliteStore(path)")


def answers_store(path: str | Path | None = None) -> SqliteStore:
    """Return the store of answers, for 30 days and up to 256 MB; by default in the user's cache."""
    from platformdirs import user_cache_path

    return SqliteStore(
        path or user_cache_path("code_chains") / "answers.sqlite", ttl=30 * 86_400, max_bytes=256 << 20
    )


def _may_ask_model(memory: object) -> bool:
    """Return whether a memory may have a model read the conversation, as those that summarize do."""
    if isinstance(memory, ConversationMemory):
        return memory.summarize is not None
    return isinstance(memory, BaseMemory)


def resolve_memory(memory: object, answer_key: str) -> BaseMemory | None:
    """Return the memory of conversations; None for none."""
    if memory is None or memory is False:
        return None
    if memory is True:
        return ConversationMemory()
    if isinstance(memory, str | Path):
        return ConversationMemory(SqliteStore(memory))
    if isinstance(memory, BaseStore):
        return ConversationMemory(memory)
    if isinstance(memory, BaseMemory):
        if not isinstance(memory, ConversationMemory) and not _HISTORY_KEYS.intersection(
            memory.memory_variables
        ):
            raise ConfigurationError(
                "memory", memory, 'memory_key="history" to it', because="the model is shown that key"
            )
        # Invariant: classic memories look for the chain's own keys, whatever those of a former chain were.
        keys = {"input_key": "query", "output_key": answer_key}
        missing = {
            name: key for name, key in keys.items() if getattr(memory, name, key) not in (key, "output")
        }
        return memory.model_copy(update=missing) if missing else memory
    raise ConfigurationError(
        "memory",
        memory,
        "True, a path, a ByteStore, or a LangChain memory, e.g. ConversationMemory(SqliteStore(path))",
    )


def resolve_tools(tools: object, executor: Executor) -> Toolbox | None:
    """Return the tools that programs of an executor may call; None without any."""
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(cast("Sequence[BaseTool]", tools))
    if not toolbox:
        if toolbox.approve is not None:
            raise ConfigurationError(
                "Toolbox.approve", toolbox.approve, "tools as well", because="there are no tools"
            )
        return None
    check_takes_tools(executor)
    return toolbox


def resolve_executor(executor: object, limits: Limits | None = None) -> Executor:
    """Return an executor, or the one that a name, a function or a sandbox stands for."""
    if not is_backend(executor):
        executor = as_executor(executor)
    if isinstance(executor, Executor):
        if limits is not None:
            raise ConfigurationError(
                "limits", limits, "limits= to the executor", because="an Executor has its own"
            )
        return executor
    if isinstance(executor, str) and executor in _EXECUTORS:
        return _EXECUTORS[executor](limits=limits)
    if is_backend(executor):
        return BackendExecutor(cast("SandboxProtocol", executor), limits=limits)
    names = ", ".join(f'"{name}"' for name in _EXECUTORS)
    raise ConfigurationError(
        "executor",
        executor,
        f"one of {names} (protects nothing), an Executor, a function of the code or a sandbox of LangChain's protocol",
    )
