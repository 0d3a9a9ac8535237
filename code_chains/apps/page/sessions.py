"""A client's session, independent of the page's widgets: a conversation, files, and at most one question at a time."""

from __future__ import annotations

import asyncio
import functools
import io
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from code_chains.apps.page.approval import PageApprover
from code_chains.apps.page.entries import ChatEntry, EntryOutcome
from code_chains.apps.page.failures import report_error
from code_chains.apps.page.history import ConversationHistory
from code_chains.apps.page.runner import EntryRunner
from code_chains.apps.page.uploads import Uploads, upload_name
from code_chains.apps.program_queue import ProgramQueue
from code_chains.assembly.code_chain import CodeChain
from code_chains.conversations.export import export
from code_chains.errors import InputError
from code_chains.inputs import check_query
from code_chains.state import Artifact, Turn
from code_chains.temporary import process_folder

P = ParamSpec("P")
_MAX_ARTIFACT_BYTES, _MAX_TOTAL_ARTIFACT_BYTES = 64 << 20, 512 << 20
"""Maximum size of the artifacts of one session, and of all."""


def _exclusive(
    work: Callable[Concatenate[PageSession, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[PageSession, P], Coroutine[Any, Any, None]]:
    """Let a method change the conversation only while no question is answered, and none can begin."""

    @functools.wraps(work)
    async def change(session: PageSession, /, *args: P.args, **kwargs: P.kwargs) -> None:
        session._check_idle()
        session._task = asyncio.create_task(work(session, *args, **kwargs))
        await session._task

    return change


class PageSession:
    """An open conversation of a client.

    Args:
        client_id: The client.
        chains: What answers, by the name of the model. They share their conversations.
        queue: Where programs wait for a slot.
        history: The stored conversations.
        all_sessions: Returns all open sessions, whose files are limited together.
        session_id: The name of its conversation; None for a new one.

    Attributes:
        client_id: The client.
        session_id: The name of its conversation.
        model: The name of the model that answers the next question.
        entries: The turns, the first one first.
        uploads: The files.
        draft: A question that was stopped or not answered, to be submitted again or edited.
        notice: A message above the first turn.
        is_dark: Whether the page is dark; None follows the system.
        version: Changes with everything that is displayed.
        last_active: Time of the last action, by the monotonic clock.
    """

    def __init__(
        self,
        client_id: str,
        chains: Mapping[str, CodeChain],
        queue: ProgramQueue,
        history: ConversationHistory,
        all_sessions: Callable[[], Collection[PageSession]],
        *,
        is_owners: bool = False,
        session_id: str | None = None,
    ) -> None:
        self.client_id: str = client_id
        self._chains, self._queue, self._is_owners = chains, queue, is_owners
        self.history: ConversationHistory = history
        self._all_sessions = all_sessions
        self.model: str = next(iter(chains))
        self._begin(session_id or history.new_id(client_id))
        self.notice: str = ""
        self.is_dark: bool | None = None
        self.version: int = 0
        self._uploading = 0
        self.last_active: float = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def _begin(self, session_id: str) -> None:
        """Turn to a conversation, without its turns and files."""
        self.session_id: str = session_id
        self.draft: str = ""
        self.entries: list[ChatEntry] = []
        self._approved: set[PageApprover] = set()
        self.uploads: Uploads = Uploads(self.history.folder(session_id))

    @property
    def _chain(self) -> CodeChain:
        return self._chains[self.model]

    @property
    def files(self) -> dict[str, Path]:
        """The files, by name."""
        return self.uploads.paths

    @property
    def _keeps_files(self) -> bool:
        conversations = self._chain.conversations
        return conversations is not None and conversations.keep_state

    @property
    def language(self) -> str:
        """The language of the programs."""
        return self._chain.executor.language if self._chain.executor else "python"

    @property
    def is_busy(self) -> bool:
        """Whether a question or a program of the user runs or waits."""
        return self._task is not None and not self._task.done()

    @property
    def is_blank(self) -> bool:
        """Whether closing it would lose nothing."""
        return not (self.entries or self.files or self.is_busy or self.is_uploading)

    @property
    def is_uploading(self) -> bool:
        """Whether a file is being stored."""
        return self._uploading > 0

    def ask(self, query: str) -> None:
        """Start to answer a question.

        Raises:
            InputError: The question is invalid, or another one is being answered.
        """
        self._start(ChatEntry(check_query(query).strip()))

    def run(self, code: str, query: str) -> None:
        """Start to run a program of the user.

        Raises:
            InputError: There is no program, or a question is being answered.
        """
        if not code.strip():
            raise InputError("There is no program to run.")
        self._start(ChatEntry(query, is_user_code=True, outcome=EntryOutcome(code=code)))

    def _start(self, entry: ChatEntry) -> None:
        self._check_idle()
        self.entries = [turn for turn in self.entries if turn.is_turn]
        self.entries.append(entry)
        self.draft = ""
        self._task = asyncio.create_task(self._work(entry))
        self._notify()

    async def _work(self, entry: ChatEntry) -> None:
        try:
            files = dict(self.uploads.pending)
            self.history.touch(self.session_id)
            in_turn = partial(self._queue.limit, learner=self.client_id)
            runner = EntryRunner(entry, self._chain, self.session_id, in_turn, self._notify, self._approved)
            await runner.run(files)
            # The state of the conversation holds what a successful program has received.
            if self._keeps_files and entry.outcome.verdict is not None and entry.outcome.verdict.ok:
                self.uploads.settle(files)
        except asyncio.CancelledError:
            self._handle_stop(entry)
            raise
        except Exception as error:
            entry.outcome.error = report_error(error, to_owner=self._is_owners)
            self.draft = "" if entry.is_user_code else entry.query
        finally:
            entry.progress.is_running, entry.progress.stage, self.last_active = False, "", time.monotonic()
            _limit_artifacts(self, self._all_sessions())
            self._notify()

    def _handle_stop(self, entry: ChatEntry) -> None:
        self.draft = "" if entry.is_user_code else entry.query
        entry.outcome.code = entry.visible_code(self.language)
        if entry.outcome.code.strip():  # Neither the program nor what it has printed must be lost.
            entry.outcome.error = entry.outcome.error or "Stopped. The conversation is unchanged."
        elif not entry.outcome.error:
            self.entries.remove(entry)

    async def stop(self) -> None:
        """Stop the running question and make it the draft; the conversation is unchanged."""
        await asyncio.sleep(0)  # A task cancelled before its first step would not run its handlers.
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    @_exclusive
    async def undo(self) -> None:
        """Undo the last turn.

        Raises:
            InputError: There is none, or a question is being answered.
        """
        if not self.entries:
            raise InputError("There is nothing to undo.")
        entry = self.entries[-1]
        if entry.is_turn and (turn := await asyncio.to_thread(self._chain.undo, self.session_id)) is not None:
            self.uploads.take_back(turn)
        self.entries.remove(entry)
        self.draft = "" if entry.is_user_code else entry.query
        self._notify()

    async def reset(self, notice: str = "") -> None:
        """Stop, delete the conversation and its files, and begin a new one.

        Args:
            notice: A message above the first turn of the new conversation.
        """
        while self.is_busy:
            await self.stop()
        await self._reset(notice)

    @_exclusive
    async def _reset(self, notice: str) -> None:
        await asyncio.to_thread(self.history.delete, self.client_id, self.session_id)
        self._begin(self.history.new_id(self.client_id))
        self.notice = notice
        self._notify()

    @_exclusive
    async def switch(self, session_id: str | None = None) -> None:
        """Turn to a stored conversation of the client, or to a new one; the current one stays in store.

        Args:
            session_id: The conversation; None for a new one.

        Raises:
            InputError: A question is being answered, or there is no such conversation.
        """
        turns = []
        if session_id is not None:
            turns = await asyncio.to_thread(self.history.turns, self.client_id, session_id)
        if not self.is_stored and session_id != self.session_id:
            await asyncio.to_thread(self.history.delete, self.client_id, self.session_id)
        self._begin(session_id or self.history.new_id(self.client_id))
        self.entries = [ChatEntry.from_turn(turn) for turn in turns]
        self.uploads.restore(turns, keeps_files=self._keeps_files)
        _limit_artifacts(self, self._all_sessions())
        self.notice = ""
        self._notify()

    async def delete(self, session_id: str) -> None:
        """Delete a stored conversation of the client.

        Raises:
            InputError: A question is being answered, or there is no such conversation.
        """
        self._check_idle()
        self.history.check_owner(self.client_id, session_id)
        is_open = [session for session in self._all_sessions() if session.session_id == session_id]
        for session in is_open:  # In another tab, too.
            session._check_idle()
            await session.reset()
        if not is_open:
            await asyncio.to_thread(self.history.delete, self.client_id, session_id)

    async def close(self, notice: str) -> None:
        """Stop, and free what the conversation holds besides its turns and files.

        Args:
            notice: A message above the first turn, if the conversation and its files cannot be found again.
        """
        await self.stop()
        if self._chain.conversations is not None:
            await asyncio.to_thread(self._chain.conversations.forget, self.session_id)
        if not self.is_stored:
            await self.reset("" if self.is_blank and not self.notice else notice)

    @property
    def is_stored(self) -> bool:
        """Whether the conversation can be found again."""
        return self.history.is_listable and any(entry.is_turn for entry in self.entries)

    async def add_file(self, name: str, data: bytes) -> str:
        """Store a file for the programs from the next question on, and return its name.

        Raises:
            InputError: The file exceeds a limit.
        """
        name = upload_name(name)
        self.uploads.reserve(name, len(data))  # Before anything else runs: concurrent uploads are counted.
        self._uploading += 1
        is_open = [session.session_id for session in self._all_sessions()]
        try:
            if not await asyncio.to_thread(self.history.make_space, len(data), is_open):
                raise InputError("There is no space for more files at the moment. Try again later.")
            await asyncio.to_thread(partial(self.uploads.add, name, data, keeps_older=self.is_busy))
        finally:
            self._uploading -= 1
            self.last_active = time.monotonic()
            self.uploads.measure()
        self._notify()
        return name

    def remove_file(self, name: str) -> None:
        """Remove a file that no program has received yet.

        Raises:
            InputError: There is no such file, or a question is being answered.
        """
        self._check_idle()
        self.uploads.remove(name)
        self._notify()

    def select_model(self, name: str) -> None:
        """Have another model answer from the next question on.

        Raises:
            InputError: There is no such model, or a question is being answered.
        """
        self._check_idle()
        if name not in self._chains:
            raise InputError("There is no such model.")
        self.model = name
        self._notify()

    def artifact(self, entry_id: str, index: int) -> Artifact | None:
        """Return an artifact of an entry's program; None if there is no such artifact."""
        entry = next((entry for entry in self.entries if entry.id == entry_id), None)
        artifacts = entry.outcome.artifacts if entry is not None else ()
        return artifacts[index] if 0 <= index < len(artifacts) else None

    async def export_notebook(self) -> tuple[str, bytes]:
        """Return name and content of the conversation as a notebook, in an archive if it comes with files.

        Raises:
            InputError: There is nothing to export yet.
        """
        return await asyncio.to_thread(lambda: _pack_notebook(self._chain.turns(self.session_id)))

    def _check_idle(self) -> None:
        if self.is_busy:
            raise InputError("The conversation is busy with a question. Wait for its answer, or stop it.")

    def _notify(self) -> None:
        self.version += 1


def _limit_artifacts(session: PageSession, all_sessions: Collection[PageSession]) -> None:
    """Drop artifacts of the oldest programs while a session, or all of them together, have too many."""
    while _artifact_bytes(session) > _MAX_ARTIFACT_BYTES:
        _drop_oldest_artifacts(session)
    while sum(map(_artifact_bytes, all_sessions)) > _MAX_TOTAL_ARTIFACT_BYTES:
        _drop_oldest_artifacts(max(all_sessions, key=_artifact_bytes))


def _artifact_bytes(session: PageSession) -> int:
    return sum(len(artifact.data) for entry in session.entries for artifact in entry.outcome.artifacts)


def _drop_oldest_artifacts(session: PageSession) -> None:
    next(entry for entry in session.entries if entry.outcome.artifacts).outcome.drop_artifacts()


def _pack_notebook(turns: Sequence[Turn]) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="export-", dir=process_folder()) as folder:
        paths = export(turns, Path(folder, "conversation.ipynb"))
        if len(paths) == 1:
            return paths[0].name, paths[0].read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                archive.write(path, path.relative_to(folder))
        return "conversation.zip", buffer.getvalue()
