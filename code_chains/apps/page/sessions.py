"""A client's session, independent of the page's widgets: a conversation, files, and at most one question at a time."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import time
import uuid
import zipfile
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, cast

from code_chains.apps.page.approval import APPROVER, TIMEOUT_S, Approval
from code_chains.apps.page.entries import ChatEntry, EntryOutcome
from code_chains.apps.page.html import MAX_CHARS
from code_chains.apps.page.queue import RequestQueue
from code_chains.callbacks.redaction import describe_error
from code_chains.chains.validate import ApprovalRequest
from code_chains.code_chain import CodeChain
from code_chains.conversations.export import export
from code_chains.errors import InputError
from code_chains.filenames import safe_name
from code_chains.inputs import check_query
from code_chains.state import Artifact, Turn
from code_chains.storage.files import atomic_write

__all__ = ["MAX_UPLOAD_BYTES", "PageSession"]

_MAX_ARTIFACT_BYTES, _MAX_TOTAL_ARTIFACT_BYTES = 64 << 20, 512 << 20
"""Maximum size of the artifacts of one session, and of all."""
MAX_UPLOAD_BYTES, _MAX_TOTAL_UPLOAD_BYTES = 20 << 20, 1 << 30
"""Maximum size of the uploaded files of one session, and of all."""

_Work = Callable[[ChatEntry, Mapping[str, Path]], Coroutine[Any, Any, None]]


class PageSession:
    """The session of one client.

    Args:
        chain: What answers.
        queue: Where questions wait for a slot.
        folder: Where uploaded files are stored.
        all_sessions: Returns all open sessions, whose files are limited together.

    Attributes:
        entries: The turns, the first one first.
        files: Uploaded files, by name.
        uploaded_bytes: Size of all files that were uploaded.
        draft: A question that was stopped or not answered, to be submitted again or edited.
        notice: A message above the first turn.
        is_dark: Whether the page is dark; None follows the system.
        version: Changes with everything that is displayed.
        last_active: Time of the last action, by the monotonic clock.
    """

    def __init__(
        self,
        chain: CodeChain,
        queue: RequestQueue,
        folder: Path,
        all_sessions: Callable[[], Collection[PageSession]],
    ) -> None:
        self._chain, self._queue, self._folder, self._all_sessions = chain, queue, folder, all_sessions
        self.session_id = f"page-{uuid.uuid4().hex}"
        self.entries: list[ChatEntry] = []
        self.files: dict[str, Path] = {}
        self.draft = self.notice = ""
        self.is_dark: bool | None = None
        self.version = 0
        self.last_active = time.monotonic()
        self.uploaded_bytes = 0
        self._pending_files: dict[str, Path] = {}
        self._task: asyncio.Task[None] | None = None
        self._approval_lock = asyncio.Lock()

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
        return not (self.entries or self.files or self.is_busy)

    @property
    def artifact_bytes(self) -> int:
        """Size of the artifacts of all its programs."""
        return sum(len(artifact.data) for entry in self.entries for artifact in entry.outcome.artifacts)

    def ask(self, query: str) -> None:
        """Start to answer a question.

        Raises:
            InputError: The question is invalid, or another one is being answered.
        """
        self._start(ChatEntry(check_query(query).strip()), self._answer)

    def run(self, code: str, query: str) -> None:
        """Start to run a program of the user.

        Raises:
            InputError: There is no program, or a question is being answered.
        """
        if not code.strip():
            raise InputError("There is no program to run.")
        self._start(ChatEntry(query, is_user_code=True, outcome=EntryOutcome(code=code)), self._execute)

    def _start(self, entry: ChatEntry, work: _Work) -> None:
        self._check_idle()
        self.entries = [turn for turn in self.entries if turn.is_turn]
        self.entries.append(entry)
        self.draft = ""
        self._task = asyncio.create_task(self._work(entry, work))
        self._notify()

    async def _work(self, entry: ChatEntry, work: _Work) -> None:
        try:
            async with self._queue.slot(partial(self._set_queue_position, entry)):
                files = dict(self._pending_files)
                await work(entry, files)
            self._settle_files(entry, files)
        except asyncio.CancelledError:
            self._handle_stop(entry)
            raise
        except Exception as error:
            entry.outcome.error = describe_error(error)
            self.draft = "" if entry.is_user_code else entry.query
        finally:
            entry.progress.is_running, entry.progress.stage, self.last_active = False, "", time.monotonic()
            self._limit_artifacts()
            self._notify()

    def _settle_files(self, entry: ChatEntry, files: Mapping[str, Path]) -> None:
        """Stop passing files that a successful program has received, if the conversation keeps them."""
        conversations, verdict = self._chain.conversations, entry.outcome.verdict
        keeps_files = conversations is not None and conversations.keep_state
        if keeps_files and verdict is not None and verdict.ok:
            pending = self._pending_files.items()
            self._pending_files = {name: path for name, path in pending if files.get(name) != path}

    def _limit_artifacts(self) -> None:
        """Drop artifacts of the oldest programs while there are too many, here or in all sessions together."""
        while self.artifact_bytes > _MAX_ARTIFACT_BYTES:
            self._drop_oldest_artifacts()
        while sum(session.artifact_bytes for session in self._all_sessions()) > _MAX_TOTAL_ARTIFACT_BYTES:
            largest = max(self._all_sessions(), key=lambda session: session.artifact_bytes)
            largest._drop_oldest_artifacts()

    def _drop_oldest_artifacts(self) -> None:
        next(entry for entry in self.entries if entry.outcome.artifacts).outcome.drop_artifacts()

    async def _answer(self, entry: ChatEntry, files: Mapping[str, Path]) -> None:
        APPROVER.set(partial(self._request_approval, entry))
        state = {"query": entry.query, "session_id": self.session_id, "files": files}
        events = cast("AsyncIterator[Any]", self._chain.astream_events(state, version="v2"))
        async with aclosing(cast("Any", events)):
            async for event in events:
                entry.handle_event(event)
                self._notify()

    async def _request_approval(self, entry: ChatEntry, request: ApprovalRequest) -> bool | str:
        if len(request.code) > MAX_CHARS:
            return "It is too long to be read before it runs. Write a shorter program."
        async with self._approval_lock:  # Samples may request approval concurrently.
            approval = entry.progress.approval = Approval(request, asyncio.Future())
            self._notify()
            try:
                return await asyncio.wait_for(approval.decision, TIMEOUT_S)
            except TimeoutError:  # An absent user gets no further requests, and frees the slot.
                entry.outcome.error = "The program was not approved in time and did not run. Ask again."
                if self._task is not None:
                    self._task.cancel()
                return entry.outcome.error
            finally:
                entry.progress.approval = None
                self._notify()

    async def _execute(self, entry: ChatEntry, files: Mapping[str, Path]) -> None:
        entry.progress.stage = "execute"
        outcome = entry.outcome
        outcome.add(await self._chain.aexecute(outcome.code, self.session_id, query=entry.query, files=files))

    def _set_queue_position(self, entry: ChatEntry, position: int) -> None:
        entry.progress.queue_position = position
        self._notify()

    def _handle_stop(self, entry: ChatEntry) -> None:
        if entry.is_user_code:  # The program must not be lost.
            entry.outcome.error = "Stopped. The conversation is unchanged."
            return
        self.draft = entry.query
        if not entry.outcome.error:
            self.entries.remove(entry)

    async def stop(self) -> None:
        """Stop the running question and make it the draft; the conversation is unchanged."""
        await asyncio.sleep(0)  # A task cancelled before its first step would not run its handlers.
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def undo(self) -> None:
        """Undo the last turn.

        Raises:
            InputError: There is none, or a question is being answered.
        """
        self._check_idle()
        self._task = asyncio.create_task(self._undo())
        await self._task

    async def _undo(self) -> None:
        if not self.entries:
            raise InputError("There is nothing to undo.")
        entry = self.entries[-1]
        if entry.is_turn and (turn := await asyncio.to_thread(self._chain.undo, self.session_id)) is not None:
            self._pending_files = {
                name: Path(path) for name, path in turn.files.items()
            } | self._pending_files
        self.entries.remove(entry)
        self.draft = "" if entry.is_user_code else entry.query
        self._notify()

    async def reset(self, notice: str = "") -> None:
        """Stop, and delete the conversation and its files.

        Args:
            notice: A message above the first turn of the next conversation.
        """
        await self.stop()
        self._task = asyncio.create_task(self._reset(notice))
        await self._task

    async def _reset(self, notice: str) -> None:
        await asyncio.to_thread(self._chain.forget, self.session_id)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self.entries, self.files, self._pending_files, self.draft, self.uploaded_bytes = [], {}, {}, "", 0
        self.notice = notice
        self._notify()

    async def add_file(self, name: str, data: bytes) -> str:
        """Store a file for the programs from the next question on, and return its name.

        Raises:
            InputError: The name is invalid, or the file exceeds a limit.
        """
        name = safe_name(Path(name).name)
        if self.uploaded_bytes + len(data) > MAX_UPLOAD_BYTES:
            limit = f"at most {MAX_UPLOAD_BYTES >> 20} MB together"
            raise InputError(f"{name!r} is too large: the files of a conversation may have {limit}.")
        if (
            sum(session.uploaded_bytes for session in self._all_sessions()) + len(data)
            > _MAX_TOTAL_UPLOAD_BYTES
        ):
            raise InputError("There is no space for more files at the moment. Try again later.")
        self.uploaded_bytes += len(data)
        # Each version gets a folder of its own: a turn that runs again needs the file as it was then.
        path = self._folder / uuid.uuid4().hex / name
        await asyncio.to_thread(_write, path, data)
        self.files[name] = self._pending_files[name] = path
        self._notify()
        return name

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


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    atomic_write(path, data)


def _pack_notebook(turns: Sequence[Turn]) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="code-chains-export-") as folder:
        paths = export(turns, Path(folder, "conversation.ipynb"))
        if len(paths) == 1:
            return paths[0].name, paths[0].read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                archive.write(path, path.relative_to(folder))
        return "conversation.zip", buffer.getvalue()
