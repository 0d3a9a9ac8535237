"""The arguments of `create_code_chain`: checked, and resolved into the parts that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_classic.base_memory import BaseMemory
from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from code_chains.callbacks.budget import Budget
from code_chains.chains.solver import Iterate, Plan
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import ConfigurationError, check_int
from code_chains.executors import (
    BackendExecutor,
    CloudExecutor,
    ContainerExecutor,
    Executor,
    Limits,
    MontyExecutor,
    ProcessExecutor,
    SandboxExecutor,
    SqlExecutor,
    WasmExecutor,
)
from code_chains.executors.backend import SandboxProtocol, is_backend
from code_chains.executors.strongest import strongest_executor
from code_chains.executors.tools import check_takes_tools
from code_chains.models import resolve_model
from code_chains.models.sampling import can_be_sampled, inner_model
from code_chains.retrieval.curated import curated_snippets
from code_chains.retrieval.store import SnippetStore
from code_chains.storage.sqlite import SqliteStore
from code_chains.toolbox import ApproveTools, Toolbox

if TYPE_CHECKING:
    from code_chains.models.weights import Weights

__all__ = [
    "ExecutorName",
    "Snippets",
    "answers_store",
    "check_arguments",
    "check_executor",
    "check_iterate",
    "check_models",
    "has_sessions",
    "may_ask_model",
    "model_name",
    "resolve_cache",
    "resolve_executor",
    "resolve_fallback",
    "resolve_memory",
    "resolve_prompts",
    "resolve_snippets",
    "resolve_tools",
    "resolve_verifier",
    "restarts_on_failed_tests",
]

ExecutorName = Literal[
    "strongest",
    "sandbox",
    "container",
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
        "container": ContainerExecutor,
        "docker": partial(ContainerExecutor, backend="docker"),
        "podman": partial(ContainerExecutor, backend="podman"),
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
Verify = bool | Literal["auto"] | str | Runnable[LanguageModelInput, Any]
PACKAGE_PREFIX = "package:"
"""What precedes the name of an installed package whose references are the snippets."""
Snippets = bool | str | Path | VectorStore | Runnable[str, list[Document]]


def check_models(models: object) -> Sequence[str | Runnable[LanguageModelInput, Any]]:
    """Return fallback models, checked."""
    is_list = isinstance(models, Sequence) and not isinstance(models, str)
    if not is_list or not all(
        isinstance(model, str | Runnable) for model in cast("Sequence[object]", models)
    ):
        raise ConfigurationError("fallback_models", models, 'a list of models, e.g. ["openai:gpt-5-mini"]')
    return cast("Sequence[str | Runnable[LanguageModelInput, Any]]", models)


def resolve_fallback(model: str | Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    """Return the chat model that a fallback stands for."""
    try:
        return resolve_model(model, start=False)
    except ConfigurationError as error:
        remedy = f"{error.remedy}; base_url is for the first model only: for another server pass a chat model"
        raise ConfigurationError("fallback_models", model, remedy) from error


def resolve_verifier(
    verify: object, chat_model: Runnable[LanguageModelInput, Any], toolbox: Toolbox | None
) -> Runnable[LanguageModelInput, Any] | None:
    """Return the model that solves questions again, to verify outcomes; None if none does."""
    if verify is False:
        return None
    verifier = chat_model if verify in (True, "auto") else _other_model(verify)
    unreliable, has_effects = _cannot_verify(verifier), toolbox is not None and not toolbox.is_read_only
    if verify == "auto":
        return None if unreliable or has_effects else verifier
    if has_effects:
        remedy = 'verify="auto", or tools that have metadata={"read_only": True}'
        because = "further programs would call the tools again"
        raise ConfigurationError("verify", verify, remedy, because=because)
    if unreliable:
        because = f"programs of {unreliable} agree on wrong answers"
        raise ConfigurationError("verify", verify, 'a larger model, e.g. "local:1.5b"', because=because)
    return verifier


def _other_model(verify: object) -> Runnable[LanguageModelInput, Any]:
    if not isinstance(verify, str | Runnable):
        raise ConfigurationError("verify", verify, 'True, False, "auto" or another model')
    try:
        return resolve_model(verify, start=False)
    except ConfigurationError as error:
        raise ConfigurationError("verify", verify, error.remedy) from error


def _cannot_verify(model: Runnable[LanguageModelInput, Any]) -> str:
    """Return the name of an embedded model whose agreement with itself means little; empty for others."""
    weights = _embedded(model)
    return weights.name if weights and not weights.can_verify else ""


def restarts_on_failed_tests(model: Runnable[LanguageModelInput, Any]) -> bool:
    """Return whether another sample of a model is worth more than a repair of a program that failed tests."""
    weights = _embedded(model)
    return weights is not None and not weights.repairs_after_tests and can_be_sampled(model)


def _embedded(model: Runnable[LanguageModelInput, Any]) -> Weights | None:
    """Return which embedded model this is; None for others."""
    from code_chains.models.weights import CATALOGUE

    return CATALOGUE.get(str(getattr(inner_model(model), "model_name", "")))


def model_name(
    model: str | Runnable[LanguageModelInput, Any],
    chat_model: Runnable[LanguageModelInput, Any],
    others: Collection[str],
) -> str:
    """Return the name of a model in the records of attempts, which no other model of the chain has.

    Args:
        model: The model as it was given.
        chat_model: What it stands for; `local` is recorded as the model that it is on this machine.
        others: The names of the others.
    """
    is_named = isinstance(model, str) and model != "local"
    name = str(model if is_named else getattr(chat_model, "model_name", None) or type(chat_model).__name__)
    if name.startswith("gguf:"):  # Records must not learn the folders of this machine.
        name = f"gguf:{Path(name).name}"
    return f"{name} ({len(others) + 1})" if name in others else name


def has_sessions(executor: Executor | None) -> bool:
    """Return whether runs of an executor can share a state; not if its `max_sessions` is 0."""
    if executor is None or getattr(executor, "max_sessions", None) == 0:
        return False
    return type(executor).session is not Executor.session


def check_iterate(iterate: object, *, samples: int, schema_only: bool) -> None:
    """Raise unless `iterate` is valid and goes with the other arguments."""
    if iterate not in (True, False, "auto"):
        raise ConfigurationError("iterate", iterate, 'True, False or "auto"')
    if iterate and samples > 1:
        raise ConfigurationError("iterate", iterate, "samples=1", because="cells build on each other")
    if iterate and schema_only:
        because = "the model sees what its cells show"
        raise ConfigurationError("iterate", iterate, "schema_only=False", because=because)


def check_schema_only(schema_only: bool, *, judge: object, memory: object) -> None:
    """Raise if another model would see what `schema_only` keeps from them."""
    if schema_only and (judge is not False or may_ask_model(memory)):
        remedy = "judge=False, and as memory= a ConversationMemory without summarize="
        because = "a judge or a memory that summarizes would see the data"
        raise ConfigurationError("schema_only", schema_only, remedy, because=because)


def check_learn(learn: bool, snippets: object, store: object) -> None:
    """Raise unless verified programs can be added to the snippets."""
    if learn and (snippets is True or not isinstance(store, SnippetStore)):
        remedy = "a SnippetStore or a folder as snippets="
        raise ConfigurationError(
            "learn", learn, remedy, because="verified programs are added to the snippets"
        )


def check_executor(
    executor: Executor,
    *,
    write_tests: bool,
    plan: Plan,
    iterate: Iterate,
    checks: object,
    answer_type: object,
) -> None:
    """Raise if an executor lacks what an argument needs."""
    kind, remedy = type(executor).__name__, "an executor that does, such as SandboxExecutor()"
    isolates_tests = type(executor).run_tests is not Executor.run_tests
    if write_tests and (isinstance(executor, ProcessExecutor) or not isolates_tests):
        because = f"{kind} does not isolate tests"
        raise ConfigurationError("write_tests", write_tests, remedy, because=because)
    for name, value in {"plan": plan, "iterate": iterate}.items():
        if value is True and not has_sessions(executor):
            raise ConfigurationError(name, value, remedy, because=f"{kind} does not open sessions")
    if answer_type is not None and not executor.returns_values:
        because = f"{kind} does not return values"
        raise ConfigurationError("answer_type", answer_type, remedy, because=because)
    if executor.language != "python" and checks == "strict":
        remedy = '"none" or functions of your own'
        raise ConfigurationError("checks", checks, remedy, because="the strict policy reads Python")


def check_switches(**switches: object) -> None:
    """Raise unless arguments that turn something on or off are True or False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigurationError(name, value, "True or False")


