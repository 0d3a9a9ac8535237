"""Sessions of the page, without a browser."""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

from code_chains import Budget, Repair, SandboxExecutor, create_code_chain
from code_chains.apps.page import PageApprover, approve
from code_chains.apps.page.approval import Approval
from code_chains.apps.page.entries import ChatEntry
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.sessions import PageSession
from code_chains.apps.page.uploads import MAX_UPLOAD_BYTES, Uploads
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import ValidateChain
from code_chains.errors import InputError, IsolationError, OverloadedError
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code


def last_line(messages: list[BaseMessage]) -> str:
    """A model whose program is the last line of the question."""
    return str(messages[-1].text).splitlines()[-1] if asks_for_code(messages) else "Done."


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor() as sandbox:
        yield sandbox


@pytest.fixture
def chain(shared_sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(last_line), executor=shared_sandbox, solve=Repair(1)) as chain:
        yield chain


@pytest.fixture
async def sessions(chain: CodeChain) -> AsyncIterator[SessionRegistry]:
    async with SessionRegistry(chain, concurrency=1) as sessions:
        yield sessions


async def finished(session: PageSession) -> str:
    """Wait for the latest entry, and return its output."""
    while session.is_busy:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return session.entries[-1].outcome.output


@pytest.mark.smoke
@pytest.mark.host
async def test_a_question_is_answered(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("print(6 * 7)")
    assert await finished(session) == "42"
    assert (session.entries[0].outcome.code.strip(), session.entries[0].is_turn) == ("print(6 * 7)", True)


@pytest.mark.host
async def test_stages_and_the_program_come_before_the_answer(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("import time; time.sleep(0.5); print(1)")
    seen = set()
    while session.is_busy:
        entry = session.entries[-1]
        seen.add((entry.progress.stage, entry.visible_code("python").strip()))
        await asyncio.sleep(0.01)
    assert ("execute", "import time; time.sleep(0.5); print(1)") in seen


def test_a_long_reply_is_not_parsed_at_each_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def extract(reply: str) -> str:
        parsed.append(len(reply))
        return str(len(reply))

    monkeypatch.setattr("code_chains.apps.page.entries.extract_code", extract)
    entry = ChatEntry("?")
    entry.progress.stage = "generate"
    for _ in range(1500):
        entry.progress.reply += "x" * 40
        length = int(entry.visible_code("python"))
        assert len(entry.progress.reply) - length <= 60_000 / 32
    assert sum(parsed) < 35 * 60_000
    entry.progress.stage = "validate"
    assert entry.visible_code("python") == "60000"


async def test_a_user_program_continues_with_the_state_of_the_last_turn(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("x = 1; print(x)")
    await finished(session)
    session.run("x = 41; print(x)", "Another x")
    await finished(session)
    session.ask("print(x + 1)")
    assert await finished(session) == "42"


async def test_output_of_a_user_program_arrives_while_it_runs(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.run("import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)", "Count")
    while session.entries[-1].progress.printed != "begun\n":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await session.stop()


@pytest.mark.slow
async def test_one_question_at_a_time(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("import time; time.sleep(0.2); print(1)")
    with pytest.raises(InputError, match="busy"):
        session.ask("print(2)")
    with pytest.raises(InputError, match="busy"):
        await session.undo()
    assert await finished(session) == "1"


async def test_a_stopped_question_becomes_the_draft(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("x = 1; print(x)")
    await finished(session)
    question = "import time; x = 2; print(7, flush=True); time.sleep(60)"
    session.ask(question)
    while not session.entries[-1].progress.printed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await session.stop()
    stopped = session.entries[-1]
    assert (stopped.outcome.code.strip(), stopped.progress.printed, session.draft) == (
        question,
        "7\n",
        question,
    )
    assert (stopped.is_turn, stopped.outcome.error[:8]) == (False, "Stopped.")
    session.ask("print(x)")
    assert await finished(session) == "1"


async def test_a_question_stopped_at_once_becomes_the_draft(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("print(1)")
    await session.stop()
    assert (session.entries, session.draft) == ([], "print(1)")


async def test_a_learner_has_several_conversations_at_once(sessions: SessionRegistry) -> None:
    one = sessions.open("ann")
    other = sessions.new("ann")
    for session, number in ((one, 1), (other, 2)):
        session.ask(f"x = {number}; print(x)")
        await finished(session)
    assert [sessions.get("ann", session.session_id) for session in (one, other)] == [one, other]
    one.ask("print(x)")
    assert (await finished(one), len(other.entries)) == ("1", 1)


@pytest.mark.parametrize("session_id", ["", "../../etc", "page-0-1", "page-" + "0" * 32 + "-" + "0" * 32])
async def test_nobody_opens_a_conversation_that_is_not_theirs(
    sessions: SessionRegistry, session_id: str
) -> None:
    with pytest.raises(InputError, match="no such conversation"):
        await sessions.resume("ann", session_id)
    bob = sessions.open("bob")
    with pytest.raises(InputError, match="no such conversation"):
        await sessions.open("ann").delete(bob.session_id)
    assert sessions.get("bob") is bob


async def test_many_tabs_of_a_learner_leave_room_for_others(sessions: SessionRegistry) -> None:
    for _ in range(30):
        sessions.new("ann")
    assert len(sessions.sessions("ann")) == 8


@pytest.mark.slow
async def test_undo_restores_the_files(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    await session.add_file("sales.csv", b"amount\n42\n")
    session.ask("print(open('sales.csv').read())")
    await finished(session)
    await session.undo()
    assert session.entries == []
    session.ask("print(open('sales.csv').read().split()[1])")
    assert await finished(session) == "42"


@pytest.mark.slow
async def test_a_file_uploaded_during_a_question_is_for_the_next_one(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.ask("import time; time.sleep(0.3); print(1)")
    await asyncio.sleep(0.1)
    await session.add_file("sales.csv", b"42")
    await finished(session)
    session.ask("print(open('sales.csv').read())")
    assert await finished(session) == "42"


@pytest.mark.host
async def test_files_are_passed_to_each_question_without_persistent_state() -> None:
    model = ScriptedModel(
        lambda messages: "print(open('sales.csv').read())" if asks_for_code(messages) else "42."
    )
    with create_code_chain(model, executor="none") as chain:
        async with SessionRegistry(chain) as sessions:
            session = sessions.open("ann")
            await session.add_file("sales.csv", b"42")
            for _ in range(2):
                session.ask("What is in it?")
                assert await finished(session) == "42"


async def test_a_file_cannot_leave_its_folder(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    assert await session.add_file("../../etc/passwd", b"x") == "passwd"
    assert len(session.files["passwd"].parents) > 3


async def test_files_are_limited(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    await session.add_file("half.bin", b"x" * (MAX_UPLOAD_BYTES // 2 + 1))
    with pytest.raises(InputError, match="at most 20 MB together"):
        await session.add_file("other.bin", b"x" * (MAX_UPLOAD_BYTES // 2))
    assert list(session.files) == ["half.bin"]


async def test_artifacts_are_limited(sessions: SessionRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.apps.page.sessions._MAX_ARTIFACT_BYTES", 150)
    session = sessions.open("ann")
    for name in ("a", "b"):
        session.ask(f"open('{name}.txt', 'w').write('x' * 100)")
        await finished(session)
    assert [len(entry.outcome.artifacts) for entry in session.entries] == [0, 1]


async def test_the_files_of_all_sessions_are_limited(
    sessions: SessionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.apps.page.history.MAX_STORED_BYTES", 150)
    await sessions.open("ann").add_file("a.csv", b"x" * 100)
    with pytest.raises(InputError, match="no space for more files"):
        await sessions.open("bob").add_file("b.csv", b"x" * 100)
    await sessions.open("ann").reset()
    assert await sessions.open("bob").add_file("b.csv", b"x" * 100) == "b.csv"


@pytest.mark.slow
async def test_the_largest_session_loses_artifacts_first(
    sessions: SessionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.apps.page.sessions._MAX_TOTAL_ARTIFACT_BYTES", 250)
    for name, size in (("ann", 100), ("bob", 50), ("ann", 100), ("bob", 50)):
        sessions.open(name).ask(f"open('{size}.txt', 'w').write('x' * {size})")
        await finished(sessions.open(name))
    assert [
        [len(entry.outcome.artifacts) for entry in sessions.open(name).entries] for name in ("ann", "bob")
    ] == [
        [0, 1],
        [1, 1],
    ]


async def test_a_stopped_user_program_is_not_lost(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    session.run("import time; time.sleep(60)", "Wait")
    await asyncio.sleep(0.2)
    await session.stop()
    assert (session.entries[0].outcome.code, session.entries[0].outcome.error[:8]) == (
        "import time; time.sleep(60)",
        "Stopped.",
    )


def related(_: str) -> list[Document]:
    return [Document("print(1)", metadata={"source": "sums.py", "about": "Adds numbers"})]


async def test_examples_given_to_the_model_are_named(shared_sandbox: SandboxExecutor) -> None:
    with create_code_chain(
        ScriptedModel(last_line), executor=shared_sandbox, snippets=RunnableLambda(related)
    ) as chain:
        async with SessionRegistry(chain) as sessions:
            session = sessions.open("ann")
            session.ask("print(2)")
            await finished(session)
            assert [(source.name, source.about) for source in session.entries[0].outcome.sources] == [
                ("sums.py", "Adds numbers")
            ]


@pytest.fixture
def approving_chain(shared_sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(
        ScriptedModel(last_line),
        executor=shared_sandbox,
        solve=Repair(1),
        checks=ValidateChain(approve=approve),
    ) as chain:
        yield chain


@pytest.mark.rows(1)
@pytest.mark.parametrize(("is_approved", "status"), [(True, "ok"), (False, "refused")])
async def test_a_program_runs_only_if_approved(
    approving_chain: CodeChain, is_approved: bool, status: str
) -> None:
    async with SessionRegistry(approving_chain) as sessions:
        session = sessions.open("ann")
        session.ask("print(6 * 7)")
        while (approval := session.entries[0].progress.approval) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        entry = session.entries[0]
        assert (entry.visible_code("python"), entry.outcome.execution) == (approval.request.code, None)
        approval.decide(is_approved)
        await finished(session)
        execution = session.entries[0].outcome.execution
        assert (execution and execution.status, session.entries[0].progress.approval) == (status, None)


async def approval_of(session: PageSession) -> Approval:
    """Return the next request for approval."""
    while (approval := session.entries[-1].progress.approval) is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return approval


async def test_consent_to_connect_is_given_once_in_a_conversation(shared_sandbox: SandboxExecutor) -> None:
    consent = ValidateChain(approve=PageApprover(("api.example.org:443",), is_once=True))
    with create_code_chain(
        ScriptedModel(last_line), executor=shared_sandbox, solve=Repair(1), checks=consent
    ) as chain:
        async with SessionRegistry(chain) as sessions:
            session = sessions.open("ann")
            session.ask("print(1)")
            approval = await approval_of(session)
            assert approval.approver.addresses == ("api.example.org:443",)
            approval.decide(True)
            assert await finished(session) == "1"
            session.ask("print(2)")
            assert await finished(session) == "2"  # Without another request.
            await session.reset()
            session.ask("print(3)")
            (await approval_of(session)).decide(False)
            await finished(session)
            execution = session.entries[0].outcome.execution
            assert execution is not None
            assert execution.status == "refused"


async def test_a_program_that_is_too_long_to_be_read_is_refused(approving_chain: CodeChain) -> None:
    async with SessionRegistry(approving_chain) as sessions:
        session = sessions.open("ann")
        session.ask(f"print('{'x' * 20_000}')")
        await finished(session)
        assert "too long" in session.entries[0].progress.notes[0]


async def test_an_absent_user_gets_one_request_and_the_question_as_draft(
    approving_chain: CodeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.apps.page.runner.TIMEOUT_S", 0.1)
    async with SessionRegistry(approving_chain) as sessions:
        session = sessions.open("ann")
        session.ask("print(1)")
        await finished(session)
        entry = session.entries[0]
        assert ("in time" in entry.outcome.error, session.draft, entry.progress.notes) == (
            True,
            "print(1)",
            [],
        )


async def test_sessions_are_isolated(sessions: SessionRegistry) -> None:
    ann, bob = sessions.open("ann"), sessions.open("bob")
    ann.ask("x = 1; print(x)")
    await finished(ann)
    assert bob.entries == []
    bob.ask("print('x' in globals())")
    assert await finished(bob) == "False"
    assert bob.artifact(ann.entries[0].id, 0) is None


@pytest.mark.slow
async def test_waiting_entries_know_their_queue_position(sessions: SessionRegistry) -> None:
    ann, bob, cleo = sessions.open("ann"), sessions.open("bob"), sessions.open("cleo")
    ann.ask("import time; print('ann', flush=True); time.sleep(1.5)")
    while not ann.entries[0].progress.printed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    for position, session in enumerate((bob, cleo), 1):
        session.ask(f"print('{'bob' if session is bob else 'cleo'}')")
        while session.entries[0].progress.queue_position != position:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert ann.entries[0].progress.queue_position == 0
    assert [await finished(session) for session in (ann, bob, cleo)] == ["ann", "bob", "cleo"]


@pytest.mark.slow
async def test_an_idle_session_is_closed(chain: CodeChain) -> None:
    async with SessionRegistry(chain, session_timeout=0.5) as sessions:
        session = sessions.open("ann")
        await session.add_file("a.csv", b"x")
        await asyncio.sleep(1.5)
        assert (len(sessions), session.files) == (0, {})


@pytest.mark.slow
async def test_a_session_is_not_closed_while_a_file_is_stored(
    chain: CodeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Uploads.add

    def add_slowly(*args: Any, **options: Any) -> None:
        time.sleep(1)
        add(*args, **options)

    monkeypatch.setattr(Uploads, "add", add_slowly)
    async with SessionRegistry(chain, session_timeout=0.3) as sessions:
        session = sessions.open("ann")
        await session.add_file("a.csv", b"x")
        assert (len(sessions), session.files["a.csv"].read_bytes()) == (1, b"x")


@pytest.mark.slow
async def test_a_client_of_an_expired_session_is_notified_of_the_new_one(chain: CodeChain) -> None:
    async with SessionRegistry(chain, session_timeout=0.5) as sessions:
        before = sessions.open("ann")
        await before.add_file("a.csv", b"x")
        sessions.open("bob")
        await asyncio.sleep(1.5)
        later = sessions.open("ann")
        assert [bool(session.notice) for session in (before, later, sessions.open("bob"))] == [
            True,
            True,
            False,
        ]
        await later.reset()
        assert later.notice == ""


async def test_displaying_a_page_is_not_an_action(chain: CodeChain) -> None:
    async with SessionRegistry(chain, session_timeout=0.2) as sessions:
        sessions.open("ann")
        deadline = time.monotonic() + 0.6
        while time.monotonic() < deadline:
            sessions.get("ann")
            await asyncio.sleep(0.01)
        assert len(sessions) == 0


async def test_a_session_beyond_the_limit_is_refused(chain: CodeChain) -> None:
    async with SessionRegistry(chain, max_sessions=2) as sessions:
        for name in ("ann", "bob"):
            await sessions.open(name).add_file("a.csv", b"x")
        with pytest.raises(InputError, match="Too many people"):
            sessions.open("cleo")
        assert [list(sessions.open(name).files) for name in ("ann", "bob")] == [["a.csv"], ["a.csv"]]


async def test_a_blank_session_is_replaced(chain: CodeChain) -> None:
    async with SessionRegistry(chain, max_sessions=2) as sessions:
        await sessions.open("ann").add_file("a.csv", b"x")
        for name in ("bob", "cleo"):
            sessions.open(name)
        assert [sessions.get(name) is None for name in ("ann", "bob", "cleo")] == [False, True, False]


async def test_closing_deletes_the_files(chain: CodeChain) -> None:
    async with SessionRegistry(chain) as sessions:
        session = sessions.open("ann")
        await session.add_file("a.csv", b"x")
        folders = [path.parent for path in session.files.values()]
    assert not any(map(os.path.exists, folders))


async def test_the_notebook_has_the_turns(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    with pytest.raises(InputError, match="nothing to export"):
        await session.export_notebook()
    session.ask("print(6 * 7)")
    await finished(session)
    name, data = await session.export_notebook()
    assert (name, "print(6 * 7)" in str(json.loads(data))) == ("conversation.ipynb", True)


async def test_the_notebook_includes_its_input_files(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    await session.add_file("sales.csv", b"amount\n42\n")
    session.ask("print(open('sales.csv').read())")
    await finished(session)
    name, data = await session.export_notebook()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert (name, archive.namelist()) == ("conversation.zip", ["conversation.ipynb", "sales.csv"])
        assert archive.read("sales.csv") == b"amount\n42\n"


async def test_an_exhausted_budget_is_reported(shared_sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(last_line)
    with create_code_chain(
        model, executor=shared_sandbox, budget=Budget(model_calls=1), interpret=False
    ) as chain:
        async with SessionRegistry(chain) as sessions:
            session = sessions.open("ann")
            session.ask("1 / 0")
            await finished(session)
            assert (
                session.entries[0].outcome.limit_message
                == "The budget is spent: its limit of model calls is reached."
            )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (IsolationError("No sandbox; see doctor."), "Programs cannot be run at the moment. Try again later."),
        (
            OverloadedError("See SandboxExecutor(max_sessions=…)."),
            "Too many programs run at the moment. Try again later.",
        ),
        (InputError("The question is empty."), "The question is empty."),
        (
            RuntimeError("sk-proj-1234567890abcdef at http://10.0.0.1"),
            "The model did not answer. Try again later.",
        ),
    ],
)
async def test_a_visitor_is_told_neither_what_a_provider_said_nor_what_an_operator_can_do(
    error: Exception, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> str:
        raise error

    with create_code_chain(ScriptedModel(fail), executor=ScriptedExecutor(lambda _: "")) as chain:
        async with SessionRegistry(chain) as sessions:
            session = sessions.open("ann")
            session.ask("print(1)")
            await finished(session)
            assert session.entries[0].outcome.error == message
            assert chain.turns(session.session_id) == []
    assert "sk-proj" not in caplog.text
    assert isinstance(error, InputError) or str(error).split()[-1] in caplog.text


# -- stored conversations ----------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path: Path, shared_sandbox: SandboxExecutor) -> Callable[[], SessionRegistry]:
    """Make registries of servers that run one after the other."""

    def start() -> SessionRegistry:
        chain = create_code_chain(
            ScriptedModel(last_line),
            executor=shared_sandbox,
            memory=tmp_path / "page.sqlite",
            solve=Repair(1),
        )
        return SessionRegistry(chain, folder=tmp_path)

    return start


@pytest.mark.slow
async def test_a_conversation_continues_after_a_restart(stored: Callable[[], SessionRegistry]) -> None:
    async with stored() as sessions:
        session = sessions.open("ann")
        await session.add_file("sales.csv", b"42")
        session.ask("x = open('sales.csv').read(); print(x)")
        await finished(session)
        await session.add_file("later.csv", b"7")
    async with stored() as sessions:
        session = await sessions.resume("ann")
        assert [entry.outcome.answer[:5] for entry in session.entries] == ["Done."]
        assert (list(session.uploads.received), list(session.uploads.pending)) == (
            ["sales.csv"],
            ["later.csv"],
        )
        session.ask("print(x, open('later.csv').read())")
        assert await finished(session) == "42 7"


async def test_earlier_conversations_can_be_opened_and_deleted(stored: Callable[[], SessionRegistry]) -> None:
    async with stored() as sessions:
        session = sessions.open("ann")
        for program in ("print('first')", "print('second')"):
            await session.switch()
            session.ask(program)
            await finished(session)
        first, second = reversed(session.history.conversations("ann"))
        assert [first.title, second.title] == ["print('first')", "print('second')"]
        await session.switch(first.session_id)
        assert session.entries[0].outcome.output == "first"
        await session.delete(first.session_id)
        await session.delete(second.session_id)
        assert (session.entries, session.history.conversations("ann")) == ([], [])


async def test_no_client_finds_opens_or_deletes_the_conversations_of_another(
    stored: Callable[[], SessionRegistry],
) -> None:
    async with stored() as sessions:
        ann = sessions.open("ann")
        ann.ask("print('secret')")
        await finished(ann)
        bob = await sessions.resume("bob")
        assert (bob.entries, bob.history.conversations("bob")) == ([], [])
        for action in (bob.switch, bob.delete):
            with pytest.raises(InputError, match="no such conversation"):
                await action(ann.session_id)
        assert len(ann.history.conversations("ann")) == 1


async def test_a_conversation_without_questions_is_not_stored(
    stored: Callable[[], SessionRegistry], tmp_path: Path
) -> None:
    async with stored() as sessions:
        await sessions.open("ann").add_file("a.csv", b"x")
        await sessions.open("ann").switch()
        assert sessions.open("ann").history.conversations("ann") == []
    assert list((tmp_path / "files").iterdir()) == []


async def test_two_pages_of_a_client_resume_one_session(stored: Callable[[], SessionRegistry]) -> None:
    async with stored() as sessions:
        sessions.open("ann").ask("print(1)")
        await finished(sessions.open("ann"))
    async with stored() as sessions:
        one, other = await asyncio.gather(sessions.resume("ann"), sessions.resume("ann"))
        assert (one is other, len(one.entries)) == (True, 1)


async def test_files_of_the_oldest_conversations_make_room(
    stored: Callable[[], SessionRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.apps.page.history.MAX_STORED_BYTES", 150)
    async with stored() as sessions:
        session = sessions.open("ann")
        await session.add_file("a.csv", b"x" * 100)
        session.ask("print(1)")
        await finished(session)
        await session.switch()
        assert await session.add_file("b.csv", b"x" * 100) == "b.csv"
        assert len(session.history.conversations("ann")) == 1


# -- files and models --------------------------------------------------------------------------------------------------


async def test_a_removed_file_is_not_passed_to_programs(sessions: SessionRegistry) -> None:
    session = sessions.open("ann")
    await session.add_file("a.csv", b"x" * 100)
    session.remove_file("a.csv")
    assert (session.files, session.uploads.size) == ({}, 0)
    session.ask("import os; print(os.path.exists('a.csv'))")
    assert await finished(session) == "False"


async def test_a_file_that_a_program_received_is_removed_by_undoing_its_turn(
    sessions: SessionRegistry,
) -> None:
    session = sessions.open("ann")
    await session.add_file("a.csv", b"x")
    session.ask("print(1)")
    await finished(session)
    with pytest.raises(InputError, match="Undo its turn"):
        session.remove_file("a.csv")
    await session.undo()
    session.remove_file("a.csv")
    assert session.files == {}


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("name", "stored_name"),
    [
        ("weird name é (1).csv", "weird name é (1).csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\a.csv", "a.csv"),
        (".hidden", ".hidden"),
        ("..", "file"),
        ("", "file"),
        ("two\nlines.csv", "two-lines.csv"),
        ("<img src=x onerror=alert(1)>.csv", "<img src=x onerror=alert(1)>.csv"),
        ("x" * 300 + ".csv", "x" * 150 + ".csv"),
    ],
)
async def test_a_file_keeps_its_name_if_a_file_can_have_it(
    sessions: SessionRegistry, name: str, stored_name: str
) -> None:
    session = sessions.open("ann")
    assert await session.add_file(name, b"42") == stored_name
    session.ask(f"print(open({stored_name!r}).read())")
    assert await finished(session) == "42"


async def test_another_model_continues_in_the_same_state(shared_sandbox: SandboxExecutor) -> None:
    def other(messages: list[BaseMessage]) -> str:
        return "print(x + 1)" if asks_for_code(messages) else "By the other."

    models = {"one": ScriptedModel(last_line), "other": ScriptedModel(other)}
    chains = {name: create_code_chain(model, executor=shared_sandbox) for name, model in models.items()}
    async with SessionRegistry(chains) as sessions:
        session = sessions.open("ann")
        session.ask("x = 41; print(x)")
        await finished(session)
        session.select_model("other")
        session.ask("And one more?")
        assert await finished(session) == "42"
        assert session.entries[-1].outcome.answer.startswith("By the other.")
        with pytest.raises(InputError, match="no such model"):
            session.select_model("third")
