"""A class at the page: how long pupils wait for an answer while some of them run endless loops.

Thirty askers use the sessions of one page, without a browser. A model takes a second for each of its two replies. Four
askers ask for nothing but endless loops, again and again; the others are measured, from the question to its answer.

    python -m benchmarks.classroom [SECONDS]
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from statistics import median, quantiles

from langchain_core.messages import BaseMessage

from code_chains.apps.chain_options import create_chain
from code_chains.apps.page.registry import SessionRegistry
from code_chains.testing import ScriptedModel, asks_for_code

ASKERS, LOOPERS = 30, 4
MODEL_S, THINK_S, WARM_S = 1.0, 6.0, 5.0
LOOP, PROGRAM = "while True: pass", "print(sum(range(100_000)))"


async def main(seconds: float) -> None:
    """Measure and print the table."""
    model = ScriptedModel(_reply, delay=MODEL_S)
    with create_chain(
        model=model, budget=None, conversation_memory=True, repeat_limits=False, max_sessions=64
    ) as chain:
        async with SessionRegistry(chain) as sessions:
            await asyncio.sleep(WARM_S)
            end = time.monotonic() + seconds
            askers = [_ask(sessions, number, end) for number in range(ASKERS)]
            waits = [wait for waited in await asyncio.gather(*askers) for wait in waited]
    print(
        f"| answers of the {ASKERS - LOOPERS} others in {seconds:.0f} s | p50 | p95 | max |\n|---|---|---|---|"
    )
    print(
        f"| {len(waits)} | {median(waits):.1f} s | {quantiles(waits, n=20)[-1]:.1f} s | {max(waits):.1f} s |"
    )


async def _ask(sessions: SessionRegistry, number: int, end: float) -> list[float]:
    """Ask until the end; return how long each question took."""
    think, waits, session = random.Random(number), [], sessions.open(f"asker {number}")
    is_looping = number % (ASKERS // LOOPERS) == 0 and number < LOOPERS * (ASKERS // LOOPERS)
    await asyncio.sleep(think.uniform(0, THINK_S))
    while (began := time.monotonic()) < end:
        session.ask(LOOP if is_looping else PROGRAM)
        while session.is_busy and time.monotonic() < end + 30:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        waits.append(time.monotonic() - began)
        await asyncio.sleep(think.uniform(0, THINK_S))
    await session.stop()
    return [] if is_looping else waits


def _reply(messages: list[BaseMessage]) -> str:
    """Return the program that the question is, or an answer."""
    if not asks_for_code(messages):
        return "Done."
    return LOOP if LOOP in str(messages[-1].text) else PROGRAM


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60))
