"""`create_code_chain`: the only place where all parts meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from langchain_core.runnables import Runnable
from langchain_core.stores import ByteStore

from code_chains import chains
from code_chains.assembly.arguments import (
    GivenCache,
    GivenChecks,
    GivenMemory,
    GivenTools,
    Settings,
    Source,
    as_snippets,
    as_validate,
    check_answer_type,
    check_budget,
    check_memory,
    check_names,
    open_snippets,
    resolve_cache,
    resolve_data,
    resolve_language,
    resolve_memory,
    resolve_prompts,
    resolve_tools,
    resolve_validate,
)
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.parts import Model, Parts
from code_chains.assembly.settings import Data, Language, Prompts, Snippets, SnippetsSource
from code_chains.assembly.solvers import Plan, Repair, Solver, resolve_solver
from code_chains.assembly.verifiers import Verifier, resolve_verifiers, with_defaults
from code_chains.callbacks.budget import Budget
from code_chains.chains.base import Chain, State, StreamingSequentialChain
from code_chains.chains.detect_language import LanguageChain
from code_chains.chains.execute import user_code_chains
from code_chains.chains.validate import ValidateChain
from code_chains.errors import check_bool
from code_chains.executors import Executor, Limits
from code_chains.executors.registry import resolve_executor
from code_chains.state import Verdict

if TYPE_CHECKING:
    from code_chains.assembly.arguments import GivenExecutor
    from code_chains.retrieval.store import SnippetStore

__all__ = ["CodeChain", "create_code_chain"]
_P = ParamSpec("_P")


def _with_known_names(create: Callable[_P, CodeChain]) -> Callable[_P, CodeChain]:
    """Let a function name what to pass for a keyword that it does not have."""

    @wraps(create)
    def call(*args: _P.args, **given: _P.kwargs) -> CodeChain:
        check_names(given)
        return create(*args, **given)

    return call


@_with_known_names
def create_code_chain(
    model: str | Model,
    *,
    executor: GivenExecutor = "strongest",
    limits: Limits | None = None,
    checks: GivenChecks = "standard",
    solve: Solver | Chain = Repair(),  # noqa: B008 - It is frozen.
    verify: Sequence[Verifier | Chain | Callable[[State], Verdict | None]] = (),
    tools: GivenTools = (),
    snippets: SnippetsSource | Snippets = False,
    data: Data = Data(),  # noqa: B008 - It is frozen.
    answer_type: Any = None,
    language: str | Language = "auto",
    instructions: str | Prompts = "",
    interpret: bool = True,
    memory: GivenMemory = True,
    cache: GivenCache = False,
    budget: Budget | None = None,
) -> CodeChain:
    """Assemble a chain that answers questions with executed code.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` knows, `"local"` for the
            embedded model (no key; downloaded once), `"hf:OWNER/REPO:FILE"` for any GGUF file of the model hub,
            `"gguf:PATH"`, or any chat model, such as `ChatOpenAI(base_url=…)` of a server of your own.
        executor: Where code runs. By default in the kernel sandbox (`"sandbox"`), or in WebAssembly (`"wasm"`) where neither
            namespaces nor Landlock are available, as on macOS and Windows. Others are `"docker"`,
            `"podman"`, `"monty"`, `"sql"`, at a service `"e2b"`, `"modal"`, `"daytona"` (these need an
            extra each), `"none"` (a plain process without protection), an `Executor`, a function of the code (see
            `FunctionExecutor`), or a sandbox of LangChain's protocol, such as those of `langchain-daytona`.
        limits: Limits of one run; not with an `Executor`, which has its own.
        checks: Static checks before a program runs: `"standard"` rejects nothing legitimate, `"strict"` adds
            the usual guard rails, `"none"`, or functions from code to problems. They help the model; only the
            executor protects. `ValidateChain(approve=…)` also has somebody approve each program.
        solve: How a question is solved: `Repair(3)` with up to three attempts, `Repair(samples=5)` with a vote,
            `Iterate()` cell by cell, `Plan()` in steps, `Escalate([…])` with further models, or a chain of your own.
        verify: What verifies outcomes that no given test decides, tried in order until one decides: `GeneratedTests()`,
            `Judge()`, `Answerability()`, `Agreement()`, a chain to `verdict`, or a function from the state to a
            `Verdict` or None.
        tools: LangChain tools or typed functions that programs call like functions of their own. They run here, in
            the application, with its rights; only their results enter the sandbox. `Toolbox([…], approve=…)` has
            somebody approve each call.
        snippets: Examples for the model: True for the curated ones of this package, a folder of your own,
            `"package:acme_tax"`, a `SnippetStore`, a vector store or retriever; see `Snippets`, which also learns.
        data: What models are told of files, variables and pasted tables; `Data(schema_only=True)` keeps rows, values and
            output from them.
        answer_type: The type of the value that the program must have: any type that pydantic supports, such as `float`,
            `list[str]`, `date`, a `BaseModel` or a `TypedDict`, or `pandas.DataFrame`. A value of another type is a failed
            attempt; `result["value"]` holds the value, or None if the verdict is `failed`. See `AnswerType`.
        language: The language of answers and labels of plots: `"auto"` for the question's language, or e.g.
            `"es"`; `Language("es", translate=True)` also translates questions into English for the model.
        instructions: Rules of your domain, for the model that writes programs and the one that phrases answers;
            `Prompts(…)` replaces their system messages as well.
        interpret: Whether a model phrases the answer.
        memory: Where conversations (questions with a `session_id`) are stored: True for this process's
            memory, a path for a persistent SQLite file, a `ByteStore`, a `ConversationMemory`, any classic
            LangChain memory, or False.
        cache: Where answers are cached, verified or not: True for the user's cache folder, a path for an SQLite file,
            or a `ByteStore`. See `CachedChain` for what counts as the same question.
        budget: Limits on spending over the whole life of the chain: once one is reached, every later question ends at
            once. `Budget(…, per="question")` limits each question instead.

    Returns:
        A chain from `{"query": …}`, and optionally `files`, `variables`, `tests`, `examples`, `context`, `history`,
        `language`, and `session_id` (the name of a conversation) or `session` (an open session of the executor), to a dict
        with `code`, `output`, `verdict`, `attempts`, `stop_reason`, `usage`, `answer` and more; with an `answer_type` also
        `value`.

    Raises:
        ConfigurationError: An argument is invalid; the message names it and the remedy.
        IsolationError: The sandbox is not available on this machine.
        WeightsError: The embedded model cannot be downloaded or loaded.

    Example:
        >>> from code_chains.testing import ScriptedModel, asks_for_code
        >>> model = ScriptedModel(lambda messages: "sum(range(1, 6))" if asks_for_code(messages) else "It is 15.")
        >>> with create_code_chain(model) as chain:
        ...     chain.invoke({"query": "What is the sum of the numbers from 1 to 5?"})["answer"]
        'It is 15.'
    """
    check_budget(budget)
    check_bool("interpret", interpret)
    settings = Settings(
        model=model,
        named=model,
        executor=executor,
        limits=limits,
        checks=checks,
        solve=resolve_solver(solve),
        verify=resolve_verifiers(verify),
        tools=tools,
        snippets=as_snippets(snippets),
        data=resolve_data(data),
        answer_type=answer_type,
        language=resolve_language(language),
        instructions=resolve_prompts(instructions),
        interpret=interpret,
        memory=memory,
        cache=cache,
        budget=budget,
    )
    return _assemble(settings)


def _assemble(settings: Settings) -> CodeChain:
    """Return the chain of these settings."""
    from code_chains.conversations.sessions import open_conversations
    from code_chains.verification.values.answer_types import AnswerType

    data, prompts, snippets = settings.data, settings.instructions, settings.snippets
    check_memory(settings.memory, data)
    executor = resolve_executor(settings.executor, settings.limits)
    toolbox = resolve_tools(settings.tools, executor)
    checks = as_validate(settings.checks)
    validate = resolve_validate(checks, executor, toolbox)
    check_answer_type(settings.answer_type, executor)
    parts = Parts(
        settings.model,
        executor,
        validate,
        toolbox,
        settings.verify,
        generate_options=prompts.options("generate"),
        sanity_checks=executor.language in ("python", "sql") and bool(checks.checks),
        schema_only=data.schema_only,
        words=prompts.words,
        starts_model=not settings.cache,  # A cached answer needs no weights.
    )
    settings.solve.check(parts)
    for verifier in settings.verify:
        verifier.check(parts)
    parts.name_model(settings.named, parts.model)
    parts.verifiers = with_defaults(settings.verify)
    source = open_snippets(snippets, parts.model, executor)
    parts.references = _references(source)
    answers = resolve_cache(settings.cache)
    stages = _with_cache(_stages(settings, parts, source), answers, executor)
    resolved = replace(
        settings,
        model=parts.model,
        executor=executor,
        limits=None,
        cache=answers or False,
        memory=False,
        checks=validate,
        snippets=snippets if snippets.source is True else replace(snippets, source=source or False),
    )
    return CodeChain(
        chains=stages,
        input_variables=["query"],
        # Invariant: no output is an input of the next question, to which a graph or an app may pass the whole state.
        output_variables=[key for key in _public_keys(stages) if key not in ("language", "context")],
        executor=executor,
        owned_executor=None if executor is settings.executor else executor,
        memory=resolve_memory(settings.memory, "answer" if settings.interpret else "output"),
        budget=settings.budget,
        schema_only=data.schema_only,
        answer_type=None if settings.answer_type is None else AnswerType(settings.answer_type),
        find_data=data.paste and executor.language == "python",
        conversations=open_conversations(executor),
        model_name=next(iter(parts.models)),
        rebuild=partial(_rebuilt, resolved),
        user_code_chains=user_code_chains(validate.model_copy(update={"approve": None}), executor, toolbox),
    )


def _stages(settings: Settings, parts: Parts, source: Source | None) -> list[Chain]:
    """Return the chains of a question, in order."""
    stages: list[Chain] = [LanguageChain(settings.language.name)]
    # Curated snippets are hints of methods, which are not worth a call.
    has_own = settings.snippets.source is not True and _searches_by_text(source)
    if settings.language.translate or isinstance(settings.solve, Plan) or has_own:
        stages.append(chains.CondenseChain(model=parts.model))
    if settings.language.translate:
        stages.append(chains.TranslateChain(model=parts.model))
    if source is not None:
        stages.append(_retrieve(source, is_curated=settings.snippets.source is True))
    if settings.data.profile:
        stages.append(chains.ProfileChain(parts.executor))
    stages += filter(None, [verifier.before(parts) for verifier in settings.verify])
    stages.append(settings.solve.build_verified(parts))
    if settings.snippets.learn and parts.references is not None:
        stages.append(chains.LearnChain(store=parts.references))
    if settings.interpret:
        options = settings.instructions.options("interpret")
        stages.append(chains.InterpretChain(model=parts.model, models=parts.models, **options))
    return stages


def _searches_by_text(source: Source | None) -> bool:
    """Return whether a source is asked with the question alone, which it does not understand in its conversation."""
    if source is None:
        return False
    from code_chains.chains.retrieve import takes_history

    return not (isinstance(source, Runnable) and takes_history(source))


def _retrieve(source: Source, *, is_curated: bool) -> Chain:
    """Return the chain that retrieves examples."""
    from code_chains.chains.retrieve import MIN_CURATED_SCORE, RetrieveChain

    # Invariant: curated ones fit, or are not shown, as models copy them.
    return RetrieveChain(source, min_score=MIN_CURATED_SCORE if is_curated else None)


def _references(source: Source | None) -> SnippetStore | None:
    """Return where to look up how functions are called."""
    if source is None:
        return None
    from code_chains.retrieval.store import SnippetStore

    return source if isinstance(source, SnippetStore) else None


def _rebuilt(settings: Settings, options: Mapping[str, Any]) -> CodeChain:
    """Return a chain that differs from another one in the options of a question."""
    changed = settings
    if "language" in options:
        changed = replace(changed, language=resolve_language(options["language"]))
    if "instructions" in options:
        changed = replace(changed, instructions=resolve_prompts(options["instructions"]))
    if "verify" in options:
        changed = replace(changed, verify=resolve_verifiers(options["verify"]))
    if "budget" in options:
        check_budget(options["budget"])
        changed = replace(changed, budget=options["budget"])
    if "max_attempts" in options:
        changed = replace(changed, solve=settings.solve.with_attempts(options["max_attempts"]))
    if "limits" in options:
        assert isinstance(settings.executor, Executor)
        changed = replace(changed, executor=settings.executor.with_limits(options["limits"]))
    checks = options.get("checks", settings.checks)
    if not isinstance(checks, ValidateChain) or "approve" in options:
        policy = checks.checks if isinstance(checks, ValidateChain) else checks
        was = settings.checks.approve if isinstance(settings.checks, ValidateChain) else None
        checks = ValidateChain(policy, approve=options.get("approve", was))
    return _assemble(replace(changed, checks=checks))


def _with_cache(stages: list[Chain], answers: ByteStore | None, executor: Executor) -> list[Chain]:
    """Return the stages, behind a cache if there is one."""
    if answers is None:
        return stages
    added = _public_keys(stages)
    inner = StreamingSequentialChain(
        chains=stages, input_variables=["query"], output_variables=added, name="answer"
    )
    return [chains.CachedChain(inner, store=answers, repeatable=executor.is_repeatable)]


def _public_keys(stages: Sequence[Chain]) -> list[str]:
    """Return the keys that stages add to the result; profiles are for models alone."""
    return [key for stage in stages for key in stage.output_keys if key != "profiles"]
