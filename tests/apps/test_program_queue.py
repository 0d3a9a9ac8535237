"""Turns of programs: a slot is for a running program only, and everybody gets a fair share."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from code_chains.apps import program_queue as queues
from code_chains.apps.program_queue import ProgramQueue
from code_chains.executors.waiting import Operation, adrive, blocking


class Class:
    """Learners who run programs that end when a test says so."""

    def __init__(self, slots: int, each: int = 1) -> None:
        self.queue = ProgramQueue(slots, each)
        self.running: list[str] = []
        self.positions: dict[str, int] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, *names: str) -> None:
        """Have learners run programs, each of which is named by its learner and a number."""
        for name in names:
            follow = partial(self.positions.__setitem__, name)
            operation = self.queue.limit(self._program(name), learner=name[0], on_position=follow)
            self._tasks[name] = asyncio.create_task(adrive(operation))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)

    def _program(self, name: str) -> Operation[None]:
        self.running.append(name)
        try:
            while True:
                yield from blocking(lambda: None)
        finally:
            self.running.remove(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name] for name in names])
        await asyncio.sleep(0.01)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count each program as one that has run for long."""
    monkeypatch.setattr(queues, "_LONG_S", -1.0)


async def test_a_learner_has_one_program_at_a_time() -> None:
    learners = Class(2)
    await learners.run("a1", "a2", "b1")
    assert learners.running == ["a1", "b1"]
    await learners.end("a1", "b1")
    assert learners.running == ["a2"]
    await learners.end("a2")


async def test_who_was_served_longest_ago_is_next() -> None:
    learners = Class(1)
    await learners.run("a1", "a2", "b1", "c1")
    order = []
    for _ in range(4):
        order += learners.running
        await learners.end(*learners.running)
    assert order == ["a1", "b1", "c1", "a2"]


async def test_positions_follow_the_queue_when_one_leaves() -> None:
    learners = Class(1)
    await learners.run("a1", "b1", "c1")
    assert learners.positions == {"a1": 0, "b1": 1, "c1": 2}
    await learners.end("b1")
    assert learners.positions == {"a1": 0, "b1": 0, "c1": 1}
    await learners.end("a1")
    assert learners.running == ["c1"]
    await learners.end("c1")


@pytest.mark.usefixtures("impatient")
async def test_endless_loops_occupy_half_of_the_slots() -> None:
    learners = Class(4)
    await learners.run("a1", "b1", "c1")
    await learners.end("a1", "b1", "c1")
    await learners.run("a2", "b2", "c2")
    assert learners.running == ["a2", "b2"]
    await learners.end("a2")
    assert learners.running == ["b2", "c2"]
    await learners.end("b2", "c2")


async def test_a_program_that_cannot_run_gives_its_slot_back() -> None:
    queue = ProgramQueue(1)

    def fail() -> None:
        raise OSError("broken")

    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            await adrive(queue.limit(blocking(fail), learner="a", on_position=lambda _: None))


@pytest.mark.usefixtures("impatient")
async def test_others_run_beside_programs_that_turn_out_to_be_slow() -> None:
    learners = Class(2)
    await learners.run("a1", "b1", "c1", "d1", "e1")
    assert learners.running == ["a1", "b1", "c1", "d1"]
    await learners.end("a1", "b1", "c1", "d1", "e1")


async def test_a_client_may_have_several_programs_at_a_time_but_not_all_slots() -> None:
    clients = Class(3, each=2)
    await clients.run("a1", "a2", "a3", "b1")
    assert clients.running == ["a1", "a2", "b1"]
    await clients.end("a1", "a2", "b1")
    assert clients.running == ["a3"]
    await clients.end("a3")
