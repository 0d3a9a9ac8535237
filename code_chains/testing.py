"""Doubles and contracts that this library's tests use, for the tests of yours.

`ScriptedModel` answers as a function of the messages, never in call order, so that batches, retries and threads do not
confuse it. `ExecutorContract` is the promise of an executor as a suite to inherit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from code_chains.executors.base import Executor, Limits, Session
from code_chains.inputs import check_files, check_variables
from code_chains.state import Execution

__all__ = ["ExecutorContract", "ScriptedExecutor", "ScriptedModel", "SessionContract", "asks_for_code"]


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
            content="", usage_metadata=reply.usage_metadata, response_metadata=reply.response_metadata
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


class ExecutorContract:
    """The promise of an executor. Inherit it in a test class and give a fixture `executor`.

    Example:
        class TestMine(ExecutorContract):
            @pytest.fixture
            def executor(self):
                with MyExecutor(limits=Limits(seconds=2, memory="256M", output="64K")) as executor:
                    yield executor

    The fixture's limits should be about those of the example: the tests run into each of them.
    """

    def test_shows_what_was_printed_and_the_last_value(self, executor: Executor) -> None:
        """As a notebook does."""
        done = executor.run("print('hello')\n1 + 1")
        assert (done.status, done.stdout, done.result, done.output) == ("ok", "hello\n", "2", "hello\n2")

    def test_shows_the_variable_result(self, executor: Executor) -> None:
        """A program may name its outcome instead of printing it."""
        assert executor.run("result = 6 * 7").output == "42"

    def test_reports_an_error_with_its_line_and_values(self, executor: Executor) -> None:
        """An error is a value that says where and with what."""
        error = executor.run("n = 0\nprint('before')\n1 / n").error
        assert error is not None
        assert (error.type, error.line, error.locals["n"]) == ("ZeroDivisionError", 3, "0")

    def test_keeps_what_was_printed_before_an_error(self, executor: Executor) -> None:
        """Partial output helps to repair."""
        assert executor.run("print('before')\n1 / 0").stdout == "before\n"

    def test_gives_variables_to_the_program(self, executor: Executor) -> None:
        """JSON values arrive under their names."""
        assert executor.run("sum(numbers) * n", variables={"numbers": [1, 2], "n": 3}).result == "9"

    def test_runs_share_nothing(self, executor: Executor) -> None:
        """A name of one run is unknown in the next."""
        executor.run("left_behind = 1")
        assert executor.run("'left_behind' in globals()").result == "False"

    def test_stops_what_does_not_end(self, executor: Executor) -> None:
        """The limit is measured by the clock."""
        began = time.monotonic()
        assert executor.run("while True: pass").status == "timeout"
        assert time.monotonic() - began < executor.limits.seconds * 1.25 + 3

    def test_stops_a_flood(self, executor: Executor) -> None:
        """Output is bounded while it is read."""
        done = executor.run("while True: print('x' * 1000)")
        assert done.status == "output_limit"
        assert len(done.stdout) <= executor.limits.output_bytes

    def test_stops_what_eats_memory(self, executor: Executor) -> None:
        """Memory is bounded."""
        assert executor.run("x = [bytearray(1 << 20) for _ in range(100_000)]").status == "memory"

    def test_an_early_exit_is_no_success(self, executor: Executor) -> None:
        """`os._exit(0)` half way does not look like the end of the program."""
        assert executor.run("import os\nos._exit(0)").status == "killed"


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
