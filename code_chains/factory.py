"""The only place where all parts meet."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence as Several
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.chains import (
    EvaluateChain,
    ExecuteChain,
    GenerateChain,
    InterpretChain,
    RepairChain,
    Sequence,
    ValidateChain,
)
from code_chains.chains.base import Config, Do, Memory, Program, State
from code_chains.chains.generate import GENERATE_PROMPTS
from code_chains.checks import Check
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors import Executor, Limits, ProcessExecutor, SandboxExecutor
from code_chains.executors.base import Closing
from code_chains.models import for_code, resolve_model
from code_chains.usage import UsageMeter

__all__ = ["CodeChain", "create_code_chain"]

_KEPT = ("code", "problems", "execution", "output", "verdict")


class CodeChain(Sequence, Closing):
    """The assembled chain, made by `create_code_chain`: a question in, the story of its answer out.

    Reads `query` and, where given, `files`, `variables`, `context` and `history`. Adds `code`, `problems`, `execution`,
    `output`, `verdict`, `attempts`, `answer` (unless it was made with `interpret=False`) and `usage`.

    It is a context manager: leaving it closes the executor that was made for it.
    """

    name: str | None = "code_chain"
    place: Executor | None = None
    owned: Executor | None = None

    @property
    def output_keys(self) -> list[str]:
        """What the stages add, and what was spent."""
        return [*self.output_variables, "usage"]

    def _program(self, values: State, config: Config) -> Program:
        meter = UsageMeter()
        if self.place:
            yield Do(_warm, self.place, config)  # It gets ready while the model thinks.
        yield from super()._program(values, {**config, "callbacks": _with(config.get("callbacks"), meter)})
        yield {"usage": meter.usage}

    def close(self) -> None:
        """Give back what the executor made for this chain holds; one that was passed in stays open."""
        if self.owned:
            self.owned.close()


def _warm(place: Executor) -> None:
    with contextlib.suppress(ExecutorError):  # Running will tell.
        place.warm()


def _with(callbacks: Any, handler: BaseCallbackHandler) -> Any:
    """Callbacks with one more handler, for this run and all below it."""
    if isinstance(callbacks, CallbackManager | AsyncCallbackManager):
        callbacks = callbacks.copy()
        callbacks.add_handler(handler, inherit=True)
        return callbacks
    return [*(callbacks or []), handler]


def create_code_chain(
    model: str | Runnable[LanguageModelInput, Any],
    *,
    executor: Literal["sandbox", "none"] | Executor = "sandbox",
    limits: Limits | None = None,
    checks: str | Check | Several[Check] = "standard",
    max_attempts: int = 3,
    interpret: bool = True,
    memory: Memory | None = None,
    base_url: str | None = None,
) -> CodeChain:
    """Assemble a chain that answers questions with executed code.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` knows, `"local"` for the embedded model
            (no key, fetched once), `"gguf:PATH"`, or any chat model.
        executor: Where code runs: `"sandbox"`, `"none"` (a plain process: protects nothing), or an `Executor`.
        limits: What one run may use; only for an executor given by name.
        checks: What reads the code before it runs: `"standard"`, `"none"`, or functions from code to problems.
        max_attempts: How often a program is asked for at most.
        interpret: Whether a model tells the answer in words.
        memory: A classic LangChain memory; what it loads as `history` is shown to the model.
        base_url: Address of an OpenAI-compatible server that has the model.

    Returns:
        A chain from `{"query": …}` to a dict with `code`, `output`, `verdict`, `answer` and more.

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
    if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
        raise ConfigurationError("max_attempts", max_attempts, "a whole number, at least 1")
    if memory is not None and not isinstance(memory, Memory):
        raise ConfigurationError("memory", memory, "a LangChain memory, e.g. ConversationBufferMemory(...)")
    place = _resolve_executor(executor, limits)
    validate = ValidateChain("none" if place.language != "python" and checks == "standard" else checks)
    chat = resolve_model(model, base_url=base_url)
    attempt = Sequence(
        chains=[_generate(chat, place), validate, ExecuteChain(place), EvaluateChain()],
        input_variables=["query"],
        output_variables=list(_KEPT),
        name="attempt",
    )
    stages: list[Any] = [RepairChain(attempt=attempt, max_attempts=max_attempts)]
    added = [*_KEPT, "attempts"]
    if interpret:
        stages.append(InterpretChain(model=chat))
        added.append("answer")
    owned = None if place is executor else place
    return CodeChain(
        chains=stages, input_variables=["query"], output_variables=added, place=place, owned=owned, memory=memory
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
