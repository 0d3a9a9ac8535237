"""What visitors of the page do, without the page: each has a conversation, files and at most one question at a time."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import time
import uuid
import zipfile
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from code_chains.chains.validate import ApprovalRequest
from code_chains.code_chain import CodeChain
from code_chains.errors import CodeChainsError, InputError
from code_chains.export import export, safe_name
from code_chains.extraction import extract_code, extract_fenced
from code_chains.files import keep
from code_chains.inputs import check_query
from code_chains.page.approval import ASKED, PATIENCE, Approval
from code_chains.page.looks import LONGEST
from code_chains.progress import DOING, explained, note
from code_chains.state import Artifact, Execution, Source, StopReason, Turn, Verdict

__all__ = ["MOST_BYTES", "Entry", "Line", "Visit", "Visits"]

_STOPPED_BY: Mapping[str, str] = {
    "usd": "The budget is spent: its limit of dollars is reached.",
    "tokens": "The budget is spent: its limit of tokens is reached.",
    "model_calls": "The budget is spent: its limit of model calls is reached.",
    "seconds": "The budget is spent: its limit of seconds is reached.",
}
_ENDED = (
    "The earlier conversation has ended, with its files, as nothing was done in it for long. A new one begins here."
)
_SWEEP = 60.0
_PART = 32
_MOST_MADE, _MOST_MADE_BY_ALL = 64 << 20, 512 << 20
MOST_BYTES, _MOST_BYTES_OF_ALL = 20 << 20, 1 << 30
"""What the files of a conversation may have together, and those of all."""

_Work = Callable[["Entry", Mapping[str, Path]], Coroutine[Any, Any, None]]


@dataclass(eq=False)
class Entry:
    """One turn as it is shown, from its question on.

    Attributes:
        query: What was asked.
        id: Names it in addresses.
        by_hand: Whether the program is the visitor's own.
        ahead: How many others come first; 0 when it is its turn.
        stage: What is being done, by its name in `progress.DOING`; empty before and after.
        done: What was done before that, in order.
        notes: What did not go well on the way.
        approval: The program that waits for a yes, if one does.
        reply: What the model has written of a program so far.
        code: The program that was kept.
        execution: How its run ended.
        output: What it showed.
        verdict: Whether that is an answer.
        sources: Examples that were shown to the model.
        answer: The answer so far.
        stop_reason: Why work on it ended.
        error: Why there is no outcome at all; the conversation is as it was before.
        running: Whether it is being worked on.
    """

    query: str
    by_hand: bool = False
    ahead: int = 0
    stage: str = ""
    done: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    approval: Approval | None = None
    reply: str = ""
    code: str = ""
    execution: Execution | None = None
    output: str = ""
    verdict: Verdict | None = None
    sources: tuple[Source, ...] = ()
    answer: str = ""
    stop_reason: StopReason | None = None
    error: str = ""
    running: bool = True
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _writing: str = field(default="", init=False)
    _read: tuple[int, str] = field(default=(0, ""), init=False)

    @property
    def told(self) -> bool:
        """Whether it became a turn of the conversation."""
        return not self.running and not self.error

    @property
    def limit(self) -> str:
        """Which limit of the budget has ended it; empty for none."""
        return _STOPPED_BY.get(self.stop_reason or "", "")

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """What its program made."""
        return self.execution.artifacts if self.execution else ()

    def let_go(self) -> None:
        """Keep nothing of what its program made."""
        if self.execution is not None:
            self.execution = replace(self.execution, artifacts=())

    def written(self, language: str) -> str:
        """The program, the one that waits for a yes, or about as much of it as the model has written.

        While it writes, its reply is read anew only when it has grown by a part of itself: each time would be too often.
        """
        if approval := self.approval:
            return approval.request.code
        if self.code or not self.reply:
            return self.code
        length, code = self._read
        rest = length // _PART if self.stage == "generate" else 0
        if not length <= len(self.reply) <= length + rest:
            reply = self.reply
            code = extract_code(reply) if language == "python" else extract_fenced(reply, language)
            self._read = len(reply), code
        return code

    def take(self, event: Mapping[str, Any]) -> None:
        """Go on to what an event of `astream_events` tells."""
        kind, name, data = event["event"], event["name"], event["data"]
        if kind == "on_chain_start" and name in DOING:
            self.stage = name
        elif kind == "on_chain_end" and name in DOING:
            self.done.append(name)
            if said := note(name, data.get("output")):
                self.notes.append(said)
        elif kind == "on_chat_model_start" and self.stage == "generate":
            self._writing, self.reply, self._read = event["run_id"], "", (0, "")
        elif kind == "on_chat_model_stream" and event["run_id"] == self._writing:
            self.reply += str(data["chunk"].text)
        elif kind == "on_chain_stream" and not event["parent_ids"]:
            self.add(data["chunk"])

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Go on to what a chunk of the result adds."""
        for key in ("code", "execution", "output", "verdict", "sources", "stop_reason"):
            if key in chunk:
                setattr(self, key, chunk[key])
        self.answer += chunk.get("answer") or ""


