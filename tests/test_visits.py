"""What visitors of the page do, without the page."""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
import zipfile
from collections.abc import AsyncIterator, Iterator

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

from code_chains import Budget, SandboxExecutor, create_code_chain
from code_chains.code_chain import CodeChain
from code_chains.errors import InputError, IsolationError
from code_chains.page import approve
from code_chains.page.visits import MOST_BYTES, Entry, Line, Visit, Visits
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code


def does_as_told(messages: list[BaseMessage]) -> str:
    """A model whose program is the last line of the question."""
    return str(messages[-1].text).splitlines()[-1] if asks_for_code(messages) else "Told."


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor() as box:
        yield box


@pytest.fixture
def chain(box: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(does_as_told), executor=box, max_attempts=1) as chain:
        yield chain


@pytest.fixture
async def visits(chain: CodeChain) -> AsyncIterator[Visits]:
    async with Visits(chain, concurrency=1) as visits:
        yield visits


async def done(visit: Visit) -> str:
    """What the latest entry showed, once it is done."""
    while visit.busy:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return visit.entries[-1].output


async def test_a_question_is_answered(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("print(6 * 7)")
    assert await done(visit) == "42"
    assert (visit.entries[0].code.strip(), visit.entries[0].told) == ("print(6 * 7)", True)


async def test_stages_and_the_program_come_before_the_answer(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("import time; time.sleep(0.5); print(1)")
    seen = set()
    while visit.busy:
        entry = visit.entries[-1]
        seen.add((entry.stage, entry.written("python").strip()))
        await asyncio.sleep(0.01)
    assert ("execute", "import time; time.sleep(0.5); print(1)") in seen


def test_a_long_reply_is_not_read_anew_at_each_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def extract(reply: str) -> str:
        read.append(len(reply))
        return str(len(reply))

    monkeypatch.setattr("code_chains.page.visits.extract_code", extract)
    entry = Entry("?", stage="generate")
    for _ in range(1500):
        entry.reply += "x" * 40
        shown = int(entry.written("python"))
        assert len(entry.reply) - shown <= 60_000 / 32
    assert sum(read) < 35 * 60_000
    entry.stage = "validate"
    assert entry.written("python") == "60000"


async def test_a_program_of_ones_own_goes_on_where_the_last_turn_was(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("x = 1; print(x)")
    await done(visit)
    visit.run("x = 41; print(x)", "Another x")
    await done(visit)
    visit.ask("print(x + 1)")
    assert await done(visit) == "42"


async def test_one_question_at_a_time(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("import time; time.sleep(0.2); print(1)")
    with pytest.raises(InputError, match="busy"):
        visit.ask("print(2)")
    with pytest.raises(InputError, match="busy"):
        await visit.undo()
    assert await done(visit) == "1"


async def test_stopping_gives_the_question_back(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("x = 1; print(x)")
    await done(visit)
    visit.ask("import time; x = 2; time.sleep(60)")
    await asyncio.sleep(0.3)
    await visit.stop()
    assert (len(visit.entries), visit.draft) == (1, "import time; x = 2; time.sleep(60)")
    visit.ask("print(x)")
    assert await done(visit) == "1"


async def test_stopping_at_once_gives_the_question_back(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("print(1)")
    await visit.stop()
    assert (visit.entries, visit.draft) == ([], "print(1)")


async def test_undo_gives_the_files_back(visits: Visits) -> None:
    visit = visits.of("ann")
    await visit.add_file("sales.csv", b"amount\n42\n")
    visit.ask("print(open('sales.csv').read())")
    await done(visit)
    await visit.undo()
    assert visit.entries == []
    visit.ask("print(open('sales.csv').read().split()[1])")
    assert await done(visit) == "42"


async def test_a_file_that_comes_while_a_question_runs_is_for_the_next_one(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.ask("import time; time.sleep(0.3); print(1)")
    await asyncio.sleep(0.1)
    await visit.add_file("sales.csv", b"42")
    await done(visit)
    visit.ask("print(open('sales.csv').read())")
    assert await done(visit) == "42"


async def test_files_come_with_each_question_where_no_state_keeps_them() -> None:
    read = ScriptedModel(lambda messages: "print(open('sales.csv').read())" if asks_for_code(messages) else "42.")
    with create_code_chain(read, executor="none") as chain:
        async with Visits(chain) as visits:
            visit = visits.of("ann")
            await visit.add_file("sales.csv", b"42")
            for _ in range(2):
                visit.ask("What is in it?")
                assert await done(visit) == "42"


async def test_a_file_cannot_leave_its_folder(visits: Visits) -> None:
    visit = visits.of("ann")
    assert await visit.add_file("../../etc/passwd", b"x") == "passwd"
    assert len(visit.files["passwd"].parents) > 3


async def test_files_are_bounded(visits: Visits) -> None:
    visit = visits.of("ann")
    await visit.add_file("half.bin", b"x" * (MOST_BYTES // 2 + 1))
    with pytest.raises(InputError, match="20 MB together"):
        await visit.add_file("other.bin", b"x" * (MOST_BYTES // 2))
    assert list(visit.files) == ["half.bin"]


async def test_what_programs_made_is_bounded(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.page.visits._MOST_MADE", 150)
    visit = visits.of("ann")
    for name in ("a", "b"):
        visit.ask(f"open('{name}.txt', 'w').write('x' * 100)")
        await done(visit)
    assert [len(entry.artifacts) for entry in visit.entries] == [0, 1]


async def test_the_files_of_all_visitors_are_bounded(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.page.visits._MOST_BYTES_OF_ALL", 150)
    await visits.of("ann").add_file("a.csv", b"x" * 100)
    with pytest.raises(InputError, match="no room for more files"):
        await visits.of("bob").add_file("b.csv", b"x" * 100)
    await visits.of("ann").begin_anew()
    assert await visits.of("bob").add_file("b.csv", b"x" * 100) == "b.csv"


async def test_where_programs_made_too_much_it_goes_from_who_has_most(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.page.visits._MOST_MADE_BY_ALL", 250)
    for name, size in (("ann", 100), ("bob", 50), ("ann", 100), ("bob", 50)):
        visits.of(name).ask(f"open('{size}.txt', 'w').write('x' * {size})")
        await done(visits.of(name))
    assert [[len(entry.artifacts) for entry in visits.of(name).entries] for name in ("ann", "bob")] == [[0, 1], [1, 1]]


async def test_a_program_of_ones_own_that_is_stopped_is_still_there(visits: Visits) -> None:
    visit = visits.of("ann")
    visit.run("import time; time.sleep(60)", "Wait")
    await asyncio.sleep(0.2)
    await visit.stop()
    assert (visit.entries[0].code, visit.entries[0].error[:8]) == ("import time; time.sleep(60)", "Stopped.")


def related(_: str) -> list[Document]:
    return [Document("print(1)", metadata={"source": "sums.py", "about": "Adds numbers"})]


async def test_examples_that_the_model_was_shown_are_named(box: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(does_as_told), executor=box, snippets=RunnableLambda(related)) as chain:
        async with Visits(chain) as visits:
            visit = visits.of("ann")
            visit.ask("print(2)")
            await done(visit)
            assert [(one.name, one.about) for one in visit.entries[0].sources] == [("sums.py", "Adds numbers")]


@pytest.fixture
def asking(box: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(does_as_told), executor=box, max_attempts=1, approve=approve) as chain:
        yield chain


@pytest.mark.parametrize(("yes", "status"), [(True, "ok"), (False, "refused")])
async def test_a_program_runs_when_its_visitor_says_yes(asking: CodeChain, yes: bool, status: str) -> None:
    async with Visits(asking) as visits:
        visit = visits.of("ann")
        visit.ask("print(6 * 7)")
        while (approval := visit.entries[0].approval) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert (visit.entries[0].written("python"), visit.entries[0].execution) == (approval.request.code, None)
        approval.say(yes)
        await done(visit)
        execution = visit.entries[0].execution
        assert (execution and execution.status, visit.entries[0].approval) == (status, None)


async def test_a_program_that_is_too_long_to_be_read_is_refused(asking: CodeChain) -> None:
    async with Visits(asking) as visits:
        visit = visits.of("ann")
        visit.ask(f"print('{'x' * 20_000}')")
        await done(visit)
        assert "too long" in visit.entries[0].notes[0]


async def test_whoever_is_away_is_asked_once_and_finds_the_question_again(
    asking: CodeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.page.visits.PATIENCE", 0.1)
    async with Visits(asking) as visits:
        visit = visits.of("ann")
        visit.ask("print(1)")
        await done(visit)
        assert ("in time" in visit.entries[0].error, visit.draft, len(visit.entries[0].notes)) == (True, "print(1)", 0)


async def test_visitors_do_not_see_each_other(visits: Visits) -> None:
    ann, bob = visits.of("ann"), visits.of("bob")
    ann.ask("x = 1; print(x)")
    await done(ann)
    assert bob.entries == []
    bob.ask("print('x' in globals())")
    assert await done(bob) == "False"
    assert bob.artifact(ann.entries[0].id, 0) is None


async def test_who_waits_knows_the_place_in_the_line(visits: Visits) -> None:
    ann, bob, cleo = visits.of("ann"), visits.of("bob"), visits.of("cleo")
    ann.ask("import time; time.sleep(0.5); print('ann')")
    await asyncio.sleep(0.05)
    bob.ask("print('bob')")
    await asyncio.sleep(0.05)
    cleo.ask("print('cleo')")
    await asyncio.sleep(0.05)
    assert (ann.entries[0].ahead, bob.entries[0].ahead, cleo.entries[0].ahead) == (0, 1, 2)
    assert [await done(one) for one in (ann, bob, cleo)] == ["ann", "bob", "cleo"]


async def test_a_place_that_is_given_up_lets_the_others_move() -> None:
    line, places = Line(1), {"bob": -1, "cleo": -1}

    async def wait(name: str) -> None:
        async with line.place(lambda ahead: places.update({name: ahead})):
            pass

    async with line.place(lambda ahead: None):
        bob, cleo = asyncio.create_task(wait("bob")), asyncio.create_task(wait("cleo"))
        await asyncio.sleep(0.01)
        bob.cancel()
        await asyncio.sleep(0.01)
        assert places == {"bob": 1, "cleo": 1}
    await cleo


async def test_who_was_idle_for_too_long_is_forgotten(chain: CodeChain) -> None:
    async with Visits(chain, idle=0.05) as visits:
        visit = visits.of("ann")
        await visit.add_file("a.csv", b"x")
        await asyncio.sleep(0.3)
        assert (len(visits), visit.files) == (0, {})


async def test_who_comes_back_too_late_is_told_that_a_new_conversation_begins(chain: CodeChain) -> None:
    async with Visits(chain, idle=0.05) as visits:
        before = visits.of("ann")
        await before.add_file("a.csv", b"x")
        visits.of("bob")
        await asyncio.sleep(0.3)
        later = visits.of("ann")
        assert [bool(visit.notice) for visit in (before, later, visits.of("bob"))] == [True, True, False]
        await later.begin_anew()
        assert later.notice == ""


async def test_looking_at_a_page_is_not_doing_something(chain: CodeChain) -> None:
    async with Visits(chain, idle=0.2) as visits:
        visits.of("ann")
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            visits.find("ann")
            await asyncio.sleep(0.01)
        assert len(visits) == 0


async def test_a_newcomer_is_refused_where_all_places_are_taken(chain: CodeChain) -> None:
    async with Visits(chain, most=2) as visits:
        for name in ("ann", "bob"):
            await visits.of(name).add_file("a.csv", b"x")
        with pytest.raises(InputError, match="too many visitors"):
            visits.of("cleo")
        assert [list(visits.of(name).files) for name in ("ann", "bob")] == [["a.csv"], ["a.csv"]]


async def test_who_has_nothing_makes_way_for_a_newcomer(chain: CodeChain) -> None:
    async with Visits(chain, most=2) as visits:
        await visits.of("ann").add_file("a.csv", b"x")
        for name in ("bob", "cleo"):
            visits.of(name)
        assert [visits.find(name) is None for name in ("ann", "bob", "cleo")] == [False, True, False]


async def test_leaving_takes_the_files_along(chain: CodeChain) -> None:
    async with Visits(chain) as visits:
        visit = visits.of("ann")
        await visit.add_file("a.csv", b"x")
        folders = [path.parent for path in visit.files.values()]
    assert not any(map(os.path.exists, folders))


async def test_the_notebook_has_the_turns(visits: Visits) -> None:
    visit = visits.of("ann")
    with pytest.raises(InputError, match="nothing to export"):
        await visit.take_home()
    visit.ask("print(6 * 7)")
    await done(visit)
    name, data = await visit.take_home()
    assert (name, "print(6 * 7)" in str(json.loads(data))) == ("conversation.ipynb", True)


async def test_the_notebook_comes_with_the_files_that_it_needs(visits: Visits) -> None:
    visit = visits.of("ann")
    await visit.add_file("sales.csv", b"amount\n42\n")
    visit.ask("print(open('sales.csv').read())")
    await done(visit)
    name, data = await visit.take_home()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert (name, archive.namelist()) == ("conversation.zip", ["conversation.ipynb", "sales.csv"])
        assert archive.read("sales.csv") == b"amount\n42\n"


async def test_a_spent_budget_is_said(box: SandboxExecutor) -> None:
    model = ScriptedModel(does_as_told)
    with create_code_chain(model, executor=box, budget=Budget(model_calls=1), interpret=False) as chain:
        async with Visits(chain) as visits:
            visit = visits.of("ann")
            visit.ask("1 / 0")
            await done(visit)
            assert visit.entries[0].limit == "The budget is spent: its limit of model calls is reached."


def no_sandbox(_: str) -> str:
    raise IsolationError("The sandbox cannot be had on this machine.")


async def test_a_sandbox_that_is_missing_is_an_error_that_is_said() -> None:
    with create_code_chain(ScriptedModel(does_as_told), executor=ScriptedExecutor(no_sandbox)) as chain:
        async with Visits(chain) as visits:
            visit = visits.of("ann")
            visit.ask("print(1)")
            await done(visit)
            assert visit.entries[0].error == "The sandbox cannot be had on this machine."
            assert chain.turns(visit.session_id) == []
