"""Start the processes of a cluster on this machine early: imports take longer than anything else."""

from __future__ import annotations

import functools
import multiprocessing
import sys


@functools.cache
def warm_up() -> str:
    """Let a process import what workers need while this one imports it as well; return how workers are started from it."""
    if sys.platform != "linux":
        return "spawn"
    from multiprocessing import forkserver

    modules = ["code_chains.batch.workers", "langchain_openai"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)
    forkserver.ensure_running()
    return "forkserver"
