"""The only place where all parts meet."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.vectorstores import VectorStore

from code_chains.budget import Budget
from code_chains.chains import (
    AttemptChain,
    CachedChain,
    EvaluateChain,
    ExecuteChain,
    GenerateChain,
    InterpretChain,
    JudgeChain,
    LanguageChain,
    LearnChain,
    Piece,
    PlanChain,
    RepairChain,
    RetrieveChain,
    SampleChain,
    Sequence,
    StepsChain,
    Transform,
    TranslateChain,
    ValidateChain,
    WriteTestsChain,
)
from code_chains.chains.attempt import KEPT
from code_chains.chains.base import Chain, Memory
from code_chains.chains.generate import GENERATE_PROMPTS
from code_chains.chains.validate import Approve
from code_chains.checks import Check
from code_chains.code_chain import CodeChain
from code_chains.conversations import Conversations
from code_chains.errors import ConfigurationError
from code_chains.executors import Executor, Limits, ProcessExecutor, SandboxExecutor
from code_chains.memory import ConversationMemory
from code_chains.models import for_code, resolve_model
from code_chains.snippets import SnippetStore, curated_snippets
from code_chains.state import Execution, Verdict
from code_chains.stores import SqliteStore

__all__ = ["CodeChain", "answers_store", "create_code_chain"]

Plan = bool | Literal["auto"]
Snippets = bool | str | Path | VectorStore | Runnable[str, list[Document]]


def create_code_chain(
    model: str | Runnable[LanguageModelInput, Any],
    *,
    executor: Literal["sandbox", "none"] | Executor = "sandbox",
    limits: Limits | None = None,
    checks: str | Check | Several[Check] = "standard",
    approve: Approve | None = None,
    max_attempts: int = 3,
    samples: int = 1,
    judge: bool | Runnable[LanguageModelInput, Any] = False,
    write_tests: bool = False,
    plan: Plan = False,
    snippets: Snippets = False,
    learn: bool = False,
    budget: Budget | None = None,
    language: str = "auto",
    translate: bool = False,
    interpret: bool = True,
    memory: Memory | ByteStore | str | Path | bool = True,
    cache: ByteStore | str | Path | bool = False,
    base_url: str | None = None,
) -> CodeChain:
    """Assemble a chain that answers questions with executed code.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` knows, `"local"` for the embedded model
            (no key, fetched once), `"gguf:PATH"`, or any chat model.
        executor: Where code runs: `"sandbox"`, `"none"` (a plain process: protects nothing), or an `Executor`.
        limits: What one run may use; only for an executor given by name.
        checks: What reads the code before it runs: `"standard"` rejects nothing legitimate, `"strict"` has the usual guard
            rails, `"none"`, or functions from code to problems. They help the model; what protects is the executor.
        approve: A function, plain or async, that sees each program before it runs (an `ApprovalRequest`). It returns True,
            or False or the reason as text, which goes back to the model.
        max_attempts: How often a program is asked for at most.
        samples: How many programs each attempt asks for at once, to keep the outcome that most agree on.
        judge: Whether a model, this one or another, judges an outcome that no test verifies.
        write_tests: Whether the model writes tests first; passing them makes an outcome plausible at most.
        plan: Whether a task is done in steps, in one session: `"auto"` where it says that one thing comes after another,
            True where the model thinks so.
        snippets: Examples to show to the model: True for the curated ones that come with the package, a folder of yours, a
            `SnippetStore`, or any LangChain vector store or retriever.
        learn: Whether programs that tests have verified become snippets themselves, in the store that is given.
        budget: Limits on what is spent, shared by all that this chain does.
        language: What answers and labels of plots are written in: `"auto"` for the question's language, or e.g. `"es"`.
        translate: Whether a model translates questions into English first, for models that know it best.
        interpret: Whether a model tells the answer in words.
        memory: Where conversations (questions with a `session_id`) are remembered: True for this process's memory, a path
            for an SQLite file that outlives it, a `ByteStore`, a `ConversationMemory`, any classic LangChain memory, or
            False for nowhere.
        cache: Where good answers are kept, so that the same question costs nothing the next time: True for the user's cache
            folder, a path for an SQLite file, or a `ByteStore`. See `CachedChain` for what is the same question.
        base_url: Address of an OpenAI-compatible server that has the model.

    Returns:
        A chain from `{"query": …}`, and optionally `files`, `variables`, `tests`, `examples` and `session`, to a dict with
        `code`, `output`, `verdict`, `attempts`, `stop_reason`, `usage`, `answer` and more.

    Raises:
        ConfigurationError: An argument is wrong; it says which and what would do.
        IsolationError: The sandbox cannot be had on this machine.
        WeightsError: The embedded model cannot be fetched or loaded.

    Example:
        >>> from code_chains.testing import ScriptedModel, asks_for_code
        >>> model = ScriptedModel(lambda messages: "sum(range(1, 6))" if asks_for_code(messages) else "It is 15.")
        >>> with create_code_chain(model) as chain:
        ...     chain.invoke({"query": "What is the sum of the numbers from 1 to 5?"})["answer"]
        'It is 15.'
    """
    _check_arguments(max_attempts=max_attempts, samples=samples, budget=budget, plan=plan, approve=approve)
    place = _resolve_executor(executor, limits)
    _check_place(place, write_tests=write_tests, plan=plan, checks=checks)
    chat = resolve_model(model, base_url=base_url)
    validate = ValidateChain("none" if place.language != "python" and checks == "standard" else checks, approve=approve)
    solve = _solving(chat, place, validate, max_attempts=max_attempts, samples=samples, judge=judge, plan=plan)
    store = _resolve_snippets(snippets)
    if learn and (snippets is True or not isinstance(store, SnippetStore)):
        raise ConfigurationError("learn", learn, "it with snippets= a SnippetStore, or a folder, in which to keep them")
    optional: list[tuple[bool, Callable[[], Chain]]] = [
        (True, lambda: LanguageChain(language)),
        (translate, lambda: TranslateChain(model=chat)),
        (store is not None, lambda: RetrieveChain(cast("VectorStore", store))),
        (write_tests, lambda: WriteTestsChain(model=for_code(chat), validate_tests=validate)),
        (True, lambda: solve),
        (learn, lambda: LearnChain(store=cast("SnippetStore", store))),
        (interpret, lambda: InterpretChain(model=chat)),
    ]
    stages = _remembered([make() for wanted, make in optional if wanted], _resolve_cache(cache), place)
    return CodeChain(
        chains=stages,
        input_variables=["query"],
        output_variables=[key for stage in stages for key in stage.output_keys],
        place=place,
        owned=None if place is executor else place,
        memory=_resolve_memory(memory, "answer" if interpret else "output"),
        budget=budget,
        conversations=_conversations(place),
        given=[validate.model_copy(update={"approve": None}), ExecuteChain(place), _believing()],
    )


def _solving(
    chat: Runnable[LanguageModelInput, Any],
    place: Executor,
    validate: ValidateChain,
    *,
    max_attempts: int,
    samples: int,
    judge: bool | Runnable[LanguageModelInput, Any],
    plan: Plan,
) -> Piece:
    """What writes, runs and judges programs until one holds."""
    if not isinstance(judge, bool | Runnable):
        raise ConfigurationError("judge", judge, "True, False or a chat model")
    judging = None if judge is False else JudgeChain(model=chat if judge is True else judge)
    attempt: Chain = AttemptChain(
        chains=[
            _generate(chat, place),
            validate,
            ExecuteChain(place),
            EvaluateChain(executor=place, judge=judging if samples == 1 else None),
        ],
        input_variables=["query"],
        output_variables=list(KEPT),
        mend=place.language == "python",
    )
    if samples > 1:
        attempt = SampleChain(attempt=attempt, samples=samples, judge=judging)
    solve = RepairChain(attempt=attempt, max_attempts=max_attempts)
    if not plan:
        return solve
    return StepsChain(
        solve=solve,
        plan=PlanChain(model=chat),
        open_session=place.session,
        when="always" if plan is True else "auto",
        evaluate=EvaluateChain(executor=place),
    )


def _believing() -> Transform:
    """What judges programs that a person wrote: one that ran is as it was meant, even if it shows nothing."""
    return Transform(
        name="evaluate",
        input_variables=["execution"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": _believed(state["execution"])},
    )


def _believed(execution: Execution) -> Verdict:
    if execution.ok:
        return Verdict("unverified", "none", "It ran to its end; nothing checked what it says.")
    return Verdict("failed", "none", execution.summary)


def _remembered(stages: list[Chain], answers: ByteStore | None, place: Executor) -> list[Chain]:
    """The stages, with a cache in front of them where there is one."""
    if answers is None:
        return stages
    added = [key for stage in stages for key in stage.output_keys]
    inner = Sequence(chains=stages, input_variables=["query"], output_variables=added, name="answer")
    return [CachedChain(inner, store=answers, repeatable=_is_repeatable(place))]


def _is_repeatable(place: Executor) -> bool:
    """Whether whatever runs there shows the same each time."""
    return getattr(place, "seed", None) is not None and not getattr(place, "network", ())


def _conversations(place: Executor) -> Conversations:
    """The conversations, with their states where the place keeps any; some of its sessions are left to others."""
    most = max(1, 3 * getattr(place, "most_sessions", 8) // 4)
    return Conversations(place.session if _keeps_state(place) else None, most=most)


def _keeps_state(place: Executor) -> bool:
    return type(place).session is not Executor.session


def _check_place(place: Executor, *, write_tests: bool, plan: Plan, checks: object) -> None:
    """See that a place can do what is asked of it."""
    if write_tests and (isinstance(place, ProcessExecutor) or type(place).examine is Executor.examine):
        raise ConfigurationError(
            "write_tests", write_tests, "it with a place that isolates tests, such as SandboxExecutor"
        )
    if plan and not _keeps_state(place):
        raise ConfigurationError("plan", plan, "it with an executor that keeps state, such as SandboxExecutor")
    if place.language != "python" and checks == "strict":
        raise ConfigurationError("checks", checks, '"none" or functions of your own: the policies read Python')


def _check_arguments(*, budget: object, plan: object, approve: object, **counts: object) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigurationError(name, count, "a whole number, at least 1")
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError("budget", budget, "a Budget, e.g. Budget(tokens=10_000)")
    if plan not in (True, False, "auto"):
        raise ConfigurationError("plan", plan, 'True, False or "auto"')
    if approve is not None and not callable(approve):
        raise ConfigurationError("approve", approve, "a function that takes an ApprovalRequest")


def _resolve_snippets(snippets: object) -> VectorStore | Runnable[str, list[Document]] | None:
    if snippets is False or snippets is None:
        return None
    if snippets is True:
        return curated_snippets()
    if isinstance(snippets, str | Path):
        return SnippetStore.open(snippets)
    if isinstance(snippets, VectorStore | Runnable):
        return snippets
    raise ConfigurationError("snippets", snippets, "True, a folder, a SnippetStore, or a vector store or retriever")


def _resolve_cache(cache: object) -> ByteStore | None:
    if cache is None or cache is False:
        return None
    if isinstance(cache, BaseStore):
        return cache
    if cache is True or isinstance(cache, str | Path):
        return answers_store(None if cache is True else cache)
    raise ConfigurationError("cache", cache, "True, a path, or a ByteStore, e.g. SqliteStore(path)")


def answers_store(path: str | Path | None = None) -> SqliteStore:
    """The file in which answers are kept for 30 days, at most 256 MB of them; None for the one in the user's cache."""
    from platformdirs import user_cache_path

    return SqliteStore(path or user_cache_path("code_chains") / "answers.sqlite", ttl=30 * 86_400, max_bytes=256 << 20)


def _resolve_memory(memory: object, answer_key: str) -> Memory | None:
    if memory is None or memory is False:
        return None
    if memory is True:
        return ConversationMemory()
    if isinstance(memory, str | Path):
        return ConversationMemory(SqliteStore(memory))
    if isinstance(memory, BaseStore):
        return ConversationMemory(memory)
    if isinstance(memory, Memory):
        # Classic memories want to be told what is the question and what the answer, where a chain has more keys than these.
        keys = {"input_key": "query", "output_key": answer_key}
        missing = {name: key for name, key in keys.items() if getattr(memory, name, "") is None}
        return memory.model_copy(update=missing) if missing else memory
    raise ConfigurationError(
        "memory", memory, "True, a path, a ByteStore, or a LangChain memory, e.g. ConversationMemory(SqliteStore(path))"
    )


def _generate(model: Runnable[LanguageModelInput, Any], place: Executor) -> GenerateChain:
    """The piece that writes for this place, in its language."""
    prompt = "\n".join([GENERATE_PROMPTS[place.language], *([f"- {place.guidance}"] if place.guidance else [])])
    if place.language == "python":
        return GenerateChain(model=for_code(model), prompt=prompt)
    return GenerateChain(model=model, prompt=prompt, examples=(), language=place.language)


def _resolve_executor(executor: object, limits: Limits | None) -> Executor:
    if isinstance(executor, Executor):
        if limits is not None:
            raise ConfigurationError("limits", limits, "it to the executor itself, or name the executor")
        return executor
    if executor == "sandbox":
        return SandboxExecutor(limits=limits)
    if executor == "none":
        return ProcessExecutor(limits=limits)
    raise ConfigurationError("executor", executor, '"sandbox", "none" (protects nothing), or an Executor')