def check_arguments(*, budget: object, plan: object, approve: object, **counts: object) -> None:
    """Raise unless the arguments that are no parts are valid; the counts are passed by name."""
    for name, count in counts.items():
        check_int(name, count, "a whole number, at least 1", minimum=1)
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError("budget", budget, "a Budget, e.g. Budget(tokens=10_000)")
    if plan not in (True, False, "auto"):
        raise ConfigurationError("plan", plan, 'True, False or "auto"')
    if approve is not None and not callable(approve):
        raise ConfigurationError("approve", approve, "a function that takes an ApprovalRequest")


def resolve_snippets(
    snippets: object, chat_model: Runnable[LanguageModelInput, Any]
) -> VectorStore | Runnable[str, list[Document]] | None:
    """Return where examples for the model come from; None for none, as the curated ones harm a model that copies them."""
    if snippets is False or snippets is None:
        return None
    if snippets is True:
        weights = _embedded(chat_model)
        return curated_snippets() if weights is None or weights.learns_from_examples else None
    if isinstance(snippets, str) and snippets.startswith(PACKAGE_PREFIX):
        return SnippetStore.from_package(snippets.removeprefix(PACKAGE_PREFIX))
    if isinstance(snippets, str | Path):
        return SnippetStore.open(snippets)
    if isinstance(snippets, VectorStore | Runnable):
        return snippets
    raise ConfigurationError(
        "snippets",
        snippets,
        'True, a folder, "package:NAME", a SnippetStore, or a vector store or retriever',
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


def may_ask_model(memory: object) -> bool:
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
        # Classic memories need the keys of question and answer if a chain has further keys.
        keys = {"input_key": "query", "output_key": answer_key}
        missing = {name: key for name, key in keys.items() if getattr(memory, name, "") is None}
        return memory.model_copy(update=missing) if missing else memory
    raise ConfigurationError(
        "memory",
        memory,
        "True, a path, a ByteStore, or a LangChain memory, e.g. ConversationMemory(SqliteStore(path))",
    )


def resolve_prompts(prompts: object, instructions: object) -> dict[str, dict[str, str]]:
    """Return the texts of the chains that have a prompt, as keyword arguments by the name of the chain."""
    if not isinstance(instructions, str):
        raise ConfigurationError("instructions", instructions, "text")
    texts = {} if prompts is None else prompts
    names = ("generate", "interpret")
    if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        raise ConfigurationError("prompts", prompts, '{"generate": text, "interpret": text}')
    if unknown := sorted(map(str, set(texts) - set(names))):
        raise ConfigurationError(
            "prompts", prompts, f"only the keys {' and '.join(names)}, not {unknown[0]!r}"
        )
    replaced = {name: {"prompt": texts[name]} if name in texts else {} for name in names}
    return {name: {"instructions": instructions.strip(), **prompt} for name, prompt in replaced.items()}


def resolve_tools(
    tools: Sequence[BaseTool | Callable[..., Any]],
    approve_tools: ApproveTools | None,
    executor: Executor,
    samples: int = 1,
) -> Toolbox | None:
    """Return the tools that programs of an executor may call; None without any."""
    toolbox = Toolbox(tools, approve=approve_tools)
    if not toolbox:
        if approve_tools is not None:
            raise ConfigurationError(
                "approve_tools", approve_tools, "tools= as well", because="there are no tools"
            )
        return None
    check_takes_tools(executor)
    if samples > 1 and not toolbox.is_read_only:
        remedy = 'samples=1, or tools that have metadata={"read_only": True}'
        because = "each sample would call the tools"
        raise ConfigurationError("samples", samples, remedy, because=because)
    return toolbox


def resolve_executor(executor: object, limits: Limits | None = None) -> Executor:
    """Return an executor, or the one that a name stands for."""
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
        f"one of {names} (protects nothing), an Executor or a sandbox of LangChain's protocol",
    )
