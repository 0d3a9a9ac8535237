"""The assembled chain: a question in, the story of its answer out, in a conversation if it is named."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Several
from functools import partial
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.runnables import ensure_config
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, PrivateAttr

from code_chains.budget import Budget, find_budgets, hush
from code_chains.chains import Sequence
from code_chains.chains.base import Chain, Config, Do, Program, State
from code_chains.chains.evaluate import expectations
from code_chains.conversations import Conversation, Conversations, ainventory, inventory
from code_chains.errors import ConfigurationError, ExecutorError, InputError
from code_chains.executors import Executor
from code_chains.executors.admission import Admission
from code_chains.executors.base import Closing
from code_chains.executors.drive import drive
from code_chains.inputs import check_session_id, shortened
from code_chains.memory import ConversationMemory
from code_chains.state import Turn
from code_chains.tools import LONGEST
from code_chains.usage import UsageMeter

__all__ = ["CodeChain"]

_log = logging.getLogger(__name__)
_OWN = "Run this program of mine."
_WHEN = (
    "Answers a question by writing a Python program and running it in a sandbox. For whatever is better computed than "
    "guessed: arithmetic, dates, text, tables, statistics, simulations, plots."
)


class Question(BaseModel):
    """What a model gives to the chain where it is a tool."""

    query: str = Field(description="The question or task, complete in itself, in any language.", min_length=1)


class CodeChain(Sequence, Closing):
    """The assembled chain, made by `create_code_chain`: a question in, the story of its answer out.

    Reads `query` and, where given, `files`, `variables`, `tests`, `examples`, `session`, `language`, `context` and
    `history`. Adds `language`, `code`, `problems`, `execution`, `output`, `verdict`, `attempts`, `stop_reason`, `answer`
    (unless it was made with `interpret=False`) and `usage`; `sources`, `translation` and `learned` where it was asked to.

    It is a context manager: leaving it closes the executor that was made for it.
    """

    name: str | None = "code_chain"
    place: Executor | None = None
    owned: Executor | None = None
    budget: Budget | None = None
    conversations: Conversations | None = None
    given: list[Chain] = Field(default_factory=list)
    """What a program goes through that a person wrote."""
    _questions: Admission = PrivateAttr(default_factory=lambda: Admission(sys.maxsize, 0, 0.0))
    """Those under way; there is always room for one more."""

    @property
    def optional_keys(self) -> list[str]:
        """What the stages read where it is given, and the name of a conversation."""
        return [*super().optional_keys, "session_id"]

    @property
    def output_keys(self) -> list[str]:
        """What the stages add, and what was spent."""
        return [*self.output_variables, "usage"]

    def prep_inputs(self, inputs: Any) -> State:
        """The inputs with the `session_id` of the config, and what a classic memory adds."""
        state = self._named(inputs)
        return state if self._converses(state) else super().prep_inputs(state)

    async def aprep_inputs(self, inputs: Any) -> State:
        """Like `prep_inputs`."""
        state = self._named(inputs)
        return state if self._converses(state) else await super().aprep_inputs(state)

    def prep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        """What is given to the caller; a classic memory is told."""
        if not self._converses(inputs):
            return super().prep_outputs(inputs, outputs, return_only_outputs)
        self._validate_outputs(outputs)
        return outputs if return_only_outputs else {**inputs, **outputs}

    async def aprep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        """Like `prep_outputs`."""
        if not self._converses(inputs):
            return await super().aprep_outputs(inputs, outputs, return_only_outputs)
        return self.prep_outputs(inputs, outputs, return_only_outputs)

    def _converses(self, values: State) -> bool:
        """Whether this is a turn of a conversation, which is loaded and saved while no other turn of it can run."""
        return values.get("session_id") is not None and self.conversations is not None

    def _named(self, inputs: Any) -> State:
        state = dict(inputs) if isinstance(inputs, Mapping) else {self.input_keys[0]: inputs}
        configured = ensure_config().get("configurable", {}).get("session_id")
        if state.get("session_id") is None and configured is not None:
            state["session_id"] = configured
        if state.get("session_id") is not None:
            check_session_id(state["session_id"])
        return state

    def _program(self, values: State, config: Config) -> Program:
        drive(self._questions.enter())
        try:
            return (yield from self._asked(values, config))
        finally:
            self._questions.leave()

    def _asked(self, values: State, config: Config) -> Program:
        meter = UsageMeter(self.budget.prices.given if self.budget else None)
        self._check_expectations(values)  # What cannot be used is said before anything is spent.
        if self.place and type(self.place).warm is not Executor.warm:
            yield Do(_warm, self.place, config)  # It gets ready while the model thinks.
        config = {**config, "callbacks": _with(config.get("callbacks"), [meter, *self._limits(config)])}
        if self._converses(values) and self.conversations is not None:
            yield from self._turn(self.conversations, values, config, meter)
        else:
            yield from self._answered(values, config, meter)

    def _answered(self, values: State, config: Config, meter: UsageMeter) -> Program:
        outcome = yield from super()._program(values, config)
        yield {"usage": meter.usage}
        return outcome

    def _turn(self, conversations: Conversations, values: State, config: Config, meter: UsageMeter) -> Program:
        """Answer with what was said before, in the state of the conversation; both are as before unless this ends well."""
        name, memory, own = values["session_id"], self.memory, values.get("session") is not None
        turns = partial(self.turns, name, artifacts=False)
        begin, abegin = partial(conversations.begin, turns=turns), partial(conversations.abegin, turns=turns)
        conversation = yield Do(begin, name, config, abegin)
        try:
            given = dict(values)
            if memory is not None:
                given |= yield Do(memory.load_memory_variables, values, config, memory.aload_memory_variables)
            if conversation.session is not None and not own:
                kept = yield Do(inventory, conversation.session, config, ainventory)
                given |= {"session": conversation.session, "kept": f"{kept}\n{conversation.lost}".strip()}
            outcome = yield from self._answered(given, config, meter)
            turn = yield Do(self._remember, (values, outcome), config)
            if own:
                conversation.keep()
            elif outcome["verdict"].ok and (turn is not None or not isinstance(memory, ConversationMemory)):
                conversation.keep(turn)
        finally:
            conversation.end()

    def _remember(self, turn: tuple[State, State]) -> Turn | None:
        """Save a turn. The answer must not be lost because it cannot be remembered."""
        inputs, outcome = turn
        try:
            if isinstance(self.memory, ConversationMemory):
                return self.memory.remember(inputs, outcome)
            if self.memory is not None:
                self.memory.save_context(inputs, outcome)
        except Exception as error:
            _log.warning("A turn of the conversation %r cannot be remembered: %s", inputs["session_id"], error)
        return None

    def execute(
        self, code: str, session_id: str | None = None, *, query: str = "", files: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a program of one's own, as a turn of a conversation if it is named, without asking a model.

        It is checked and run as a model's program is, but neither mended, repaired nor approved. If it runs to its end, the
        next question builds on what it did.

        Args:
            code: The program.
            session_id: The conversation; None for a program that stands alone.
            query: What the program is for, as the turn's question.
            files: `{name in the working directory: path on this machine}`.

        Returns:
            `problems`, `execution`, `output`, `verdict` and `usage`, beside what was given.

        Raises:
            InputError: The program is empty, or something else cannot be used as it was given.
            ConfigurationError: This chain was not made by `create_code_chain`.
        """
        return self._own().invoke(_own_turn(code, session_id, query, files))

    async def aexecute(
        self, code: str, session_id: str | None = None, *, query: str = "", files: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Like `execute`, without blocking the event loop."""
        return await self._own().ainvoke(_own_turn(code, session_id, query, files))

    def _own(self) -> CodeChain:
        """The chain for programs that a person wrote, in the same conversations."""
        if not self.given:
            raise ConfigurationError("given", self.given, "chains from `code` to `verdict`, as create_code_chain does")
        own = CodeChain(
            name="execute_code",
            chains=self.given,
            input_variables=["query", "code"],
            output_variables=[key for chain in self.given for key in chain.output_keys],
            place=self.place,
            memory=self.memory,
            conversations=self.conversations,
        )
        own._questions = self._questions
        return own

    def turns(self, session_id: str, *, artifacts: bool = True) -> list[Turn]:
        """The turns of a conversation so far, with their figures; none where its memory is not a `ConversationMemory`."""
        return self.memory.turns(session_id, artifacts=artifacts) if isinstance(self.memory, ConversationMemory) else []

    def undo(self, session_id: str) -> Turn | None:
        """Take back the last turn of a conversation, what was said and what it did to the state; None if there is none.

        Raises:
            ConfigurationError: The chain's memory cannot take back a turn.
        """
        if not isinstance(self.memory, ConversationMemory):
            raise ConfigurationError("memory", self.memory, "a ConversationMemory, which can take back turns")
        with self._held(session_id) as conversation:
            turn = self.memory.undo(session_id)
            if turn is not None and conversation is not None and conversation.holds == turn.id:
                conversation.go_back()
        return turn

    def forget(self, session_id: str) -> None:
        """Forget a conversation, what was said and its state."""
        with self._held(session_id):
            if isinstance(self.memory, ConversationMemory):
                self.memory.clear(session_id)
            if self.conversations is not None:
                self.conversations.forget(session_id)

    @contextlib.contextmanager
    def _held(self, session_id: str) -> Iterator[Conversation | None]:
        """Change a conversation while no turn of it runs."""
        if self.conversations is None:
            yield None
            return
        conversation = self.conversations.hold(check_session_id(session_id))
        try:
            yield conversation
        finally:
            conversation.end()

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = "answer_with_code",
        description: str | None = _WHEN,
        arg_types: Mapping[str, Any] | None = None,
    ) -> BaseTool:
        """The chain as a tool: `query` in, the answer out, and the whole result as JSON in the message's `artifact`.

        `state.from_json(message.artifact)` makes records of it again: `["execution"].artifacts` has the plots and files.
        A `session_id` in the `configurable` of the agent's config names the conversation.
        """
        arguments = args_schema if args_schema or arg_types else Question
        return super().as_tool(arguments, name=name, description=description, arg_types=arg_types)

    def _told(self, outcome: Mapping[str, Any]) -> str:
        return shortened(str(outcome.get("answer", outcome["output"])), LONGEST)

    def _check_expectations(self, values: State) -> None:
        if expectations(values) and self.place is not None and type(self.place).examine is Executor.examine:
            raise ConfigurationError("executor", self.place, "one that can run tests, such as SandboxExecutor")

    def _limits(self, config: Config) -> list[BaseCallbackHandler]:
        """What listens for a full line, and for the budget, which is new for each question if it is each question's own."""
        is_async = isinstance(config.get("callbacks"), AsyncCallbackManager)
        place, budget = self.place, self.budget
        door = None if place is None or type(place).check_room is Executor.check_room else _Door(place)
        if budget is None or (budget.per == "all" and budget in find_budgets(config)):
            return [] if door is None else [_DoorOnTheLoop(door) if is_async else door]
        budget = budget.fresh() if budget.per == "question" else budget
        if is_async:  # One handler for both: what a loop is told by several, it is told at once.
            return [budget.handler() if door is None else budget.handler(before=door.check)]
        return [budget] if door is None else [door, budget]

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further questions, let those end that are being answered, and close: what to do when the app is to end.

        It blocks; on an event loop use `asyncio.to_thread`.

        Args:
            seconds: How long to wait; what is still under way then is broken off, and leaves its conversation as it was.

        Returns:
            Whether all were answered by then.
        """
        all_answered = self._questions.shut(seconds)
        self.close()
        return all_answered

    def close(self) -> None:
        """Close the conversations' states, and the executor that was made for this chain; one passed in stays open."""
        if self.conversations:
            self.conversations.close()
        if self.owned:
            self.owned.close()


class _Door(BaseCallbackHandler):
    """Refuses a question before its first call of a model is paid for, if its program would be refused now."""

    raise_error = ignore_chain = True

    def __init__(self, place: Executor) -> None:
        self._place = place
        self._open = False
        hush(_Door.__name__, _DoorOnTheLoop.__name__)

    def check(self) -> None:
        """Refuse, unless it was open already."""
        if not self._open:
            self._place.check_room()
            self._open = True

    def on_chat_model_start(self, *_: object, **__: object) -> None:
        """A model is about to be called."""
        self.check()

    on_llm_start = on_chat_model_start


class _DoorOnTheLoop(AsyncCallbackHandler):
    """The same for event loops; not inline, as LangChain would leave the others unawaited when it raises."""

    raise_error = ignore_chain = True

    def __init__(self, door: _Door) -> None:
        self._door = door

    async def on_chat_model_start(self, *_: object, **__: object) -> None:
        """A model is about to be called."""
        self._door.check()

    on_llm_start = on_chat_model_start


def _own_turn(code: str, session_id: str | None, query: str, files: Mapping[str, Any] | None) -> State:
    if not isinstance(code, str) or not code.strip():
        raise InputError("There is no program to run. Write one, e.g. print(6 * 7).")
    return {"query": query or _OWN, "code": code, "session_id": session_id, "files": files or {}}


def _warm(place: Executor) -> None:
    with contextlib.suppress(ExecutorError):  # Running will tell.
        place.warm()


def _with(callbacks: Any, handlers: Several[BaseCallbackHandler]) -> Any:
    """Callbacks with some more handlers, for this run and all below it."""
    if isinstance(callbacks, CallbackManager | AsyncCallbackManager):
        callbacks = callbacks.copy()
        for handler in handlers:
            callbacks.add_handler(handler, inherit=True)
        return callbacks
    return [*(callbacks or []), *handlers]
