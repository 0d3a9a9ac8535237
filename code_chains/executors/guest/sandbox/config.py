"""The configuration of a worker: written by the host, read by the worker and by what it forks."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

LARGE_MODULES = ("asyncio",)
"""Modules of the standard library that only spawners with libraries have imported."""


class RunLimits(TypedDict):
    """Limits of one run.

    Keys:
        seconds: Wall-clock time.
        memory: Bytes of memory of all processes together.
        processes: Number of processes and threads.
        disk: Bytes of files.
        files: Number of files and folders.
        open_files: Number of open files of one process.
        artifacts: Bytes of artifacts.
    """

    seconds: float
    memory: int
    processes: int
    disk: int
    files: int
    open_files: int
    artifacts: int


class WorkerConfig(TypedDict):
    """The configuration of a worker; its forks override `environment`, `writable`, `uid` and `root`, and have `libraries`.

    Keys:
        namespaces: Whether it runs in namespaces of its own.
        confined: Whether programs are isolated at all.
        network: Loopback addresses in the sandbox and ports of what programs may connect to.
        preload: Modules that spawners import, each one more than the one before.
        environment: Environment variables of programs.
        cache: Folder for caches of libraries.
        probe: What the probe tries to reach; empty for none, where another one has looked.
        commands: Whether programs run commands of the machine.
        visible: Read-only paths inside the writable folders.
        readable: Paths that programs may read.
        writable: Paths that programs may write to.
        session_timeout: Seconds without a run after which a session ends.
        seed: Seed of random numbers; None for real ones.
        frozen_at: Time of the clock if there is a seed, in seconds since 1970.
        limits: Limits of one run.
        shared: Folders and files of the host that are visible in namespaces, which the worker adds.
        uid: User of the worker or of one run; 0 for the caller.
        root: Folder of the run, without namespaces.
        hosted: Whether that is in a third-party sandbox, whose network and owner's files are for programs.
        libraries: How many of the preloaded modules a run has, from the first one.
        own_modules: Modules of this package, which the worker adds once it has imported everything.
        threads: Threads of the process that was forked for it, which adds this as well.
    """

    namespaces: bool
    confined: bool
    network: list[tuple[str, int]]
    preload: tuple[str, ...]
    environment: dict[str, str]
    cache: str
    probe: dict[str, Any]
    commands: bool
    visible: list[str]
    readable: list[str]
    writable: list[str]
    session_timeout: float
    seed: int | None
    frozen_at: float
    limits: RunLimits
    shared: NotRequired[list[str]]
    uid: NotRequired[int]
    root: NotRequired[str]
    hosted: NotRequired[bool]
    libraries: NotRequired[int]
    own_modules: NotRequired[list[str]]
    threads: NotRequired[int]
