"""Wait for descriptors."""

from __future__ import annotations

import select


def readable(descriptors: list[int], timeout: float | None) -> set[int]:
    """Wait until some of the descriptors are readable; negative ones are ignored."""
    poll = select.poll()
    for descriptor in descriptors:
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if timeout is None else timeout * 1000)
    return {descriptor for descriptor, _ in ready}
