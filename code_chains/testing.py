"""Doubles and contracts that this library's tests use, for the tests of yours.

`ScriptedModel` answers as a function of the messages, never in call order, so that batches, retries and threads do not
confuse it. `ExecutorContract` is the promise of an executor as a suite to inherit.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from code_chains.errors import ExecutorError
from code_chains.executors.base import Executor, Limits, Session
from code_chains.inputs import check_files, check_variables
from code_chains.state import Execution

__all__ = ["ExecutorContract", "ScriptedExecutor", "ScriptedModel", "SessionContract", "asks_for_code"]

_Test = TypeVar("_Test", bound=Callable[..., Any])


def asks_for_code(messages: Sequence[BaseMessage]) -> bool:
    """Whether these messages ask for a program, rather than for an answer told from a program's output."""
    return "Output of the program:" not in str(messages[-1].text)


class ScriptedModel(BaseChatModel):
    """A chat model that replies with what a function makes of the messages. It streams word by word.

    Args:
        script: `messages -> reply`; a reply is text, or a whole `AIMessage` where its metadata matters.
        delay: Seconds each call takes.

    Example:
        >>> ScriptedModel(lambda messages: messages[-1].text.upper()).invoke("hello").text
        'HELLO'
    """

    script: Callable[[list[BaseMessage]], str | AIMessage]
    delay: float = 0.0

    def __init__(self, script: Callable[[list[BaseMessage]], str | AIMessage], **kwargs: Any) -> None:
        super().__init__(script=script, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        if self.delay:
            time.sleep(self.delay)
        reply = self.script(messages)
        if isinstance(reply, AIMessage):
            return reply
        read, written = sum(len(str(m.text).split()) for m in messages), len(reply.split())
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        metadata = {"finish_reason": "stop", "model_name": "scripted"}
        return AIMessage(reply, usage_metadata=usage, response_metadata=metadata)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The same model: its script decides by the messages whether it calls a tool, with an `AIMessage(tool_calls=…)`."""
        return self.bind(tools=tools, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for word in re.split(r"(?<= )", str(reply.text)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            tool_call_chunks=[
                tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
                for index, call in enumerate(reply.tool_calls)
            ],
            usage_metadata=reply.usage_metadata,
            response_metadata=reply.response_metadata,
        )
        yield ChatGenerationChunk(message=last)


class ScriptedExecutor(Executor):
    """An executor that runs nothing: the outcome is what a function makes of the code.

    Args:
        script: `code -> Execution`, or `code -> text` for a run that printed that text.
    """

    def __init__(self, script: Callable[[str], Execution | str], *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        self.script = script

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """What the script says."""
        check_files(files)
        check_variables(variables)
        outcome = self.script(code)
        return outcome if isinstance(outcome, Execution) else Execution("ok", stdout=outcome)

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """What the script says."""
        return self.run(code, files=files, variables=variables)


def _needs(program: str) -> Callable[[_Test], _Test]:
    """Mark a test of the contract with the name of the program it runs."""

    def mark(test: _Test) -> _Test:
        test.needs = program  # type: ignore[attr-defined]  # Functions take any attribute.
        return test

    return mark


class ExecutorContract:
    """The promise of an executor. Inherit it in a test class and give a fixture `executor`.

    Example:
        class TestMine(ExecutorContract):
            @pytest.fixture
            def executor(self):
                with MyExecutor(limits=Limits(seconds=2, memory="256M", output="64K")) as executor:
                    yield executor

    The fixture's limits should be about those of the example: the tests run into each of them.

    The programs are class attributes in Python. For another language give its words for the same; a program that is `None`
    says that the language has no such thing, and leaves its promise out of the suite.

    Attributes:
        EVALUATES: Ends with a value that is shown as `VALUE`.
        PRINTS: Prints `hello` and ends with the value 2.
        NAMES_RESULT: Gives 42 the name `result`.
        FAILS: Prints `before`, then fails with an error of the type and line in `FAILURE`, with `VALUES` at hand.
        USES: Is shown as `USED` when `numbers` is `[1, 2]` and `n` is 3.
        LEAVES: Leaves something behind.
        LOOKS: Looks for that; its value is `False` if it is not there.
        ENDLESS: Does not end.
        FLOODS: Prints without end.
        HOARDS: Takes memory without end.
        EXITS: Ends its process half way, as if all were well.
    """

    EVALUATES: str = "1 + 1"
    VALUE: str = "2"
    PRINTS: str | None = "print('hello')\n1 + 1"
    NAMES_RESULT: str | None = "result = 6 * 7"
    FAILS: str = "n = 0\nprint('before')\n1 / n"
    FAILURE: tuple[str, int | None] = ("ZeroDivisionError", 3)
    VALUES: Mapping[str, str] = {"n": "0"}
    USES: str = "sum(numbers) * n"
    USED: str = "9"
    LEAVES: str | None = "left_behind = 1"
    LOOKS: str = "try:\n    left_behind\n    found = True\nexcept NameError:\n    found = False\nfound"
    ENDLESS: str = "while True: pass"
    FLOODS: str = "while True: print('x' * 1000)"
    HOARDS: str = "x = [bytearray(1 << 20) for _ in range(100_000)]"
    EXITS: str | None = "import os\nos._exit(0)"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, test in vars(ExecutorContract).items():
            if hasattr(test, "needs") and getattr(cls, test.needs) is None:
                setattr(cls, name, None)

    def test_shows_the_last_value(self, executor: Executor) -> None:
        """As a notebook does."""
        done = executor.run(self.EVALUATES)
        assert (done.status, done.output) == ("ok", self.VALUE)

    @_needs("PRINTS")
    def test_shows_what_was_printed_and_the_last_value(self, executor: Executor) -> None:
        """As a notebook does."""
        done = executor.run(str(self.PRINTS))
        assert (done.status, done.stdout, done.result, done.output) == ("ok", "hello\n", "2", "hello\n2")

    @_needs("NAMES_RESULT")
    def test_shows_the_variable_result(self, executor: Executor) -> None:
        """A program may name its outcome instead of printing it."""
        assert executor.run(str(self.NAMES_RESULT)).output == "42"

    def test_reports_an_error_with_its_line_and_values(self, executor: Executor) -> None:
        """An error is a value that says where and with what."""
        done = executor.run(self.FAILS)
        assert done.status == "error"
        assert done.error is not None
        assert (done.error.type, done.error.line) == self.FAILURE
        assert self.VALUES.items() <= done.error.locals.items()

    @_needs("PRINTS")
    def test_keeps_what_was_printed_before_an_error(self, executor: Executor) -> None:
        """Partial output helps to repair."""
        assert executor.run(self.FAILS).stdout == "before\n"

    def test_gives_variables_to_the_program(self, executor: Executor) -> None:
        """JSON values arrive under their names."""
        assert executor.run(self.USES, variables={"numbers": [1, 2], "n": 3}).output == self.USED

    @_needs("LEAVES")
    def test_runs_share_nothing(self, executor: Executor) -> None:
        """A name of one run is unknown in the next."""
        executor.run(str(self.LEAVES))
        assert executor.run(self.LOOKS).output == "False"

    def test_stops_what_does_not_end(self, executor: Executor) -> None:
        """The limit is measured by the clock."""
        began = time.monotonic()
        assert executor.run(self.ENDLESS).status == "timeout"
        assert time.monotonic() - began < executor.limits.seconds * 1.25 + 3

    def test_stops_a_flood(self, executor: Executor) -> None:
        """Output is bounded while it is read."""
        done = executor.run(self.FLOODS)
        assert done.status == "output_limit"
        assert len(done.output) <= executor.limits.output_bytes

    def test_stops_what_eats_memory(self, executor: Executor) -> None:
        """Memory is bounded."""
        assert executor.run(self.HOARDS).status == "memory"

    @_needs("EXITS")
    def test_an_early_exit_is_no_success(self, executor: Executor) -> None:
        """`os._exit(0)` half way does not look like the end of the program."""
        assert executor.run(str(self.EXITS)).status == "killed"

    async def test_async_ends_like_sync(self, executor: Executor) -> None:
        """`arun` is `run` that lets others work meanwhile."""
        for code in (self.EVALUATES, self.FAILS):
            assert await executor.arun(code) == executor.run(code)

    def test_says_what_was_enforced(self, executor: Executor) -> None:
        """Isolation is reported with every run."""
        assert executor.run(self.EVALUATES).isolation is not None

    def test_refuses_when_closed(self, executor: Executor) -> None:
        """Closing twice is fine; running afterwards is not."""
        executor.close()
        executor.close()
        try:
            executor.run(self.EVALUATES)
        except ExecutorError:
            return
        raise AssertionError("A closed executor ran a program.")


class SessionContract:
    """The promise of a session. Inherit it in a test class and give a fixture `session`."""

    def test_keeps_variables_imports_and_functions(self, session: Session) -> None:
        """What one run defines, the next one uses."""
        session.run("import math\ndef area(r):\n    return math.pi * r ** 2\nradius = 2")
        assert session.run("round(area(radius))").result == "13"

    def test_keeps_files_and_the_working_directory(self, session: Session) -> None:
        """So that programs can build on each other's files."""
        session.run("import os\nos.mkdir('d'); os.chdir('d'); open('f', 'w').write('here')")
        assert session.run("open('f').read()").result == "'here'"

    def test_shows_only_what_this_run_printed_and_made(self, session: Session) -> None:
        """An execution is of one run."""
        session.run("print('first'); result = 1; open('a.txt', 'w').write('a')")
        done = session.run("print('second'); open('b.txt', 'w').write('b')")
        assert (done.stdout, [artifact.name for artifact in done.artifacts]) == ("second\n", ["b.txt"])

    def test_names_a_later_failure_with_its_own_line(self, session: Session) -> None:
        """A function of an earlier run that fails shows the line it has there."""
        session.run("def f():\n    return undefined_name")
        error = session.run("x = 1\nf()").error
        assert error is not None
        assert "return undefined_name" in error.traceback

    def test_rolls_back_a_failure(self, session: Session) -> None:
        """A failure leaves no trace."""
        session.run("x = 1")
        session.run("x = 2\n1 / 0")
        assert session.run("x").result == "1"

    def test_rolls_back_on_request(self, session: Session) -> None:
        """The last run that went well can be taken back, once."""
        session.run("x = 1; open('f', 'w').write('one')")
        session.run("x = 2; open('f', 'w').write('two')")
        session.rollback()
        assert session.run("x, open('f').read()").result == "(1, 'one')"

    def test_returns_to_a_checkpoint_as_often_as_one_likes(self, session: Session) -> None:
        """A checkpoint stays."""
        session.run("x = [1]; open('f', 'w').write('one')")
        session.checkpoint("start")
        for _ in range(2):
            session.run("x.append(2); open('f', 'w').write('two')")
            session.restore("start")
            assert session.run("x, open('f').read()").result == "([1], 'one')"

    def test_takes_variables_at_each_run(self, session: Session) -> None:
        """They become part of the state."""
        session.run("total = n", variables={"n": 1})
        assert session.run("total + n", variables={"n": 5}).result == "6"
