"""Frames: reports of a program's process are parsed, and whatever else is written there costs next to nothing."""

from __future__ import annotations

import asyncio
import struct
import time
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.guest import wire
from code_chains.executors.guest.frames import FrameReader

ENDINGS = st.fixed_dictionaries(
    {"status": st.just("ok"), "result": st.just(True), "error": st.sampled_from([None, "é", "x\ud800"])}
)


def framed(ending: dict[str, Any], result: bytes, *views: bytes) -> bytes:
    about = [{"name": f"v{number}", "media_type": "text/plain"} for number in range(len(views))]
    return wire.frame({**ending, "views": about}, [result, *views])


@given(
    st.lists(st.tuples(ENDINGS, st.binary(max_size=99), st.lists(st.binary(max_size=99), max_size=3))),
    st.integers(1, 50),
)
def test_frames_are_the_same_however_they_arrive(
    sent: list[tuple[Any, bytes, list[bytes]]], step: int
) -> None:
    data, reader = (
        b"".join(framed(ending, result, *views) for ending, result, views in sent),
        FrameReader(1000),
    )
    frames = [
        frame for start in range(0, len(data), step) for frame in reader.feed(data[start : start + step])
    ]
    assert [frame["result"].encode("utf-8", "replace") for frame in frames] == [
        result.decode("utf-8", "replace").encode() for _, result, _ in sent
    ]
    assert [[view["data"] for view in frame["views"]] for frame in frames] == [views for _, _, views in sent]


@given(st.binary(max_size=2000))
def test_malformed_frames_are_refused_without_an_error(noise: bytes) -> None:
    reader = FrameReader(1000)
    assert reader.feed(noise) == []
    assert reader.feed(framed({"status": "ok", "result": True}, b"42")) == [] or not noise


@pytest.mark.parametrize("sizes", [[-1], [True], ["1"], None, 5, {}, [1 << 21], [0, 1001], [0, -1, 1002]])
def test_invalid_sizes_are_refused(sizes: Any) -> None:
    reader, head = (
        FrameReader(1000),
        wire.encode({"status": "ok", "result": True, "sizes": sizes, "views": []}).encode(),
    )
    assert reader.feed(wire.FRAME_HEADER.pack(len(head)) + head) == []
    assert reader.garbled


HOSTILE = {
    "empty lists": b"[" + b"[]," * 43_000 + b"[]]",
    "empty objects": b"[" + b"{}," * 43_000 + b"{}]",
    "deep lists": b"[" * 131_000,
    "names": b"{" + b",".join(b'"%d":1' % number for number in range(13_000)) + b"}",
    "numbers": b"[" + b"1," * 65_000 + b"1]",
    "a long number": b"1" * 131_000,
    "escapes": b'"' + b"\\u0041" * 21_000 + b'"',
}


@pytest.mark.parametrize("head", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_most_costly_frame_costs_little(head: bytes) -> None:
    data = struct.pack("!I", len(head)) + head
    tracemalloc.start()
    FrameReader(16 << 20).feed(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


FLOODS = {
    "lists": "data = struct.pack('!I', 1 << 17) + b'[' + b'[],' * (11 << 20)",
    "lists that fit": "data = struct.pack('!I', 3 * 43000 + 3) + b'[' + b'[],' * 43000 + b'0]'",
    "lines": "data = b'[],' * (11 << 20) + b'\\n'",
    "short lines": "data = b'{}\\n' * (11 << 20)",
    "an announced result": "head = json.dumps({'status': 'ok', 'result': True, 'views': [], 'error': None, 'sizes':"
    " [1 << 20]}).encode()\ndata = struct.pack('!I', len(head)) + head + b'x' * (1 << 20)",
    "frames without end": "open('made', 'w').close()\nhead = json.dumps({'status': 'ok', 'result': True, 'error': None,"
    " 'views': [{'name': 'v', 'media_type': 'text/plain'}], 'sizes': [1 << 20, 2 << 20]}).encode()\n"
    "data = struct.pack('!I', len(head)) + head + b'x' * (3 << 20)",
}
FLOOD = """
import json, os, struct
{}
descriptors = [int(name) for name in os.listdir('/proc/self/fd') if int(name) > 100]
while True:
    for descriptor in descriptors:
        try: os.write(descriptor, data)
        except OSError: pass
"""


@pytest.mark.rows(2)
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
async def test_hostile_runs_cost_the_host_little_memory_and_time(flood: str) -> None:
    import resource  # Not on Windows.

    limits = Limits(seconds=2, memory="256M")
    with SandboxExecutor(limits=limits, preload=()) as executor:
        await executor.arun("1")
        before, ticks = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, [time.thread_time()]
        running = asyncio.gather(*[executor.arun(FLOOD.format(flood)) for _ in range(4)])
        while not running.done():
            await asyncio.sleep(0.005)
            ticks.append(time.thread_time())
        done = await running
        assert not any(execution.ok for execution in done) or "'status': 'ok'" in flood
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10
    # Of this thread: the machine itself is busy with them.
    assert max(later - earlier for earlier, later in pairwise(ticks)) < 0.1
