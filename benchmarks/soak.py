"""Minutes of mixed questions, some of them hostile, from twice as many threads and tasks as there are slots.

    python -m benchmarks.soak [--minutes 30]

Questions go to chains with a scripted model and a real sandbox: with files, in conversations, from the cache, with
examples, with samples, streams that are left, tasks that are cancelled, programs that fork, hoard, flood, hang and kill
themselves; and every few seconds some process of the sandbox is killed from outside. After each round, when all have
rested, it is counted what is left. What grows is a leak; an outcome that is neither a value nor an error of this library
is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.execution import _below, _proportional
from code_chains import ConversationMemory, Limits, Repair, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.errors import CodeChainsError
from code_chains.testing import ScriptedModel, asks_for_code

ORDINARY = {
    "sum": "print(sum(range(1000)))",
    "words": "from collections import Counter\nprint(Counter('a b a'.split()).most_common(1))",
    "mistake": "values = []\nvalues[0]",
    "file": "open('made.txt', 'w').write('x' * 10_000); print('made')",
    "double": "def double(x):\n    return 2 * x\nprint(double(2))",
    "table": "import csv\nprint(sum(int(row['amount']) for row in csv.DictReader(open('sales.csv'))))",
}
HOSTILE = {
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()",
    "memory": "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))",
    "flood": "while True: print('x' * 1000)",
    "endless": "while True: pass",
    "asleep": "import time\ntime.sleep(60)",
    "disk": "with open('big', 'wb') as file:\n    while True: file.write(bytes(1 << 20))",
    "exit": "import os\nos._exit(0)",
    "kills": "import os\nos.kill(-1, 9)\nos.kill(os.getpid(), 9)",
}
PROGRAMS = {**ORDINARY, **HOSTILE, "next": "try: n += 1\nexcept NameError: n = 1\nprint(n)"}
LIMITS = Limits(seconds=1.0, memory="128M", output="64K", processes=32, disk="8M")
PATIENCE = 4.0
"""Seconds that a run waits for a slot."""
BREATH = 0.02
"""Seconds before each asks again."""
NAMES = 12
"""Conversations; more than there are sessions."""
SLACK = {"processes": 1, "descriptors": 6, "threads": 1, "own": 25.0, "all": 40.0, "files": 1, "sessions": 0}
"""How much more of each may be there at the end than at the beginning."""


@dataclass(frozen=True)
class Sample:
    """What is there when all have rested.

    Attributes:
        minutes: Since the start.
        processes: Below this one.
        descriptors: Open in this process.
        threads: Of this process.
        own: Megabytes of this process (PSS).
        all: Megabytes of it and all processes below (PSS).
        slack: Megabytes that its allocator had kept although nothing used them, on top of its own.
        files: In the folder for temporary files.
        sessions: That are open.
    """

    minutes: float
    processes: int
    descriptors: int
    threads: int
    own: float
    all: float
    slack: float
    files: int
    sessions: int


def _script(messages: list[Any]) -> str:
    """The program that the question names."""
    asked = str(messages[-1].text)
    name = max(PROGRAMS, key=lambda one: asked.rfind(f"<{one}>"))
    return f"```python\n{PROGRAMS[name]}\n```" if asks_for_code(messages) else "Done."


class Soak:
    """The chains and those who ask them.

    Attributes:
        outcomes: How many questions came to what.
        seconds: How long those took that were answered.
        wrong: Outcomes that should not be.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.sandbox = stack.enter_context(
            SandboxExecutor(limits=LIMITS, preload=(), queue_timeout=PATIENCE, max_queued=4, max_sessions=6)
        )
        self.outcomes, self.seconds, self.wrong = Counter[str](), list[float](), list[str]()
        self._sales = folder / "sales.csv"
        self._sales.write_text("region,amount\nnorth,10\nsouth,32\n")
        model = ScriptedModel(_script)
        memory = ConversationMemory(stack.enter_context(SqliteStore(folder / "turns.sqlite")))
        cache = stack.enter_context(SqliteStore(folder / "answers.sqlite", max_bytes=1 << 20))
        self.chain = stack.enter_context(
            create_code_chain(model, executor=self.sandbox, memory=memory, cache=cache, solve=Repair(2))
        )
        self.sampling = stack.enter_context(
            create_code_chain(model, executor=self.sandbox, solve=Repair(1, samples=3))
        )
        self._memory = memory

    # -- those who ask ------------------------------------------------------------------------------------------------

    def round(self, seconds: float) -> None:
        """Ask for some seconds, from twice as many threads and tasks as there are slots."""
        until, half = time.monotonic() + seconds, self.sandbox.limiter.max_running
        with ThreadPoolExecutor(half + 2) as threads:
            asking = [threads.submit(self._ask_on, until) for _ in range(half)]
            asking += [
                threads.submit(asyncio.run, self._tasks(until, half)),
                threads.submit(self._kill_on, until),
            ]
        for one in asking:
            one.result()
        for name in range(NAMES):
            self.chain.forget(str(name))

    def _ask_on(self, until: float) -> None:
        kinds: list[Callable[[], object]] = [
            lambda: self.chain.invoke(self._question()),
            lambda: self.chain.invoke(self._question(session_id=self._name())),
            lambda: self.sampling.invoke(self._question()),
            self._leave_early,
            self._in_a_session,
            lambda: self.chain.undo(self._name()),
        ]
        while time.monotonic() < until:
            with self._counted():
                random.choices(kinds, [8, 6, 1, 2, 2, 1])[0]()
            time.sleep(BREATH)

    async def _tasks(self, until: float, count: int) -> None:
        await asyncio.gather(*[self._aask_on(until) for _ in range(count)])

    async def _aask_on(self, until: float) -> None:
        kinds: list[Callable[[], Awaitable[object]]] = [
            lambda: self.chain.ainvoke(self._question()),
            lambda: self.chain.ainvoke(self._question(session_id=self._name())),
            self._cancel,
            lambda: self.chain.aexecute(PROGRAMS[self._pick()]),
        ]
        while time.monotonic() < until:
            with self._counted():
                await random.choices(kinds, [8, 6, 3, 1])[0]()
            await asyncio.sleep(BREATH)

    def _pick(self) -> str:
        return random.choice([*HOSTILE] if random.random() < 0.15 else [*ORDINARY])

    def _name(self) -> str:
        return str(random.randrange(NAMES))

    def _question(self, **given: Any) -> dict[str, Any]:
        """Some question; a third are the same as others before."""
        name = "next" if given and random.random() < 0.7 else self._pick()
        number = random.randrange(3) if random.random() < 0.3 else random.random()
        asked: dict[str, Any] = {"query": f"Number {number}: <{name}>", "files": {"sales.csv": self._sales}}
        return {**asked, **given, **({"examples": [(2, 4)]} if name == "double" and not given else {})}

    def _leave_early(self) -> None:
        with contextlib.closing(self.chain.stream(self._question(session_id=self._name()))) as stream:  # type: ignore[type-var]
            for _ in zip(range(random.randrange(1, 6)), stream, strict=False):
                pass

    def _in_a_session(self) -> None:
        with self.sandbox.session() as session:
            session.run("x = 1")
            session.checkpoint()
            session.run(PROGRAMS[self._pick()], files={"sales.csv": self._sales})
            session.restore()
            run = session.run("x")
            # It may be the one that is killed.
            assert run.output == "1" or run.status == "killed", run.to_json()

    async def _cancel(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(random.random() / 2):
                await self.chain.ainvoke(self._question(session_id=self._name()))

    def _kill_on(self, until: float) -> None:
        """Now and then, kill a process of the sandbox."""
        while time.monotonic() < until:
            time.sleep(min(3.0, max(0.0, until - time.monotonic())))
            if below := _below(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(random.choice(below), signal.SIGKILL)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        began, outcome = time.monotonic(), "answered"
        try:
            yield
        except CodeChainsError as error:
            outcome = type(error).__name__
        except Exception as error:
            outcome = "wrong"
            self.wrong.append(f"{type(error).__name__}: {error}"[:300])
        self.outcomes[outcome] += 1
        if outcome == "answered":
            self.seconds.append(time.monotonic() - began)

    # -- what is left -------------------------------------------------------------------------------------------------

    def sample(self, minutes: float) -> Sample:
        """Count when nothing has changed for a while."""
        self._rest()
        gc.collect()
        below = _below(os.getpid())
        with_slack = _proportional([os.getpid()])
        _give_back()
        own = _proportional([os.getpid()])
        return Sample(
            minutes=minutes,
            processes=len(below),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            own=own / 2**20,
            all=(own + _proportional(below)) / 2**20,
            slack=(with_slack - own) / 2**20,
            files=sum(len(files) + len(folders) for _, folders, files in os.walk(tempfile.gettempdir())),
            sessions=len(self.sandbox._sessions),
        )

    def _rest(self) -> None:
        self.sandbox.run("1")  # So that the same is ready each time.
        counts, deadline = [-1], time.monotonic() + 20
        while (len(counts) < 8 or len(set(counts[-8:])) > 1) and time.monotonic() < deadline:
            time.sleep(0.1)
            counts.append(len(_below(os.getpid())))


def _give_back() -> None:
    """Let the C library return what it keeps of freed memory, where it can; what is left is in use."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def grown(samples: list[Sample]) -> list[str]:
    """What there always is more of in the last third than there ever was in the first."""
    third = max(1, len(samples) // 3)
    return [
        f"{name} grew: {most:g} at first, {least:g} at last"
        for name, slack in SLACK.items()
        if (least := min(getattr(one, name) for one in samples[-third:]))
        > (most := max(getattr(one, name) for one in samples[:third])) + slack
    ]


def soak(minutes: float, rounds: int) -> tuple[list[Sample], Soak]:
    """Ask for some minutes, in so many rounds."""
    with (
        tempfile.TemporaryDirectory() as kept,
        tempfile.TemporaryDirectory() as temporary,
        ExitStack() as stack,
    ):
        stack.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = temporary
        asking, samples, began = Soak(stack, Path(kept)), list[Sample](), time.monotonic()
        for _ in range(rounds):
            asking.round(60 * minutes / rounds)
            samples.append(asking.sample((time.monotonic() - began) / 60))
            _show(samples[-1], first=len(samples) == 1)
    return samples, asking


def _show(sample: Sample, *, first: bool) -> None:
    names = [one.name for one in fields(sample)]
    if first:
        print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    print(f"| {' | '.join(f'{getattr(sample, name):.4g}' for name in names)} |", flush=True)


def main() -> int:
    """Soak, print the table, and say whether something grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    minutes = parser.parse_args().minutes
    print(
        f"{platform.python_version()} on {platform.system()} {platform.release()}, {os.cpu_count()} cores\n"
    )
    samples, asked = soak(minutes, rounds=max(3, min(30, round(minutes))))
    middle, late = (statistics.quantiles(asked.seconds, n=20)[at] for at in (9, 18))
    print(f"\n{sum(asked.outcomes.values())} questions: {dict(asked.outcomes.most_common())};", end=" ")
    print(f"{middle:.2f} s in the middle, {late:.2f} s for 95 of 100, {max(asked.seconds):.2f} s at most")
    faults = [*grown(samples), *asked.wrong]
    print("\n".join(faults) or "nothing grew")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