class Line:
    """Lets so many through at a time; the others wait in the order in which they came.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tickets: list[object] = []
        self._moved = asyncio.Condition()

    @asynccontextmanager
    async def place(self, tell: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait for one's turn, and have it.

        Args:
            tell: Is told how many come first, whenever that changes.
        """
        ticket = object()
        self._tickets.append(ticket)

        def is_next() -> bool:
            ahead = max(0, self._tickets.index(ticket) - self._most + 1)
            tell(ahead)
            return ahead == 0

        try:
            async with self._moved:
                await self._moved.wait_for(is_next)
            yield
        finally:
            self._tickets.remove(ticket)
            await asyncio.shield(self._move())

    async def _move(self) -> None:
        async with self._moved:
            self._moved.notify_all()


class Visit:
    """One visitor's conversation.

    Args:
        chain: What answers.
        line: Where questions wait for their turn.
        folder: Where uploaded files are kept.
        everyone: Gives all visits, which are bounded together.

    Attributes:
        entries: The turns, the first one first.
        files: Uploaded files, by name.
        uploaded: Bytes of all files that were uploaded.
        draft: A question that was stopped or not answered, to be asked again or changed.
        notice: What is said before the first turn.
        dark: Whether the page is dark; None follows the system.
        version: Changes with everything that is shown.
        seen: When something was done, by the monotonic clock.
    """

    def __init__(self, chain: CodeChain, line: Line, folder: Path, everyone: Callable[[], Collection[Visit]]) -> None:
        self._chain, self._line, self._folder, self._everyone = chain, line, folder, everyone
        self.session_id = f"page-{uuid.uuid4().hex}"
        self.entries: list[Entry] = []
        self.files: dict[str, Path] = {}
        self.draft = self.notice = ""
        self.dark: bool | None = None
        self.version = 0
        self.seen = time.monotonic()
        self._pending: dict[str, Path] = {}
        self.uploaded = 0
        self._task: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()

    @property
    def language(self) -> str:
        """What programs are written in."""
        return self._chain.place.language if self._chain.place else "python"

    @property
    def busy(self) -> bool:
        """Whether a question or a program of the visitor's is being worked on."""
        return self._task is not None and not self._task.done()

    @property
    def is_blank(self) -> bool:
        """Whether nothing would be lost with it."""
        return not (self.entries or self.files or self.busy)

    @property
    def made(self) -> int:
        """Bytes of what its programs made."""
        return sum(len(artifact.data) for entry in self.entries for artifact in entry.artifacts)

    def ask(self, query: str) -> None:
        """Begin to answer a question.

        Raises:
            InputError: The question cannot be used, or another one is being answered.
        """
        self._begin(Entry(check_query(query).strip()), self._answer)

    def run(self, code: str, query: str) -> None:
        """Begin to run a program of the visitor's own.

        Raises:
            InputError: There is no program, or a question is being answered.
        """
        if not code.strip():
            raise InputError("There is no program to run.")
        self._begin(Entry(query, by_hand=True, code=code), self._execute)

    def _begin(self, entry: Entry, work: _Work) -> None:
        self._check_idle()
        self.entries = [one for one in self.entries if one.told]
        self.entries.append(entry)
        self.draft = ""
        self._task = asyncio.create_task(self._work(entry, work))
        self._changed()

    async def _work(self, entry: Entry, work: _Work) -> None:
        try:
            async with self._line.place(partial(self._wait, entry)):
                given = dict(self._pending)
                await work(entry, given)
            if entry.verdict is not None and entry.verdict.ok and self._keeps_files:
                self._pending = {name: path for name, path in self._pending.items() if given.get(name) != path}
        except asyncio.CancelledError:
            self._stopped(entry)
            raise
        except Exception as error:
            entry.error = explained(error)
            self.draft = "" if entry.by_hand else entry.query
        finally:
            entry.running, entry.stage, self.seen = False, "", time.monotonic()
            self._make_room()
            self._changed()

    def _make_room(self) -> None:
        """Let go of what the oldest programs made, if it is too much: here, and then where it is most."""
        while self.made > _MOST_MADE:
            self._let_go()
        while sum(one.made for one in self._everyone()) > _MOST_MADE_BY_ALL:
            max(self._everyone(), key=lambda one: one.made)._let_go()

    def _let_go(self) -> None:
        next(entry for entry in self.entries if entry.artifacts).let_go()

    @property
    def _keeps_files(self) -> bool:
        """Whether files that a program was given are there for the next one."""
        return self._chain.conversations is not None and self._chain.conversations.keep_state

    async def _answer(self, entry: Entry, files: Mapping[str, Path]) -> None:
        ASKED.set(partial(self._ask_for, entry))
        state = {"query": entry.query, "session_id": self.session_id, "files": files}
        events = cast("AsyncIterator[Any]", self._chain.astream_events(state, version="v2"))
        async with aclosing(cast("Any", events)):
            async for event in events:
                entry.take(event)
                self._changed()

    async def _ask_for(self, entry: Entry, request: ApprovalRequest) -> bool | str:
        if len(request.code) > LONGEST:
            return "It is too long to be read before it runs. Write a shorter program."
        async with self._asking:  # Several may be asked for at once.
            approval = entry.approval = Approval(request, asyncio.Future())
            self._changed()
            try:
                return await asyncio.wait_for(approval.said, PATIENCE)
            except TimeoutError:  # Whoever is away is not asked again, and keeps no place.
                entry.error = "Nobody approved the program in time, so nothing was run. Ask again."
                if self._task is not None:
                    self._task.cancel()
                return entry.error
            finally:
                entry.approval = None
                self._changed()

    async def _execute(self, entry: Entry, files: Mapping[str, Path]) -> None:
        entry.stage = "execute"
        entry.add(await self._chain.aexecute(entry.code, self.session_id, query=entry.query, files=files))

    def _wait(self, entry: Entry, ahead: int) -> None:
        entry.ahead = ahead
        self._changed()

    def _stopped(self, entry: Entry) -> None:
        if entry.by_hand:  # The program must not be lost.
            entry.error = "Stopped. The conversation is as it was before."
            return
        self.draft = entry.query
        if not entry.error:
            self.entries.remove(entry)

    async def stop(self) -> None:
        """Stop what is being worked on; the conversation is as it was before, and the question is the draft."""
        await asyncio.sleep(0)  # Work that is cancelled before it begins would not know of it.
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def undo(self) -> None:
        """Take back the last turn.

        Raises:
            InputError: There is none, or a question is being answered.
        """
        self._check_idle()
        self._task = asyncio.create_task(self._take_back())
        await self._task

    async def _take_back(self) -> None:
        if not self.entries:
            raise InputError("There is nothing to take back.")
        entry = self.entries[-1]
        if entry.told and (turn := await asyncio.to_thread(self._chain.undo, self.session_id)) is not None:
            self._pending = {name: Path(path) for name, path in turn.files.items()} | self._pending
        self.entries.remove(entry)
        self.draft = "" if entry.by_hand else entry.query
        self._changed()

    async def begin_anew(self, notice: str = "") -> None:
        """Stop, and forget the conversation and its files.

        Args:
            notice: What is said before the first turn of the next one.
        """
        await self.stop()
        self._task = asyncio.create_task(self._forget(notice))
        await self._task

    async def _forget(self, notice: str) -> None:
        await asyncio.to_thread(self._chain.forget, self.session_id)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self.entries, self.files, self._pending, self.draft, self.uploaded = [], {}, {}, "", 0
        self.notice = notice
        self._changed()

    async def add_file(self, name: str, data: bytes) -> str:
        """Keep a file for the next question's program, and those after it; its name there.

        Raises:
            InputError: It cannot be called so, or there is no room for it.
        """
        name = safe_name(Path(name).name)
        if self.uploaded + len(data) > MOST_BYTES:
            raise InputError(
                f"The files of a conversation may have {MOST_BYTES >> 20} MB together; {name!r} is too much."
            )
        if sum(one.uploaded for one in self._everyone()) + len(data) > _MOST_BYTES_OF_ALL:
            raise InputError("There is no room for more files of visitors at the moment. Try again later.")
        self.uploaded += len(data)
        # A turn that is done over again needs the file as it was then.
        path = self._folder / uuid.uuid4().hex / name
        await asyncio.to_thread(_keep, path, data)
        self.files[name] = self._pending[name] = path
        self._changed()
        return name

    def artifact(self, entry: str, number: int) -> Artifact | None:
        """Something that the program of an entry made; None if there is no such thing."""
        made = [artifact for one in self.entries if one.id == entry for artifact in one.artifacts]
        return made[number] if 0 <= number < len(made) else None

    async def take_home(self) -> tuple[str, bytes]:
        """The conversation as a notebook, in an archive if files belong to it: its name and its content.

        Raises:
            InputError: There is nothing to keep yet.
        """
        return await asyncio.to_thread(lambda: _packed(self._chain.turns(self.session_id)))

    def _check_idle(self) -> None:
        if self.busy:
            raise InputError("The conversation is busy with a question. Wait for its answer, or stop it.")

    def _changed(self) -> None:
        self.version += 1


