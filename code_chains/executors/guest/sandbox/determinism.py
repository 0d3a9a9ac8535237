"""Repeatable runs: random numbers from a seed, and a frozen clock."""

from __future__ import annotations

import os
import random
import sys
import time


def start(seed: int, frozen_at: float) -> None:
    """Seed every source of randomness of Python, and freeze its clocks at a time in seconds since 1970.

    The clocks are frozen by time-machine, which also reaches extension modules. `time.monotonic` continues,
    as event loops and timeouts depend on it; so does whatever reads the kernel's clock itself, such as
    another process.
    """
    import time_machine

    source = random.Random(seed)  # noqa: S311 - repeatability is the purpose
    os.urandom = source.randbytes
    random._urandom = source.randbytes  # type: ignore[attr-defined]
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    time_machine.travel(frozen_at, tick=False).start()
    time.perf_counter = time.process_time = lambda: 0.0
    time.perf_counter_ns = time.process_time_ns = lambda: 0
