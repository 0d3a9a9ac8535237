"""The assembled chain: a question in, the answer and how it came about out, in a conversation if it has a name."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Optional, Self

from langchain_core.runnables import ConfigurableFieldSpec
from langchain_core.runnables.utils import AnyConfigurableField, get_unique_config_specs
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, PrivateAttr, create_model, model_validator

from code_chains.analysis.work import is_brief
from code_chains.assembly.conversing import ALIASES, ConversingChain
from code_chains.assembly.options import check_fields, chosen_options, spec_of
from code_chains.assembly.question import (
    add_handlers,
    checked_inputs,
    enforcing_handlers,
    import_ahead,
    own_prices,
    user_code_inputs,
    warm_up,
)
from code_chains.callbacks.budget import Budget
from code_chains.callbacks.deadlines import RequestTimeout
from code_chains.callbacks.runs import AGENT_NAME
from code_chains.callbacks.usage import UsageMeter
from code_chains.chains.base import Chain, Config, Flow, RunFunction, State
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors import Executor, Limits
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.runner import Closing
from code_chains.executors.waiting import drive
from code_chains.inputs import Paste, files_with, find_data, shortened
from code_chains.verification.values.answer_types import AnswerType

if TYPE_CHECKING:
    from code_chains.state import CodeChunk, CodeResult

QUESTION_DESCRIPTION = (
    "Answers a question by writing a Python program and running it in a sandbox. For whatever is better computed than "
    "guessed: arithmetic, dates, text, tables, statistics, simulations, plots."
)
"""What models are told of a chain that answers questions."""
_MAX_TEXT_CHARS = 20_000


class CodeChain(ConversingChain, Closing):
    """The assembled chain, made by `create_code_chain`: a question in, the answer and how it came about out.

    Reads `query` and, if present, `files`, `variables`, `tests`, `examples`, `session_id` (the name of a conversation) or
    `session` (an open session of the executor), `language`, `context` and `history`.
    Adds `language`, `programs`, `stdout`, `code`, `problems`, `execution`, `output`, `verdict`, `attempts`,
    `stop_reason`, `answer` (unless made with `interpret=False`) and `usage`; `sources`, `translation` and
    `learned` if these stages are enabled; `pasted` with `find_data`; `value` with an `answer_type`.

    It is a context manager: leaving it closes the executor that was made for it.
    """

    name: str | None = "code_chain"
    executor: Executor | None = None
    owned_executor: Executor | None = None
    budget: Budget | None = None
    request_timeout: float | None = None
    """Seconds of a request to a model, with all that it streams."""
    answer_type: AnswerType | None = None
    find_data: bool = False
    """Whether data that is pasted into a question is offered to programs as files and variables."""
    user_code_chains: list[Chain] = Field(default_factory=list)
    """Stages of a program that a user wrote."""
    model_name: str = ""
    """The model that writes programs, as records of attempts name it."""
    rebuild: Callable[[Mapping[str, Any]], CodeChain] | None = None
    """Makes a chain that differs in options."""
    configured: dict[str, AnyConfigurableField] = Field(default_factory=dict)
    """Under which names a config sets options, besides their own; see `configurable_fields`."""
    _with_limits: dict[Limits, CodeChain] = PrivateAttr(default_factory=dict)
    _limiter: ConcurrencyLimiter = PrivateAttr(
        default_factory=lambda: ConcurrencyLimiter(sys.maxsize, 0, 0.0)
    )
    """Counts running questions, without a limit."""

    if TYPE_CHECKING:  # The same methods; what is added are the types of a result's keys.

        def invoke(
            self,
            input: Any,  # noqa: A002
            config: Config | None = None,
            **kwargs: Any,
        ) -> CodeResult:
            """Answer a question; return inputs and outputs in one dict."""

        async def ainvoke(
            self,
            input: Any,  # noqa: A002
            config: Config | None = None,
            **kwargs: Any,
        ) -> CodeResult:
            """Like `invoke`."""

        def stream(
            self,
            input: Any,  # noqa: A002
            config: Config | None = None,
            **kwargs: Any,
        ) -> Iterator[CodeChunk]:
            """Answer a question; yield the keys of what `invoke` returns as they come."""

        def astream(
            self,
            input: Any,  # noqa: A002
            config: Config | None = None,
            **kwargs: Any,
        ) -> AsyncIterator[CodeChunk]:
            """Like `stream`."""

    @model_validator(mode="after")
    def _name_agent(self) -> Self:
        """Let tracers know that runs of this chain answer questions; a program of a user is none."""
        if "code" not in self.input_variables:
            self.metadata: dict[str, Any] | None = {AGENT_NAME: self.get_name(), **(self.metadata or {})}
        return self

    @property
    def optional_keys(self) -> list[str]:
        """Optional keys of the stages, and the name of a conversation."""
        return [*(key for key in super().optional_keys if key != "answer_type"), "session_id"]

    @property
    def output_keys(self) -> list[str]:
        """Keys that the stages add, the usage, and with an `answer_type` the value."""
        has_value = {"value": self.answer_type is not None, "pasted": self.find_data}
        has_value |= {"notes": "notes" not in self.output_variables}
        has_value |= {"answer_language": any("language" in chain.output_keys for chain in self.chains)}
        return [
            *self.output_variables,
            "usage",
            "receipt",
            *(key for key, is_added in has_value.items() if is_added),
        ]

    def _select_outputs(self, chunk: State) -> State:
        language = {"answer_language": chunk["language"]} if "language" in chunk else {}
        return {**super()._select_outputs(chunk), **language}

    def configurable_fields(self, **fields: AnyConfigurableField) -> CodeChain:
        """Return the chain with options that a config may set, by names of one's own.

        Raises:
            ConfigurationError: A field is no option of a question.
        """
        check_fields(fields)
        return self.model_copy(update={"configured": {**self.configured, **fields}})

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What a server passes on from its clients: the `session_id`, and options with names of one's own."""
        specs = itertools.starmap(spec_of, self.configured.items())
        return get_unique_config_specs([*super().config_specs, *specs])

    def get_input_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it reads, with their types, also under the names that LangChain has for them."""
        schema = super().get_input_schema(config)
        aliases: dict[str, Any] = dict.fromkeys(ALIASES, (Any, None))
        return create_model(schema.__name__, __base__=schema, **aliases)

    def get_output_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it adds, with their types; that of the value is the `answer_type`."""
        schema = super().get_output_schema(config)
        if self.answer_type is None:
            return schema
        value: Any = (Optional[self.answer_type.annotation], ...)  # noqa: UP045 - `|` takes no text
        return create_model(schema.__name__, __base__=schema, value=value)

    def _flow(self, values: State, config: Config) -> Flow:
        drive(self._limiter.acquire())
        try:
            options = chosen_options(self.configured)
            if self.rebuild is None or not options:
                return (yield from self._answer_question(values, config))
            return (yield from self._answer_as(options, values, config))
        finally:
            self._limiter.release()

    def _answer_as(self, options: State, values: State, config: Config) -> Flow:
        """Answer with other options, in the same conversations."""
        if "limits" in options and self._is_turn(values):
            raise InputError("The limits of a conversation are those of its session. Leave 'limits' out.")
        other = yield RunFunction(self._with_options, options, config)
        outcome = yield from other._answer_question(values, config)
        if missing := set(self.output_keys) - set(other.output_keys):
            yield dict.fromkeys(missing)
        return outcome

    def _with_options(self, options: State) -> CodeChain:
        """Return a chain with other options. Those with limits of their own are kept for their sandboxes."""
        assert self.rebuild is not None
        if (limits := options.pop("limits", None)) is not None:
            if limits not in self._with_limits:
                self._with_limits[limits] = self.rebuild({"limits": limits})
            other = self._with_limits[limits]
            return other._with_options(options) if options else other
        other = self.rebuild(options)
        share_conversations(self, other)
        return other

    def _answer_question(self, values: State, config: Config) -> Flow:
        meter = UsageMeter(own_prices(self.budget, config))
        check = partial(
            checked_inputs,
            executor=self.executor,
            schema_only=self.schema_only,
            answer_type=self.answer_type,
        )
        values = yield RunFunction(check, values, config, inline=is_brief(str(values.get("tests") or "")))
        if self.executor is not None:
            yield RunFunction(warm_up, self.executor, config)  # In parallel to the first model call.
        config = {
            **config,
            "callbacks": add_handlers(
                config.get("callbacks"),
                [
                    meter,
                    *enforcing_handlers(self.executor, self.budget, config),
                    *([RequestTimeout(self.request_timeout)] if self.request_timeout else []),
                ],
            ),
        }
        yield RunFunction(import_ahead, None, config, inline=import_ahead.cache_info().currsize > 0)
        inline = is_brief(str(values["query"]))
        paste = (yield RunFunction(find_data, values, config, inline=inline)) if self.find_data else None
        # Bytes and open files are written once, for all stages.
        with files_on_disk(files_with(values, paste)) as files:
            values |= {"files": files} if files else {}
            values |= {"paste": paste}
            run_stages = partial(self._run_stages, config=config, meter=meter)
            if self._is_turn(values) and self.conversations is not None:
                yield from self._turn(self.conversations, values, config, run_stages)
            else:
                yield from run_stages(values)

    def _run_stages(self, values: State, config: Config, meter: UsageMeter) -> Flow:
        from code_chains.receipts import create_receipt

        values = dict(values)
        paste: Paste | None = values.pop("paste")
        question = values["query"]
        if paste is not None:
            values |= {
                "query": paste.task,
                "variables": {**(values.get("variables") or {}), **paste.variables},
            }
        outcome = yield from super()._flow(values, config)
        if self.answer_type is not None:
            from code_chains.chains.answer_value import find_value

            yield {"value": (yield RunFunction(find_value, {**values, **outcome}, config))}
        if self.find_data:
            yield {"pasted": list(paste.found) if paste else []}
        if "notes" not in self.output_variables:
            yield {"notes": []}
        language = self.executor.language if self.executor is not None else "python"
        limits = self.executor.limits if self.executor is not None else None
        # Data that is pasted stays in the question: without it nobody could run the program again.
        write = partial(create_receipt, values | {"query": question}, language=language, limits=limits)
        yield {"receipt": (yield RunFunction(write, outcome, config)).to_dict()}
        yield {"usage": meter.usage}
        return outcome

    def execute(
        self,
        code: str,
        session_id: str | None = None,
        *,
        query: str = "",
        files: Mapping[str, Any] | None = None,
    ) -> CodeResult:
        """Run a program of your own, without a model, as a turn of a conversation if one is named.

        The program is checked and run like a model's program, but not fixed, repaired or approved. If it
        succeeds, the next question builds on it.

        Args:
            code: The program.
            session_id: The conversation; None for a program on its own.
            query: The purpose of the program, as the turn's question.
            files: Paths, bytes or open binary files by their names in the working directory.

        Returns:
            The inputs with `problems`, `execution`, `output`, `verdict` and `usage`.

        Raises:
            InputError: The program is empty, or another input is invalid.
            ConfigurationError: This chain was not made by `create_code_chain`.
        """
        return self.user_code_chain().invoke(user_code_inputs(code, session_id, query, files))

    async def aexecute(
        self,
        code: str,
        session_id: str | None = None,
        *,
        query: str = "",
        files: Mapping[str, Any] | None = None,
    ) -> CodeResult:
        """Like `execute`, without blocking the event loop."""
        return await self.user_code_chain().ainvoke(user_code_inputs(code, session_id, query, files))

    def user_code_chain(self) -> CodeChain:
        """Return the chain for programs that a person wrote, in the same conversations."""
        if not self.user_code_chains:
            raise ConfigurationError(
                "user_code_chains",
                self.user_code_chains,
                "chains from `code` to `verdict`, as create_code_chain does",
            )
        own = CodeChain(
            name="execute_code",
            chains=self.user_code_chains,
            input_variables=["query", "code"],
            output_variables=[key for chain in self.user_code_chains for key in chain.output_keys],
            executor=self.executor,
            memory=self.memory,
            conversations=self.conversations,
        )
        own._limiter = self._limiter
        return own

    def __repr__(self) -> str:
        """Return the stages, as it is also the last line of a cell; `chain.chains` has all their settings."""
        return f"{type(self).__name__}({' > '.join(chain.get_name() for chain in self.chains)})"

    def __str__(self) -> str:
        return repr(self)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = "answer_with_code",
        description: str | None = QUESTION_DESCRIPTION,
        arg_types: Mapping[str, Any] | None = None,
    ) -> BaseTool:
        """Make a tool: `query` in, the answer out, and the whole result as JSON in the message's `artifact`.

        `state.from_json(message.artifact)` rebuilds the records: `["execution"].artifacts` has the plots and
        files. A `session_id` in the `configurable` of the agent's config names the conversation.
        """
        from code_chains.chains.tools import Question

        arguments = args_schema if args_schema or arg_types else Question
        return super().as_tool(arguments, name=name, description=description, arg_types=arg_types)

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        from code_chains.chains.answer_value import format_value

        text, verdict = str(outcome.get("answer", outcome["output"])), outcome["verdict"]
        if self.answer_type is not None and verdict.ok:
            text += f"\n\nValue: {format_value(outcome['value'], self.answer_type)}"
        return f"{shortened(text, _MAX_TEXT_CHARS)}\n\n({verdict.status}: {verdict.reason})"

    def drain(self, seconds: float = 30.0) -> bool:
        """Shut down gracefully: refuse further questions, wait for running ones, and close.

        It blocks; on an event loop use `asyncio.to_thread`.

        Args:
            seconds: Maximum time to wait; questions that still run then are cancelled and leave their
                conversation unchanged.

        Returns:
            Whether all were answered in time.
        """
        all_answered = self._limiter.shut_down(seconds)
        self.close()
        return all_answered

    def close(self) -> None:
        """Close all sessions, and the executor if it was made for this chain; one passed in stays open."""
        if self.conversations:
            self.conversations.close()
        if self.owned_executor:
            self.owned_executor.close()
        for other in self._with_limits.values():
            if other.executor is not None:
                other.executor.close()


def share_conversations(chain: CodeChain, other: CodeChain) -> None:
    """Let another chain, with another model perhaps, continue the conversations of a chain.

    Args:
        chain: The chain whose conversations they are; its `drain` waits for questions of both.
        other: The other chain, which uses the memory of the first from now on.
    """
    other.memory, other.conversations, other._limiter = chain.memory, chain.conversations, chain._limiter