class Visits:
    """The visitors, each with a conversation of their own. An asynchronous context manager; leaving it forgets them all.

    Args:
        chain: What answers all of them.
        concurrency: How many questions are worked on at a time.
        idle: Seconds after which a visitor who does nothing is forgotten.
        most: How many visitors are remembered. One more takes the place of one who has neither asked nor uploaded
            anything, or has to wait until one is forgotten.
    """

    def __init__(self, chain: CodeChain, *, concurrency: int = 2, idle: float = 7200.0, most: int = 200) -> None:
        self._chain, self._idle, self._most = chain, idle, most
        self._line = Line(concurrency)
        self._all: OrderedDict[str, Visit] = OrderedDict()
        self._folder = tempfile.TemporaryDirectory(prefix="code-chains-page-")
        self._leaving: set[asyncio.Task[None]] = set()
        self._ended: deque[str] = deque(maxlen=10 * most)

    async def __aenter__(self) -> Visits:
        self._sweeper = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeper
        for name in list(self._all):
            self._forget(name)
        await asyncio.gather(*self._leaving)
        self._folder.cleanup()

    def __len__(self) -> int:
        return len(self._all)

    def of(self, visitor: str) -> Visit:
        """The visit of a visitor who does something; a new one if there is none.

        Raises:
            InputError: There are too many visitors.
        """
        if visitor not in self._all:
            self._make_room()
            self._all[visitor] = self._new(visitor)
        self._all.move_to_end(visitor)
        visit = self._all[visitor]
        visit.seen = time.monotonic()
        return visit

    def _new(self, visitor: str) -> Visit:
        visit = Visit(self._chain, self._line, Path(self._folder.name, uuid.uuid4().hex), self._all.values)
        if visitor in self._ended:
            self._ended.remove(visitor)
            visit.notice = _ENDED
        return visit

    def find(self, visitor: str) -> Visit | None:
        """The visit of a visitor who only looks, if there is one."""
        return self._all.get(visitor)

    def _make_room(self) -> None:
        """See that there is a place for one more."""
        self.forget_idle()
        if len(self._all) < self._most:
            return
        blank = next((name for name, visit in self._all.items() if visit.is_blank), None)
        if blank is None:
            raise InputError("There are too many visitors at the moment. Come back later.")
        self._forget(blank)

    def forget_idle(self) -> None:
        """Forget who has done nothing for too long."""
        before = time.monotonic() - self._idle
        for name in [name for name, visit in self._all.items() if visit.seen < before and not visit.busy]:
            self._forget(name)

    def _forget(self, name: str) -> None:
        visit = self._all.pop(name)
        notice = "" if visit.is_blank and not visit.notice else _ENDED
        if notice:
            self._ended.append(name)
        leaving = asyncio.create_task(_leave(visit, notice))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP, self._idle / 2))
            self.forget_idle()


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    keep(path, data)


def _packed(turns: Sequence[Turn]) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="code-chains-export-") as folder:
        written = export(turns, Path(folder, "conversation.ipynb"))
        if len(written) == 1:
            return written[0].name, written[0].read_bytes()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
            for path in written:
                packing.write(path, path.relative_to(folder))
        return "conversation.zip", archive.getvalue()


async def _leave(visit: Visit, notice: str) -> None:
    with suppress(CodeChainsError):
        await visit.begin_anew(notice)
