"""`create_code_chain`: the only place where all parts meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from langchain_classic.base_memory import BaseMemory
from langchain_core.stores import ByteStore
from langchain_core.tools import BaseTool

from code_chains.analysis.checks import Check
from code_chains.arguments import (
    ExecutorName,
    check_answer_type,
    check_budget,
    check_memory,
    resolve_cache,
    resolve_data,
    resolve_executor,
    resolve_language,
    resolve_memory,
    resolve_prompts,
    resolve_snippets,
    resolve_tools,
    resolve_validate,
)
from code_chains.callbacks.budget import Budget
from code_chains.chains import (
    CachedChain,
    InterpretChain,
    LanguageChain,
    LearnChain,
    ProfileChain,
    RetrieveChain,
    StreamingSequentialChain,
    TranslateChain,
    ValidateChain,
)
from code_chains.chains.base import Chain, State
from code_chains.chains.retrieve import MIN_CURATED_SCORE
from code_chains.chains.user_code import user_code_chains
from code_chains.code_chain import CodeChain
from code_chains.conversations.sessions import open_conversations
from code_chains.errors import check_bool
from code_chains.executors import Executor, Limits
from code_chains.executors.remote.backend import SandboxProtocol
from code_chains.parts import Model, Parts
from code_chains.retrieval.store import SnippetStore
from code_chains.settings import Data, Language, Prompts, Snippets, SnippetsSource
from code_chains.solvers import Repair, Solver, resolve_solver
from code_chains.state import Verdict
from code_chains.toolbox import Toolbox
from code_chains.verification.values.answer_types import AnswerType
from code_chains.verifiers import Verifier, doubting_first, resolve_verifiers

__all__ = ["CodeChain", "create_code_chain"]


def create_code_chain(
    model: str | Model,
    *,
    executor: ExecutorName | Executor | SandboxProtocol | Callable[[str], Any] = "strongest",
    limits: Limits | None = None,
    checks: str | Check | Sequence[Check] | ValidateChain = "standard",
    solve: Solver | Chain = Repair(),  # noqa: B008 - It is frozen.
    verify: Sequence[Verifier | Chain | Callable[[State], Verdict | None]] = (),
    tools: Toolbox | Sequence[BaseTool | Callable[..., Any]] = (),
    snippets: SnippetsSource | Snippets = False,
    data: Data = Data(),  # noqa: B008 - It is frozen.
    answer_type: Any = None,
    language: str | Language = "auto",
    instructions: str | Prompts = "",
    interpret: bool = True,
    memory: BaseMemory | ByteStore | str | Path | bool = True,
    cache: ByteStore | str | Path | bool = False,
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
        cache: Where verified answers are cached: True for the user's cache folder, a path for an SQLite file,
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
    return _assemble(dict(locals()), model)


def _assemble(given: Mapping[str, Any], name: str | Model) -> CodeChain:
    """Return the chain of these arguments; its model is recorded under a name."""
    executor, interpret, budget = given["executor"], given["interpret"], given["budget"]
    check_budget(budget)
    check_bool("interpret", interpret)
    data = resolve_data(given["data"])
    solver, verifiers = resolve_solver(given["solve"]), resolve_verifiers(given["verify"])
    spoken, prompts = resolve_language(given["language"]), resolve_prompts(given["instructions"])
    check_memory(given["memory"], data)
    run_executor = resolve_executor(executor, given["limits"])
    toolbox = resolve_tools(given["tools"], run_executor)
    validate = resolve_validate(given["checks"], run_executor, toolbox)
    answer_type = given["answer_type"]
    check_answer_type(answer_type, run_executor)
    parts = Parts(
        given["model"],
        run_executor,
        validate,
        toolbox,
        verifiers,
        generate_options=prompts.options("generate"),
        sanity_checks=run_executor.language == "python" and bool(validate.checks),
        schema_only=data.schema_only,
        starts_model=not given["cache"],  # A cached answer needs no weights.
    )
    solver.check(parts)
    for verifier in verifiers:
        verifier.check(parts)
    parts.name_model(name, parts.model)
    parts.verifiers = doubting_first(verifiers)
    store, shown = resolve_snippets(given["snippets"], parts.model, run_executor)
    parts.references = store if isinstance(store, SnippetStore) else None
    answers = resolve_cache(given["cache"])
    stages: list[Chain] = [LanguageChain(spoken.name)]
    if spoken.translate:
        stages.append(TranslateChain(model=parts.model))
    if store is not None:
        # Invariant: curated ones fit, or are not shown, as models copy them.
        min_score = MIN_CURATED_SCORE if shown.source is True else None
        stages.append(RetrieveChain(store, min_score=min_score))
    if data.profile:
        stages.append(ProfileChain(run_executor))
    stages += filter(None, [verifier.before(parts) for verifier in verifiers])
    stages.append(solver.build_verified(parts))
    if shown.learn and isinstance(store, SnippetStore):
        stages.append(LearnChain(store=store))
    if interpret:
        stages.append(InterpretChain(model=parts.model, models=parts.models, **prompts.options("interpret")))
    stages = _with_cache(stages, answers, run_executor)
    kept = {
        **given,
        "model": parts.model,
        "executor": run_executor,
        "limits": None,
        "cache": answers,
        "memory": False,
        "checks": validate,
        "solve": solver,
        "snippets": shown if shown.source is True else replace(shown, source=store or False),
    }
    return CodeChain(
        chains=stages,
        input_variables=["query"],
        # Invariant: no output is an input of the next question, to which a graph or an app may pass the whole state.
        output_variables=[key for key in _public_keys(stages) if key not in ("language", "context")],
        executor=run_executor,
        owned_executor=None if run_executor is executor else run_executor,
        memory=resolve_memory(given["memory"], "answer" if interpret else "output"),
        budget=budget,
        schema_only=data.schema_only,
        answer_type=None if answer_type is None else AnswerType(answer_type),
        find_data=data.paste and run_executor.language == "python",
        conversations=open_conversations(run_executor),
        model_name=next(iter(parts.models)),
        rebuild=partial(_rebuilt, kept, name),
        user_code_chains=user_code_chains(
            validate.model_copy(update={"approve": None}), run_executor, toolbox
        ),
    )


def _rebuilt(kept: Mapping[str, Any], name: str | Model, options: Mapping[str, Any]) -> CodeChain:
    """Return a chain that differs from another one in some options."""
    given = {**kept, **options}
    if "max_attempts" in options:
        given["solve"] = kept["solve"].with_attempts(options["max_attempts"])
    if "limits" in options:
        given |= {"executor": kept["executor"].with_limits(options["limits"]), "limits": None}
    validate, approve = given["checks"], options.get("approve", kept["checks"].approve)
    if not isinstance(validate, ValidateChain) or "approve" in options:
        checks = validate.checks if isinstance(validate, ValidateChain) else validate
        given["checks"] = ValidateChain(checks, approve=approve)
    return _assemble(given, name)


def _with_cache(stages: list[Chain], answers: ByteStore | None, executor: Executor) -> list[Chain]:
    """Return the stages, behind a cache if there is one."""
    if answers is None:
        return stages
    added = _public_keys(stages)
    inner = StreamingSequentialChain(
        chains=stages, input_variables=["query"], output_variables=added, name="answer"
    )
    return [CachedChain(inner, store=answers, repeatable=executor.is_repeatable)]


def _public_keys(stages: Sequence[Chain]) -> list[str]:
    """Return the keys that stages add to the result; profiles are for models alone."""
    return [key for stage in stages for key in stage.output_keys if key != "profiles"]
