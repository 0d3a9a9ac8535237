"""Chains whose questions are turns of conversations: each answers with the history, and in the state, of its own."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from langchain_core.runnables import ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec

from code_chains.assembly.options import choose_how
from code_chains.assembly.question import session_of
from code_chains.chains.base import Config, Flow, RunFunction, State, StreamingSequentialChain
from code_chains.chains.execute import commit
from code_chains.conversations.memory import ConversationMemory
from code_chains.conversations.sessions import Conversation, Conversations
from code_chains.errors import CodeChainsError, ConfigurationError, InputError, SessionError
from code_chains.inputs import Paste, check_keys, check_session_id
from code_chains.state import Turn
from code_chains.verification.expectations import expectations_of

ALIASES = ("chat_history", "thread_id")
"""Further names of inputs: of the history and of the session."""
_log = logging.getLogger(__name__)
_NOT_SAVED = "This turn was not saved, so the conversation goes on as if it had not been asked."
_NO_STATE = (
    "- nothing of earlier programs: each runs on its own here, without their variables, imports and files"
)


class ConversingChain(StreamingSequentialChain):
    """A sequence of chains that answers in a conversation, if the inputs or the config name one.

    Attributes:
        conversations: The states of the conversations; their turns are in the `memory`.
        schema_only: Whether models see names and types of the data only.
    """

    conversations: Conversations | None = None
    schema_only: bool = False

    def prep_inputs(self, inputs: Any) -> State:
        """Add the `session_id` or `thread_id` of the config, and the variables of a classic memory."""
        state = self._with_session_id(inputs)
        return state if self._is_turn(state) else super().prep_inputs(state)

    async def aprep_inputs(self, inputs: Any) -> State:
        """Like `prep_inputs`."""
        state = self._with_session_id(inputs)
        return state if self._is_turn(state) else await super().aprep_inputs(state)

    def prep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        """Return what the caller gets, and save it to a classic memory."""
        if not self._is_turn(inputs):
            return super().prep_outputs(inputs, outputs, return_only_outputs)
        self._validate_outputs(outputs)
        return outputs if return_only_outputs else {**inputs, **outputs}

    async def aprep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        """Like `prep_outputs`."""
        if not self._is_turn(inputs):
            return await super().aprep_outputs(inputs, outputs, return_only_outputs)
        return self.prep_outputs(inputs, outputs, return_only_outputs)

    def _is_turn(self, values: State) -> bool:
        """Return whether this is a turn of a conversation, which other turns of it must wait for."""
        return values.get("session_id") is not None and self.conversations is not None

    def _with_session_id(self, inputs: Any) -> State:
        state = self._read_inputs(inputs)
        if state.keys() - set(self.input_keys):  # Collecting the optional keys of all stages takes time.
            self.check_keys(state, (*self.input_keys, *self.optional_keys))
        configurable = ensure_config().get("configurable", {})
        named, asked = session_of(configurable), session_of(state)
        if named and asked and named != asked:
            # Invariant: where a server names the conversation, no client names another one, by any name.
            raise InputError(
                "The config names another session_id than the inputs. Leave it, and thread_id, out of the inputs."
            )
        state = {**state, **named, **asked}
        if state.get("session_id") is not None:
            check_session_id(state["session_id"])
        return state

    def choose_how(self, key: str) -> str:
        """Return how something is chosen that is no input of a question."""
        return choose_how(key)

    def check_keys(self, state: State, known: Collection[str]) -> None:
        """Refuse inputs that are no inputs of a question; within another chain they may belong to its other parts."""
        callbacks = ensure_config().get("callbacks")
        is_nested = getattr(callbacks, "parent_run_id", None) is not None
        also_known = [*ALIASES, *(self.memory.memory_variables if self.memory is not None else ())]
        if "verdict" in state:  # A whole result, which is asked on.
            also_known += self.output_keys
        check_keys(state, (*known, *also_known), None if is_nested else choose_how)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The `session_id`, which a server such as LangServe passes on from its clients; options it does not."""
        description = "The name of the conversation; thread_id is the same."
        session = ConfigurableFieldSpec(
            id="session_id", annotation=str | None, name="Session", description=description, default=None
        )
        return [*super().config_specs, session]

    @property
    def _own_memory(self) -> ConversationMemory | None:
        """The memory, if it keeps turns."""
        return self.memory if isinstance(self.memory, ConversationMemory) else None

    def _turn(
        self, conversations: Conversations, values: State, config: Config, answer: Callable[[State], Flow]
    ) -> Flow:
        """Answer with the history and in the state of the conversation; both are unchanged unless the turn succeeds."""
        from code_chains.conversations.inventory import ainventory, inventory, names_in

        name, memory = values["session_id"], self.memory
        # Tests run a program alone; once it is accepted it runs here as well, as later turns build on it.
        own, is_tested = values.get("session") is not None, bool(expectations_of(values))
        paste: Paste | None = values["paste"]
        variables = {**(values.get("variables") or {}), **(paste.variables if paste else {})}
        turns = partial(self.turns, name, artifacts=False)
        given = {**(values.get("files") or {}), **variables}
        own_memory = self._own_memory
        arguments: dict[str, Any] = {"turns": turns, "memory": own_memory, "given": given}
        begin, abegin = partial(conversations.begin, **arguments), partial(conversations.abegin, **arguments)
        conversation = yield RunFunction(begin, name, config, abegin)
        try:
            inputs = dict(values)
            if variables and not is_tested:
                kept = turns() if conversation.session is not None else ()
                new_of = partial(conversation.given.new_of, turns=kept)
                inputs["variables"] = variables = yield RunFunction(new_of, variables, config)
            if conversation.session is not None:
                paths = (values.get("files") or {}).values()
                conversation.session.check_size(sum(path.stat().st_size for path in paths))
            if memory is not None and not values.get("history"):  # The caller's own history counts.
                inputs |= yield RunFunction(
                    memory.load_memory_variables, values, config, memory.aload_memory_variables
                )
            if conversation.session is not None and not own and not is_tested:
                names = names_in(turns()) if self.schema_only else None
                describe, adescribe = partial(inventory, names=names), partial(ainventory, names=names)
                described = yield RunFunction(describe, conversation.session, config, adescribe)
                lost = [f"- {sentence}" for sentence in conversation.lost]
                inputs |= {
                    "session": conversation.session,
                    "session_variables": "\n".join([described, *lost]).strip(),
                }
                if own_memory is not None and any(
                    "session_state" in getattr(chain, "optional_keys", ()) for chain in self.chains
                ):
                    state = partial(own_memory.state, name)
                    inputs["session_state"] = yield RunFunction(state, turns(), config)
                yield {"notes": conversation.lost}
            elif not own and conversation.base:
                inputs["session_variables"] = _NO_STATE
            outcome = yield from answer(inputs)
            stored = {**values, "variables": variables}
            is_there = not is_tested or (yield from self._run_here(conversation, values, outcome, config))
            turn = yield RunFunction(self._remember, (stored, outcome, conversation, is_there), config)
            yield {"notes": [_NOT_SAVED] if turn is None and own_memory is not None else []}
            if own or not is_there:  # Then the next turn rebuilds the state.
                conversation.keep()
            elif outcome["verdict"].ok and (turn is not None or own_memory is None):
                conversation.keep(turn)
        finally:
            conversation.end()

    def _run_here(self, conversation: Conversation, values: State, outcome: State, config: Config) -> Flow:
        """Run the accepted program of a tested turn in the session, and return whether it ran."""
        session = conversation.session
        if session is None or not outcome["verdict"].ok:
            return False
        try:
            execution = yield from commit({**values, "session": session}, outcome["code"], config)
        except CodeChainsError:  # The next turn reports a session that broke.
            return False
        return bool(execution.ok)

    def _remember(self, turn: tuple[State, State, Conversation, bool]) -> Turn | None:
        """Save a turn. A failure is logged, as the answer must not be lost for it.

        Raises:
            SessionError: It was computed on a history that is not that of the conversation any more.
        """
        inputs, outcome, conversation, is_there = turn
        try:
            if self._own_memory is not None:
                replay = conversation.describe(outcome if is_there else {}) if outcome["verdict"].ok else None
                saved = self._own_memory.remember(inputs, outcome, after=conversation.base, replay=replay)
                conversation.given.add(inputs["variables"], saved)
                return saved
            if self.memory is not None:
                self.memory.save_context(inputs, outcome)
        except SessionError:
            raise
        except Exception as error:
            _log.warning("A turn of the conversation %r cannot be saved: %s", inputs["session_id"], error)
        return None

    def turns(self, session_id: str, *, artifacts: bool = True) -> list[Turn]:
        """Return the turns of a conversation with their figures; none unless its memory is a `ConversationMemory`."""
        memory = self._own_memory
        return memory.turns(session_id, artifacts=artifacts) if memory is not None else []

    def undo(self, session_id: str) -> Turn | None:
        """Undo the last turn of a conversation, in its history and its state, and return it; None if there is none.

        Raises:
            ConfigurationError: The chain's memory cannot undo turns.
        """
        memory = self._own_memory
        if memory is None:
            raise ConfigurationError("memory", self.memory, "a ConversationMemory, which can undo turns")
        with self._hold(session_id) as conversation:
            turn = memory.undo(session_id)
            if turn is not None and conversation is not None and conversation.last_turn == turn.id:
                conversation.roll_back()
                if (
                    conversation.last_turn == turn.id
                ):  # There is no checkpoint: the next turn rebuilds the state.
                    conversation.drop()
        return turn

    def forget(self, session_id: str) -> None:
        """Delete the history and the state of a conversation."""
        with self._hold(session_id):
            if self._own_memory is not None:
                self._own_memory.clear(session_id)
            if self.conversations is not None:
                self.conversations.forget(session_id)

    @contextlib.contextmanager
    def _hold(self, session_id: str) -> Iterator[Conversation | None]:
        """Change a conversation while no turn of it runs."""
        if self.conversations is None:
            yield None
            return
        conversation = self.conversations.hold(check_session_id(session_id))
        try:
            self.conversations.lock(conversation, self._own_memory)
            yield conversation
        finally:
            conversation.end()
