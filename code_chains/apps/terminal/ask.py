"""One question at the terminal: its inputs, its answer, and what is kept of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from code_chains.apps.artifact_folder import ArtifactFolder
from code_chains.apps.chain_options import create_chain
from code_chains.apps.remedies import CHECKS
from code_chains.apps.terminal.cli_options import echo, files_by_name
from code_chains.apps.terminal.named_files import check_named_files, missing_files
from code_chains.apps.terminal.progress import Progress, follow
from code_chains.apps.terminal.question_log import QuestionLog
from code_chains.apps.terminal.standard_input import is_redirected, name_of_data, read_data, read_question
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import CodeChainsError, InputError, StoreError
from code_chains.inputs import check_query
from code_chains.language.reasons import how_to_check
from code_chains.records.printable import escape_invisible
from code_chains.state import as_json as to_json_values
from code_chains.storage.foreign import read_text


def question_of(words: Sequence[str]) -> str:
    """Return the question that the arguments hold, or that standard input does if they hold none or `-`.

    Raises:
        click.UsageError: There is none, or it is not in quotes.
    """
    if len(words) > 1:
        quoted = f'code-chains ask "{" ".join(words)}"'
        raise click.UsageError(f"Put the question in quotes: {quoted}")
    if words and words[0] != "-":
        return words[0]
    if not words and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError('Missing argument "QUESTION": in quotes, or through a pipe.')
    question = read_question()
    if not question:
        raise click.UsageError('Missing argument "QUESTION": standard input is empty.')
    return question


@contextmanager
def open_log(*, is_on: bool) -> Iterator[QuestionLog | None]:
    """Open the log of questions; None if it is off or cannot be opened, which is no reason not to answer."""
    if not is_on:
        yield None
        return
    try:
        log = QuestionLog()
    except StoreError as error:
        echo(f"Questions are not logged: {error}", err=True)
        yield None
        return
    with log:
        yield log


class Ask:
    """A question at the terminal.

    Args:
        question: Its text.
        folder: Where figures and files are saved.
        log: Where the question is recorded; None for nowhere.
        session_id: The logged conversation that it continues.
    """

    folder: ArtifactFolder
    log: QuestionLog | None
    session_id: str | None

    def __init__(
        self, question: str, *, folder: ArtifactFolder, log: QuestionLog | None, session_id: str | None
    ) -> None:
        self.question: str = check_query(question)
        self.folder, self.log, self.session_id = folder, log, session_id
        self.files: dict[str, Any] = {}

    def add_files(self, paths: tuple[str, ...]) -> None:
        """Add the files that programs may read.

        Raises:
            InputError: One cannot be read, or the question names one that is not passed.
        """
        self.files |= files_by_name(paths)
        check_named_files(self.question, self.files)

    def add_standard_input(self) -> None:
        """Add what standard input holds as a file.

        Raises:
            InputError: It is too long, or a file has its name.
        """
        data = read_data()
        if not data:
            if is_redirected():
                echo("Standard input is empty: programs get no data from it.", err=True)
            return
        name = name_of_data(data)
        if name in self.files:
            raise click.UsageError(f"Standard input is passed as {name}, but --file has this name, too.")
        self.files[name] = self._kept(name, data)
        echo(f"Programs can read standard input as {name} ({len(data):,} bytes).", err=True)

    def name_missing_files(self) -> None:
        """Say which files the question names that do not exist: a model may make up what is in them."""
        if missing := missing_files(self.question, self.files):
            echo(
                f"The question names {', '.join(missing)}: no file of that name is passed (-f), or here.",
                err=True,
            )

    def _kept(self, name: str, data: bytes) -> Any:
        """Return a path of the data in the log, so that the question can be continued; else the data itself."""
        try:
            return data if self.log is None else self.log.keep_data(name, data)
        except OSError as error:
            echo(f"Standard input is not logged: {error}", err=True)
            return data

    @property
    def memory(self) -> ConversationMemory | bool:
        """The memory of the conversation that it continues; by default one of its own."""
        return True if self.session_id is None or self.log is None else self.log.memory

    def answer(
        self, keys: tuple[str, ...], *, tests: str | None, as_json: bool, approve: bool, **options: Any
    ) -> dict[str, Any]:
        """Answer the question, showing the progress, and return the result."""
        state: dict[str, Any] = {"query": self.question, "files": self.files, "session_id": self.session_id}
        if tests is not None:
            state["tests"] = tests
        progress = Progress(keys)
        approver = progress.approve if approve else None
        with create_chain(approve=approver, conversation_memory=self.memory, **options) as chain:
            result = follow(chain, state, progress, answer=not as_json)
        if "verdict" in keys and (
            advice := how_to_check(result["verdict"], CHECKS["terminal"], result.get("answer_language"))
        ):
            echo(advice, err=True)
        if as_json:
            click.echo(escape_invisible(json.dumps(to_json_values(result), ensure_ascii=False, indent=2)))
        self._record(state, result)
        return result

    def _record(self, state: dict[str, Any], result: dict[str, Any]) -> None:
        if self.log is None or self.session_id is not None:  # The memory of the conversation has it.
            return
        try:
            self.log.add(state, result)
        except CodeChainsError as error:
            echo(f"The question could not be logged: {error}", err=True)

    def save_artifacts(self, result: dict[str, Any]) -> None:
        """Save figures and files, and say where.

        Raises:
            StoreError: One can be saved nowhere.
        """
        execution = result["execution"]
        if message := self.folder.save(execution.artifacts):
            echo(message, err=True)
        if execution.truncated:
            echo("Output or files were larger than the limits, and are not complete.", err=True)


def read_tests(path: str | None) -> str | None:
    """Return the text of a file of tests.

    Raises:
        click.BadParameter: It cannot be read, or is empty.
    """
    if path is None:
        return None
    try:
        tests = read_text(Path(path))
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--tests") from None
    if not tests.strip():
        raise click.BadParameter(f"{path!r} is empty.", param_hint="--tests")
    return tests
