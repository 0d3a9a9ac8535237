"""The arguments of `create_code_chain`: one value that has them all, and what each may be given as."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_classic.base_memory import BaseMemory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from code_chains.analysis.checks import Check, resolve_checks
from code_chains.assembly.parts import Model, embedded
from code_chains.assembly.settings import Data, Language, Prompts, Snippets, SnippetsSource
from code_chains.assembly.solvers import Solver
from code_chains.assembly.verifiers import Verifier
from code_chains.callbacks.budget import Budget
from code_chains.chains.validate import ValidateChain
from code_chains.errors import ConfigurationError, UnknownArgumentError
from code_chains.executors import Executor, Limits
from code_chains.toolbox import Toolbox

if TYPE_CHECKING:
    from code_chains.executors.remote.protocol_sandbox import SandboxProtocol
    from code_chains.storage.sqlite import SqliteStore

    GivenExecutor = str | Executor | SandboxProtocol | Callable[[str], Any]
GivenTools = Toolbox | Sequence[BaseTool | Callable[..., Any]]
GivenChecks = str | Check | Sequence[str | Check] | ValidateChain
GivenMemory = BaseMemory | ByteStore | str | Path | bool
GivenCache = ByteStore | str | Path | bool


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of `create_code_chain`, which documents them; solver, verifiers, language and the like as values.

    Attributes:
        named: The model as the user named it, for records.
    """

    model: str | Model
    named: str | Model
    executor: GivenExecutor
    limits: Limits | None
    checks: GivenChecks
    solve: Solver
    verify: Sequence[Verifier]
    tools: GivenTools
    snippets: Snippets
    data: Data
    answer_type: Any
    language: Language
    instructions: Prompts
    interpret: bool
    memory: GivenMemory
    cache: GivenCache
    budget: Budget | None


KEYWORDS: tuple[str, ...] = tuple(field.name for field in fields(Settings) if field.name != "named")
_MIN_SIMILARITY = 0.75
_ELSEWHERE = {
    "agent_type": "solve=…, e.g. Iterate() or Plan()",
    "approve": "checks=ValidateChain(approve=…), or tools=Toolbox([…], approve=…)",
    "callbacks": "them to chain.with_config(callbacks=…)",
    "chain_type": "snippets=… for retrieval; the stages are those of the chain",
    "df": 'it with the question: {"query": …, "variables": {"df": df}}',
    "fallback_models": 'solve=Escalate(["openai:gpt-5"])',
    "iterate": "solve=Iterate()",
    "judge": "verify=[Judge()]",
    "learn": "snippets=Snippets(FOLDER, learn=True)",
    "llm": "model=…",
    "max_attempts": "solve=Repair(attempts=…)",
    "max_iterations": "solve=Repair(attempts=…), or solve=Iterate(cells=…)",
    "metadata": "it to chain.with_config(metadata=…)",
    "name": "it to chain.with_config(run_name=…)",
    "plan": "solve=Plan()",
    "prefix": "instructions=…",
    "profile": "data=Data(profile=…)",
    "prompt": "instructions=…, or instructions=Prompts(generate=…)",
    "prompts": "instructions=Prompts(generate=…)",
    "retriever": "snippets=…",
    "return_intermediate_steps": "nothing: the result has them as attempts",
    "retries": "solve=Repair(attempts=…); for errors of a provider a model with max_retries=…",
    "samples": "solve=Repair(samples=…)",
    "schema_only": "data=Data(schema_only=True)",
    "store": "memory=… for conversations, cache=… for answers, or snippets=… for examples",
    "system_prompt": "instructions=…, or instructions=Prompts(generate=…)",
    "tags": "them to chain.with_config(tags=…)",
    "temperature": "a model that has it, e.g. init_chat_model(NAME, temperature=0)",
    "timeout": "limits=Limits(seconds=…) for programs; for a provider a model with timeout=…",
    "translate": 'language=Language("auto", translate=True)',
    "verbose": "a callback, e.g. StdOutCallbackHandler(), to chain.with_config(callbacks=[…])",
    "verifiers": "verify=[…]",
    "write_tests": "verify=[GeneratedTests()]",
}
"""What to pass for arguments of earlier versions and of LangChain's agents and chains."""


def check_names(names: Collection[str]) -> None:
    """Raise for a name that is not an argument of `create_code_chain`.

    Raises:
        ConfigurationError: It is not one; the message names what to pass.
    """
    for name in names:
        if name not in KEYWORDS:
            near = get_close_matches(name, KEYWORDS, n=1, cutoff=_MIN_SIMILARITY)
            remedy = _ELSEWHERE.get(name) or (f"{near[0]}=…" if near else f"only {', '.join(KEYWORDS)}")
            raise UnknownArgumentError(name, remedy)


_HISTORY_KEYS = {"history", "chat_history"}
PACKAGE_PREFIX = "package:"
"""What precedes the name of an installed package whose references are the snippets."""


def check_memory(memory: GivenMemory, data: Data) -> None:
    """Raise if a model of the memory would see what `schema_only` keeps from models."""
    if data.schema_only and _may_ask_model(memory):
        because = "with schema_only a memory that summarizes would see the data"
        raise ConfigurationError("memory", memory, "a ConversationMemory without summarize=", because=because)


