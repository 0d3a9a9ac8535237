"""The only place where all parts meet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_classic.base_memory import BaseMemory
from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable
from langchain_core.stores import ByteStore
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from code_chains.analysis.checks import Check
from code_chains.arguments import (
    ExecutorName,
    Snippets,
    Verify,
    answers_store,
    check_arguments,
    check_executor,
    check_iterate,
    check_learn,
    check_models,
    check_schema_only,
    check_switches,
    has_sessions,
    model_name,
    resolve_cache,
    resolve_executor,
    resolve_fallback,
    resolve_memory,
    resolve_prompts,
    resolve_snippets,
    resolve_tools,
    resolve_verifier,
    restarts_on_failed_tests,
)
from code_chains.callbacks.budget import Budget
from code_chains.chains import (
    CachedChain,
    ExecuteChain,
    GenerateChain,
    InterpretChain,
    LanguageChain,
    LearnChain,
    ProfileChain,
    RetrieveChain,
    StreamingSequentialChain,
    StreamingTransformChain,
    TranslateChain,
    ValidateChain,
    WriteTestsChain,
)
from code_chains.chains.base import Chain
from code_chains.chains.evaluate import UNCHECKED
from code_chains.chains.generate import GENERATE_PROMPT, GENERATE_PROMPTS
from code_chains.chains.iterate import ITERATE_EXAMPLES, ITERATE_PROMPT
from code_chains.chains.retrieve import MIN_CURATED_SCORE
from code_chains.chains.solver import Iterate, Plan, create_solver
from code_chains.chains.validate import Approve
from code_chains.chains.verify import ANOTHER_WAY
from code_chains.code_chain import CodeChain
from code_chains.conversations.sessions import Conversations
from code_chains.executors import (
    Executor,
    Limits,
)
from code_chains.executors.backend import SandboxProtocol
from code_chains.models import for_code, resolve_model
from code_chains.models.sampling import can_be_sampled, inner_model
from code_chains.retrieval.store import SnippetStore
from code_chains.state import Execution, Verdict
from code_chains.toolbox import ApproveTools, Toolbox
from code_chains.verification.answer_types import AnswerType

__all__ = ["CodeChain", "answers_store", "create_code_chain"]


def create_code_chain(
    model: str | Runnable[LanguageModelInput, Any],
    *,
    executor: ExecutorName | Executor | SandboxProtocol = "strongest",
    limits: Limits | None = None,
    checks: str | Check | Sequence[Check] = "standard",
    approve: Approve | None = None,
    max_attempts: int = 3,
    samples: int = 1,
    judge: bool | Runnable[LanguageModelInput, Any] = False,
    write_tests: bool = False,
    verify: Verify = False,
    plan: Plan = False,
    snippets: Snippets = False,
    learn: bool = False,
    budget: Budget | None = None,
    schema_only: bool = False,
    answer_type: Any = None,
    profile_files: bool = True,
    find_data: bool = True,
    language: str = "auto",
    instructions: str = "",
    prompts: Mapping[str, str] | None = None,
    translate: bool = False,
    interpret: bool = True,
    memory: BaseMemory | ByteStore | str | Path | bool = True,
    cache: ByteStore | str | Path | bool = False,
    base_url: str | None = None,
    fallback_models: Sequence[str | Runnable[LanguageModelInput, Any]] = (),
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    approve_tools: ApproveTools | None = None,
    repeat_effects: bool = False,
    iterate: Iterate = False,
    max_iterations: int = 8,
    vision: bool | None = None,
) -> CodeChain:
    """Assemble a chain that answers questions with executed code.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` knows, `"local"` for the
            embedded model (no key; downloaded once), `"hf:OWNER/REPO:FILE"` for any GGUF file of the model hub,
            `"gguf:PATH"`, or any chat model.
        executor: Where code runs. By default in the kernel sandbox (`"sandbox"`), or where the system does not let it make
            namespaces, as on macOS, Windows and in most containers, in WebAssembly (`"wasm"`). Others are `"docker"`,
            `"podman"`, `"container"`, `"monty"`, `"sql"`, at a service `"e2b"`, `"modal"`, `"daytona"` (these need an
            extra each), `"none"` (a plain process without protection), an `Executor`, or a sandbox of LangChain's
            protocol, such as those of `langchain-daytona` (see `BackendExecutor`).
        limits: Limits of one run; not with an `Executor`, which has its own.
        checks: Static checks before a program runs: `"standard"` rejects nothing legitimate, `"strict"` adds
            the usual guard rails, `"none"`, or functions from code to problems. They help the model; only the
            executor protects.
        approve: A function, sync or async, that sees each program before it runs (an `ApprovalRequest`). It
            returns True, or False or the reason as text, which is fed back to the model.
        max_attempts: Maximum number of attempts of a model, one after the other. It repairs a program that failed,
            but for `local:0.5b`, which writes a new one after failed tests (see `RepairChain`).
        samples: Number of programs per attempt, of whose outcomes the most common one is selected.
        judge: Whether a model, this one or another, judges outcomes that no test verifies.
        write_tests: Whether the model writes tests first; passing them makes an outcome plausible at most.
        verify: Whether an outcome that nothing else checks is solved again, by two to five further programs, until one
            leads by three: then it is `plausible` (see `VerifyChain`). True for this model at a higher temperature, another
            model for programs of that one, and `"auto"` for True unless that has side effects or means nothing: not with
            tools that have effects, nor with `local:0.5b`, whose programs agree on wrong answers.
        plan: Whether tasks are solved in steps, in one session: `"auto"` if the task describes a sequence of
            actions, True if the model decides so.
        snippets: Examples for the model: True for the curated ones of this package, which `local:0.5b` is not shown, as it
            copies them; a folder of your own, `"package:acme_tax"` for the functions of an installed package, a
            `SnippetStore`, or any LangChain vector store or retriever.
        learn: Whether programs that tests have verified are added to the snippets.
        budget: Limits on spending over the whole life of the chain: once one is reached, every later question ends at
            once. `Budget(…, per="question")` limits each question instead.
        schema_only: Whether the model is sent only the schemas of files, variables and earlier runs (names, sizes, columns,
            types, kinds of errors), and no rows, values or output. The answer is then the program's output.
        answer_type: The type of the value that the program must have: any type that pydantic supports, such as `float`,
            `list[str]`, `date`, a `BaseModel` or a `TypedDict`, or `pandas.DataFrame`. A value of another type is a failed
            attempt; `result["value"]` holds the value, or None if the verdict is `failed`. See `AnswerType`.
        profile_files: Whether the models are told how each file is read and what is in it, found out by a program
            that runs in the executor first; False for names, sizes and first lines alone.
        find_data: Whether tables, JSON and lists of numbers in the text of a question are offered to its program as files
            and variables, with profiles; `pasted` in the result says what was found.
        language: The language of answers and labels of plots: `"auto"` for the question's language, or e.g.
            `"es"`.
        instructions: Rules of your domain, for the model that writes programs and the one that phrases answers.
        prompts: System messages in place of those of `GenerateChain` and `InterpretChain`, as
            `{"generate": …, "interpret": …}`; either may be left out.
        translate: Whether a model translates questions into English first, for models that know it best.
        interpret: Whether a model phrases the answer.
        memory: Where conversations (questions with a `session_id`) are stored: True for this process's
            memory, a path for a persistent SQLite file, a `ByteStore`, a `ConversationMemory`, any classic
            LangChain memory, or False.
        cache: Where verified answers are cached: True for the user's cache folder, a path for an SQLite file,
            or a `ByteStore`. See `CachedChain` for what counts as the same question.
        base_url: Address of an OpenAI-compatible server that serves `model`.
        fallback_models: Models that write programs, one after the other, while the verdict is `failed`, each with
            `max_attempts` and within the same budget: from the cheapest to the strongest. Exceptions of a model
            are not among the reasons; for those LangChain has `with_fallbacks`.
        tools: LangChain tools or typed functions that programs call like functions of their own. They run here, in
            the application, with its rights; only their results enter the sandbox. See `Toolbox`.
        approve_tools: A function, sync or async, that sees each call of a tool before it is made (a `ToolRequest`). It
            returns True, or False or the reason as text, which the program receives.
        repeat_effects: Whether a program may be repaired after it has called a tool that is not marked as read-only.
            By default that ends the work (`stop_reason` is `effects`), unless `approve_tools` decides on each call.
        iterate: Whether the model looks before it computes: it writes one cell after the other, sees what each shows,
            and declares the answer (see `IterateChain`); `"auto"` for questions with files or tables, and for
            open-ended ones.
        max_iterations: Maximum number of such cells.
        vision: Whether the model is shown the figures of its cells; None if its profile says that it accepts images.

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
    check_arguments(
        max_attempts=max_attempts,
        samples=samples,
        max_iterations=max_iterations,
        budget=budget,
        plan=plan,
        approve=approve,
    )
    check_switches(
        write_tests=write_tests,
        learn=learn,
        schema_only=schema_only,
        profile_files=profile_files,
        find_data=find_data,
        translate=translate,
        interpret=interpret,
        repeat_effects=repeat_effects,
    )
    check_iterate(iterate, samples=samples, schema_only=schema_only)
    check_schema_only(schema_only, judge=judge, memory=memory)
    texts = resolve_prompts(prompts, instructions)
    run_executor = resolve_executor(executor, limits)
    toolbox = resolve_tools(tools, approve_tools, run_executor, samples)
    check_executor(
        run_executor,
        write_tests=write_tests,
        plan=plan,
        iterate=iterate,
        checks=checks,
        answer_type=answer_type,
    )
    if not has_sessions(run_executor):  # Both are False or "auto".
        plan = iterate = False
    # A cached answer needs no weights.
    chat_model = resolve_model(model, base_url=base_url, start=not cache)
    validate = ValidateChain(
        "none" if run_executor.language != "python" and checks == "standard" else checks,
        approve=approve,
        language=run_executor.language,
        has_module=None if checks == "none" else run_executor.has_module,
        names=toolbox.program_names if toolbox else (),
    )
    models = {model_name(model, chat_model, {}): chat_model}
    for fallback in check_models(fallback_models):
        other = resolve_fallback(fallback)
        models[model_name(fallback, other, models)] = other
    verifier = resolve_verifier(verify, chat_model, toolbox)
    solve = create_solver(
        {name: _generate(each, run_executor, texts["generate"], toolbox) for name, each in models.items()},
        chat_model,
        run_executor,
        validate,
        max_attempts=max_attempts,
        samples=samples,
        judge=judge,
        plan=plan,
        tools=toolbox,
        sanity_checks=run_executor.language == "python" and checks != "none",
        repeat_effects=repeat_effects or approve_tools is not None,
        write_cells={
            name: _write_cells(each, run_executor, texts["generate"], toolbox)
            for name, each in models.items()
        },
        iterate=iterate,
        max_iterations=max_iterations,
        vision=_accepts_images(chat_model) if vision is None else vision,
        write_again=_write_again(verifier, run_executor, texts["generate"], toolbox) if verifier else (),
        is_independent=verifier is not None and (verifier is not chat_model or can_be_sampled(chat_model)),
        restart_on_failed_tests=[name for name, each in models.items() if restarts_on_failed_tests(each)],
    )
    store = resolve_snippets(snippets, chat_model)
    check_learn(learn, snippets, store)
    stages: list[Chain] = [LanguageChain(language)]
    if translate:
        stages.append(TranslateChain(model=chat_model))
    if store is not None:
        stages.append(_retrieve(store, is_curated=snippets is True))
    if profile_files:
        stages.append(ProfileChain(run_executor))
    if write_tests:
        stages.append(WriteTestsChain(model=for_code(chat_model), validate_tests=validate))
    stages.append(solve)
    if learn and isinstance(store, SnippetStore):
        stages.append(LearnChain(store=store))
    if interpret:
        stages.append(InterpretChain(model=chat_model, models=models, **texts["interpret"]))
    stages = _with_cache(stages, resolve_cache(cache), run_executor)
    return CodeChain(
        chains=stages,
        input_variables=["query"],
        output_variables=_public_keys(stages),
        executor=run_executor,
        owned_executor=None if run_executor is executor else run_executor,
        memory=resolve_memory(memory, "answer" if interpret else "output"),
        budget=budget,
        schema_only=schema_only,
        answer_type=None if answer_type is None else AnswerType(answer_type),
        find_data=find_data and run_executor.language == "python",
        conversations=open_conversations(run_executor),
        user_code_chains=user_code_chains(
            validate.model_copy(update={"approve": None}), run_executor, toolbox
        ),
    )


def user_code_chains(
    validate: ValidateChain, executor: Executor, toolbox: Toolbox | None = None
) -> list[Chain]:
    """Return the stages of a program that answers no question: one that ran is right, even if it shows nothing."""
    evaluate = StreamingTransformChain(
        name="evaluate",
        input_variables=["execution"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": _verdict_on_user_code(state["execution"])},
    )
    return [validate, ExecuteChain(executor, tools=toolbox), evaluate]


def _verdict_on_user_code(execution: Execution) -> Verdict:
    if execution.ok:
        return UNCHECKED
    return Verdict("failed", "none", execution.summary)


def _retrieve(store: VectorStore | Runnable[str, list[Document]], *, is_curated: bool) -> RetrieveChain:
    """Return the chain that retrieves snippets. Invariant: curated ones fit, or are not shown, as models copy them."""
    return RetrieveChain(store, min_score=MIN_CURATED_SCORE if is_curated else None)


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


def open_conversations(executor: Executor) -> Conversations:
    """Return the conversations, with a state if the executor has sessions; a quarter of these is left to others."""
    if not executor.has_sessions:
        return Conversations(None, max_open=sys.maxsize)  # Without a state there is nothing to wait for.
    max_open = max(1, 3 * executor.max_sessions // 4)
    return Conversations(executor.session, max_open=max_open)


def _accepts_images(model: Runnable[LanguageModelInput, Any]) -> bool:
    """Return whether the profile of a model says that it accepts images."""
    profile = getattr(inner_model(model), "profile", None) or {}
    return bool(profile.get("image_inputs"))


def _generate(
    model: Runnable[LanguageModelInput, Any],
    executor: Executor,
    texts: Mapping[str, str],
    toolbox: Toolbox | None,
) -> GenerateChain:
    """Return the chain that writes programs in the executor's language."""
    guidance = [f"- {executor.guidance}"] if executor.guidance else []
    options: dict[str, Any] = {"prompt": "\n".join([GENERATE_PROMPTS[executor.language], *guidance]), **texts}
    if toolbox is not None:
        options["tools"] = toolbox.format_for_model()
    if executor.language == "python":
        return GenerateChain(model=for_code(model), **options)
    return GenerateChain(model=model, examples=(), language=executor.language, **options)


def _write_again(
    model: Runnable[LanguageModelInput, Any],
    executor: Executor,
    texts: Mapping[str, str],
    toolbox: Toolbox | None,
) -> list[GenerateChain]:
    """Return the chains that solve a question again, to verify an outcome: twice as before, then in turn in another way."""
    write = _generate(model, executor, texts, toolbox)
    instructions = "\n".join(filter(None, [write.instructions, ANOTHER_WAY]))
    another = write.model_copy(update={"instructions": instructions})
    return [write, write, another, write, another]


def _write_cells(
    model: Runnable[LanguageModelInput, Any],
    executor: Executor,
    texts: Mapping[str, str],
    toolbox: Toolbox | None,
) -> GenerateChain:
    """Return the chain that writes the cells of an iteration."""
    write = _generate(model, executor, texts, toolbox)
    prompt = texts.get("prompt") or write.prompt.replace(GENERATE_PROMPT, ITERATE_PROMPT)
    return write.model_copy(update={"name": "write_cell", "prompt": prompt, "examples": ITERATE_EXAMPLES})
