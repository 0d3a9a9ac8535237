"""A class at lessons: how long right programs wait for their verdict while ten of thirty learners submit endless loops.

Learners submit to one shelf of lessons, without a browser, and think between submissions. The same learner alone is the
machine at rest.

    python -m benchmarks.lesson_class [SECONDS]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from langchain_core.stores import InMemoryByteStore

from code_chains.apps.page.lessons import LessonShelf
from code_chains.apps.program_queue import ProgramQueue

LEARNERS, LOOPERS, THINK_S = 30, 10, 8.0
LESSON = """\
---
title: Loops
limits: {seconds: 2}
---
## Add up

```python tests
# Adds all numbers.
assert total([4, 8, 15]) == 27

# The sum of an empty list is 0.
assert total([]) == 0
```
"""
RIGHT = "def total(numbers):\n    result = 0\n    for number in numbers:\n        result += number\n    return result\n"
ENDLESS = "def total(numbers):\n    while True:\n        pass\n"


async def main(seconds: float) -> None:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "loops.md").write_text(LESSON)
        shelf = LessonShelf(Path(folder), InMemoryByteStore())
        try:
            queue = ProgramQueue(4)
            await _learn(shelf, queue, 0, time.monotonic() + 1)  # Starts what stays.
            rested = await _learn(shelf, queue, 0, time.monotonic() + seconds / 4, think=0.5)
            end = time.monotonic() + seconds
            learners = [_learn(shelf, queue, number, end) for number in range(LEARNERS)]
            learned = await asyncio.gather(*learners)
        finally:
            shelf.close()
    waits = [wait for waited in learned[LOOPERS:] for wait in waited]
    titles = ("right submissions", "wrong verdicts", "at rest", "in class, median", "95 %", "slowest")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    wrong = sum(wait < 0 for wait in waits)
    times = [median(rested), median(waits), quantiles(waits, n=20)[-1], max(waits)]
    print(f"| {len(waits)} | {wrong} | {' | '.join(f'{each:.2f} s' for each in times)} |")


async def _learn(
    shelf: LessonShelf, queue: ProgramQueue, number: int, end: float, think: float = THINK_S
) -> list[float]:
    """Submit until the end; return how long each submission took, less than 0 for one with a wrong verdict."""
    is_endless, pause, waits = number < LOOPERS and think == THINK_S, random.Random(number), list[float]()
    desk = shelf.desk(f"learner {number} {think}", "loops", queue)
    while time.monotonic() < end:
        await asyncio.sleep(pause.uniform(0, think))
        began = time.monotonic()
        desk.work.write(f"{ENDLESS if is_endless else RIGHT}# {began}\n")
        is_accepted = await desk.perform(desk.work.submit)
        took = time.monotonic() - began
        waits.append(took if is_accepted is not is_endless else -took)
    return waits


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60))
