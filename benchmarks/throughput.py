"""Many questions at once: 1,000 with a model that takes 200 ms, 100 of them under way, and the time to the first chunk.

The model sleeps and costs nothing, so that with 100 at once the ideal is 2 seconds for 1,000 calls of the model; a question
is two calls. With a real sandbox the cores are the bound, not the chains.

Usage: python -m benchmarks.throughput [QUESTIONS]
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from code_chains import create_code_chain
from code_chains.executors import Executor, SandboxExecutor
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

DELAY, WIDTH = 0.2, 100
PROGRAM, ANSWER = "print(6 * 7)", "It is 42."


class SlowModel(ScriptedModel):
    """A model that takes its time without using any."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(DELAY)
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        await asyncio.sleep(DELAY)
        reply = self._reply(messages)
        metadata, usage = reply.response_metadata, reply.usage_metadata
        chunk = AIMessageChunk(content=str(reply.text), response_metadata=metadata, usage_metadata=usage)
        yield ChatGenerationChunk(message=chunk)


def resident() -> float:
    """Megabytes of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def batches(executor: Executor, questions: int) -> tuple[float, float, float]:
    """Seconds for all, seconds of CPU, and megabytes that stay."""
    with create_code_chain(SlowModel(script=_script), executor=executor) as chain:
        config: Any = {"max_concurrency": WIDTH}
        await chain.abatch([{"query": "warm up"}] * WIDTH, config)
        before = resident()
        gc.freeze()  # As servers should, see docs/scale.md.
        began, worked = time.perf_counter(), time.process_time()
        results = await chain.abatch([{"query": "What is 6 times 7?"}] * questions, config)
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
        assert all(result["output"] == "42" for result in results)
        del results
        return seconds, cpu, resident() - before


async def first_chunks(executor: Executor, times: int) -> list[float]:
    """Milliseconds until the first piece of a program arrives, beyond what the model takes; each question alone."""
    found = []
    with create_code_chain(SlowModel(script=_script), executor=executor) as chain:
        for _ in range(times):
            began = time.perf_counter()
            stream: Any = chain.astream_events({"query": "What is 6 times 7?"}, version="v2")
            async for event in stream:
                if event["event"] == "on_chat_model_stream":
                    found.append((time.perf_counter() - began - DELAY) * 1e3)
                    break
            await stream.aclose()
    return found


def _script(messages: list[BaseMessage]) -> str:
    return PROGRAM if asks_for_code(messages) else ANSWER


def main(questions: int) -> None:
    """Measure and print."""
    ideal = 2 * DELAY * questions / WIDTH
    print(
        f"{questions} questions, {WIDTH} at once, a model of {DELAY * 1e3:.0f} ms, two calls each: ideal {ideal:.1f} s.\n"
    )
    print(
        "| executor | seconds | of the ideal | CPU ms a question | memory that stays, MB |\n|---|---|---|---|---|"
    )
    with SandboxExecutor(preload=()) as sandbox:
        executors: dict[str, Executor] = {
            "one that runs nothing": ScriptedExecutor(lambda code: "42"),
            "`SandboxExecutor`": sandbox,
        }
        for name, executor in executors.items():
            seconds, cpu, kept = asyncio.run(batches(executor, questions))
            print(
                f"| {name} | {seconds:.1f} | {ideal / seconds:.0%} | {cpu / questions * 1e3:.1f} | {kept:.0f} |",
                flush=True,
            )
        first = asyncio.run(first_chunks(sandbox, 20))
    print(
        f"\nThe first token of a program arrives {statistics.median(first):.1f} ms after the model gives it (median of 20)."
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