def check_answer_type(answer_type: Any, executor: Executor) -> None:
    """Raise if there is a type, and the executor does not return values."""
    if answer_type is not None and not executor.returns_values:
        because = f"{type(executor).__name__} does not return values"
        remedy = "an executor that does, such as SandboxExecutor()"
        raise ConfigurationError("answer_type", answer_type, remedy, because=because)


def check_budget(budget: Budget | None) -> None:
    """Raise unless a budget is one."""
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError("budget", budget, "a Budget, e.g. Budget(tokens=10_000)")


def resolve_data(data: Data) -> Data:
    """Return what models are told of data."""
    if not isinstance(data, Data):
        raise ConfigurationError("data", data, "a Data, e.g. Data(schema_only=True)")
    return data


def resolve_language(language: str | Language) -> Language:
    """Return the language of answers."""
    if isinstance(language, str):
        return Language(language)
    if not isinstance(language, Language):
        raise ConfigurationError("language", language, '"auto", a language such as "es", or a Language')
    return language


def resolve_prompts(instructions: str | Prompts) -> Prompts:
    """Return what models are told besides the question."""
    return instructions if isinstance(instructions, Prompts) else Prompts(instructions)


def as_validate(checks: GivenChecks) -> ValidateChain:
    """Return the chain of the static checks that are named, whatever language they read."""
    return checks if isinstance(checks, ValidateChain) else ValidateChain(checks)


def resolve_validate(checks: GivenChecks, executor: Executor, toolbox: Toolbox | None) -> ValidateChain:
    """Return the chain of the static checks, for programs of an executor with its tools.

    Raises:
        ConfigurationError: There is no such policy, or it reads another language.
    """
    validate = as_validate(checks)
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


Source = VectorStore | Runnable[str, list[Document]]
"""Where examples for the model are searched."""


def as_snippets(snippets: SnippetsSource | Snippets) -> Snippets:
    """Return the value that `snippets=` stands for."""
    return snippets if isinstance(snippets, Snippets) else Snippets(snippets)


def open_snippets(snippets: Snippets, chat_model: Model, executor: Executor) -> Source | None:
    """Return where examples for the model come from; None for none.

    Raises:
        ConfigurationError: There is no such source, or nothing can be added to it.
    """
    if snippets.source is False and not snippets.learn:
        return None
    from code_chains.retrieval.store import SnippetStore

    source = _open_source(snippets.source, chat_model, executor)
    if snippets.learn and (snippets.source is True or not isinstance(source, SnippetStore)):
        because = "verified programs are added to the snippets"
        remedy = "a SnippetStore or a folder as its source"
        raise ConfigurationError("Snippets.learn", True, remedy, because=because)
    return source


def _open_source(source: SnippetsSource, chat_model: Model, executor: Executor) -> Source | None:
    from code_chains.retrieval.curated import curated_snippets
    from code_chains.retrieval.store import SnippetStore

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
    if source is False or source is None or isinstance(source, VectorStore | Runnable):
        return source or None
    raise ConfigurationError(
        "snippets",
        source,
        'True, a folder, "package:NAME", a SnippetStore, a vector store or retriever, or Snippets(…)',
    )


def resolve_cache(cache: GivenCache | None) -> ByteStore | None:
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

    from code_chains.storage.sqlite import SqliteStore

    return SqliteStore(
        path or user_cache_path("code_chains") / "answers.sqlite", ttl=30 * 86_400, max_bytes=256 << 20
    )


def _may_ask_model(memory: GivenMemory) -> bool:
    """Return whether a memory may have a model read the conversation, as those that summarize do."""
    from code_chains.conversations.memory import ConversationMemory

    if isinstance(memory, ConversationMemory):
        return memory.summarize is not None
    return isinstance(memory, BaseMemory)


def resolve_memory(memory: GivenMemory | None, answer_key: str) -> BaseMemory | None:
    """Return the memory of conversations; None for none."""
    from code_chains.conversations.classic import ClassicMemory
    from code_chains.conversations.memory import ConversationMemory

    if memory is None or memory is False:
        return None
    if memory is True:
        return ConversationMemory()
    if isinstance(memory, str | Path):
        from code_chains.storage.sqlite import SqliteStore

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
        is_own = isinstance(memory, ConversationMemory)
        return memory if is_own else ClassicMemory(memory=memory, answer_key=answer_key)
    raise ConfigurationError("memory", memory, _other_memory(memory))


def _other_memory(given: object) -> str:
    """Return what to pass in place of something that is no memory."""
    if isinstance(given, BaseChatMessageHistory):
        return 'it to RunnableWithMessageHistory(chain, …, output_messages_key="answer"), around the chain'
    return "True, a path, a ByteStore, or a LangChain memory, e.g. ConversationMemory(SqliteStore(path))"


def resolve_tools(tools: GivenTools, executor: Executor) -> Toolbox | None:
    """Return the tools that programs of an executor may call; None without any."""
    from code_chains.executors.tools import check_takes_tools

    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    if not toolbox:
        if toolbox.approve is not None:
            raise ConfigurationError(
                "Toolbox.approve", toolbox.approve, "tools as well", because="there are no tools"
            )
        return None
    check_takes_tools(executor)
    return toolbox
