"""Runs that can be repeated: random numbers from a seed, and a clock that stands still."""

from __future__ import annotations

import os
import random
import sys
import time


def start(seed: int, moment: float) -> None:
    """Seed every source of randomness that Python has, and stop its clocks at a moment in seconds since 1970.

    The clocks are stopped by time-machine, which reaches what is written in C as well. `time.monotonic` goes on, since
    event loops and timeouts live by it; so does what asks the kernel itself, such as another process.
    """
    import time_machine

    source = random.Random(seed)  # noqa: S311 - to be repeated is the purpose
    os.urandom = source.randbytes
    random._urandom = source.randbytes  # type: ignore[attr-defined]
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    time_machine.travel(moment, tick=False).start()
    time.perf_counter = time.process_time = lambda: 0.0
    time.perf_counter_ns = time.process_time_ns = lambda: 0
