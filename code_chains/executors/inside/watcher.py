"""The watcher: first process of a run's box, outside the program's reach. It starts, bounds and ends everything else."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import NoReturn

from . import loopback, places, processes, program, wire
from .kernel import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from .mirror import Mirror, remove
from .wire import Json

TICK = 0.02
PATIENCE = 5.0


@dataclass
class State:
    """A process that holds the state of a session, or runs a program.

    Attributes:
        pid: Its number.
        line: Our end of the line to it.
        mirror: The files that belong to it; None for those that are there now.
    """

    pid: int
    line: socket.socket
    mirror: Mirror | None = None


@dataclass
class Watch:
    """One box of one run or session, from its making to its end.

    Attributes:
        host: Line to the host; its end is the end of the box.
        config: What the box is like.
        root: Descriptor of the places it may write to.
        current: The process that waits for a program.
        before: The one that holds the state before the last run.
        saved: Those that hold checkpoints, by name.
    """

    host: socket.socket
    config: Json
    root: int
    current: State
    worker: int
    before: State | None = None
    saved: dict[str, State] = field(default_factory=dict)
    mirror: Mirror | None = None
    copies: int = -1
    room: int = 0
    base: int = 0
    begun: bool = False
    unusable: str | None = None

    # -- what the host says -------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Do what the host says until it hangs up, or nothing came for too long."""
        while self._wait([self.host.fileno(), self.worker], self.config["idle"] if self.copies >= 0 else None) & {
            self.host.fileno()
        }:
            message, descriptors = wire.receive(self.host)
            if message is None:
                break
            try:
                answer = getattr(self, f"on_{message.pop('op')}")(descriptors, **message)
            except OSError as error:
                answer = {"broken": f"{type(error).__name__}: {error}"}
            if answer:
                self.tell(answer)
        self.end()

    def end(self) -> NoReturn:
        """Kill everything and go."""
        processes.kill_all()
        if not self.config["namespaces"]:
            places.remove(self.config["root"])
        os._exit(0)

    def tell(self, message: Json, descriptors: tuple[int, ...] = ()) -> None:
        """Tell the host; if it is gone, that is the end."""
        try:
            wire.send(self.host, message, descriptors)
        except OSError:
            self.end()

    def on_files(self, descriptors: list[int], names: list[str], room: int, cell: bool) -> None:
        """Copy files into the working directory; those of a session's run are part of what a failure takes back."""
        if cell:
            self._save()
        self.room += room
        if self.config["namespaces"] and room:
            places.grow(self.config["limits"]["disk"] + self.room)
        for name, descriptor in zip(names, descriptors, strict=True):
            try:
                places.put(self.root, name, descriptor, 0 if self.config["namespaces"] else self.config["uid"])
            except OSError as error:
                self.unusable = f"The file {name!r} cannot be put into the working directory: {error.strerror}."

    def on_run(self, descriptors: list[int]) -> Json:
        """Run one program to its end and to that of all it started."""
        wire.send(self.current.line, {"keep": False}, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        ending = self._watch(self.current)
        processes.kill_all()
        return {"ended": ending}

    def on_stop(self, descriptors: list[int]) -> None:
        """What was to be stopped has ended by itself."""

    def on_cell(self, descriptors: list[int], number: int) -> Json:
        """Run one program of a session in a fork of its state, which becomes the state if it goes well."""
        self._save()
        self.begun = False
        unusable, self.unusable = self.unusable, None
        if unusable:
            self._mirror().restore()
            return {"unusable": unusable}
        fork = self._fork(descriptors, number)
        if fork is None:
            return {"broken": "the process that held its state is gone"}
        ending = self._watch(fork)
        if ending["ok"]:
            self._commit(fork)
        whole = self._kill_others()
        if not ending["ok"]:
            self._mirror().restore()
        return {"ended": ending} if whole else {"broken": "processes that it started could not be ended"}

    def _save(self) -> None:
        """Keep the files as they are before a run, once for each."""
        if not self.begun:
            self._kill_others()
            self._mirror().save()
            self.begun = True

    def _commit(self, fork: State) -> None:
        """The fork is the state from now on; the one before is held with its files, the one before that is let go."""
        older, self.before = self.before, self.current
        self.before.mirror, self.mirror = self.mirror, None
        if older is not None:
            older.line.close()
            self.mirror = older.mirror  # What it has copied already need not be copied again.
        self.current = fork

    def on_back(self, descriptors: list[int]) -> Json:
        """Return to the state before the last run."""
        if self.before is None:
            return {"missing": "There is no run to roll back: none went well since the last rollback."}
        self.forget(self.current)
        self.current, self.before = self.before, None
        self._kill_others()
        if self.current.mirror:
            self.current.mirror.restore()
            self.forget_files(self.current)
        return {"done": True}

    def on_save(self, descriptors: list[int], name: str) -> Json:
        """Hold the state as it is now under a name."""
        fork = self._fork([], 0)
        if fork is None:
            return {"broken": "the process that held its state is gone"}
        self.forget(self.saved.pop(name, None))
        self._kill_others(fork)
        fork.mirror = self._new_mirror()
        try:
            fork.mirror.save()
        except OSError as error:
            self.forget(fork)
            return {"missing": f"The checkpoint could not be kept: {error.strerror}."}
        self.saved[name] = fork
        return {"done": True}

    def on_load(self, descriptors: list[int], name: str) -> Json:
        """Return to a state that was saved; it stays saved."""
        held = self.saved[name]
        there, self.current = self.current, held
        fork = self._fork([], 0)
        if fork is None:
            self.current = there
            return {"broken": "the process that held the checkpoint is gone"}
        self.forget(there)
        self.forget(self.before)
        self.before, self.current = None, fork
        self._kill_others()
        if held.mirror:
            held.mirror.restore()
        return {"done": True}

    # -- states -------------------------------------------------------------------------------------------------------

    def _fork(self, descriptors: list[int], number: int) -> State | None:
        """Let the current state fork a process that runs a program, or with number 0 only holds the state."""
        ours, theirs = wire.pair()
        reply = None
        with contextlib.suppress(OSError):
            message = {"keep": True, "number": number}
            wire.send(self.current.line, message, [*descriptors, theirs.fileno()])
            if self._wait([self.current.line.fileno()], PATIENCE):
                reply, _ = wire.receive(self.current.line)
        theirs.close()
        for descriptor in descriptors:
            os.close(descriptor)
        pid = (reply or {}).get("pid", 0)
        return State(pid, ours) if processes.is_ours(pid) else None

    def forget(self, state: State | None) -> None:
        """Let a state go."""
        if state is not None:
            state.line.close()
            self.forget_files(state)

    def forget_files(self, state: State) -> None:
        """Let a state's copies of files go."""
        if state.mirror:
            os.close(state.mirror.copy)
            with contextlib.suppress(OSError):
                remove(self._copies(), state.mirror.name)
            state.mirror = None

    def _kill_others(self, *more: State) -> bool:
        kept = [self.current, *([self.before] if self.before else []), *self.saved.values(), *more]
        return processes.kill_all(but=[state.pid for state in kept])

    def _copies(self) -> int:
        """Directory of the copies of files, out of the program's sight."""
        if self.copies < 0:
            self.copies = places.make_copies(self.root, self.config)
        return self.copies

    def _mirror(self) -> Mirror:
        if self.mirror is None:
            self.mirror = self._new_mirror()
        return self.mirror

    def _new_mirror(self) -> Mirror:
        name = str(time.monotonic_ns())
        os.mkdir(name, dir_fd=self._copies())
        return Mirror(self.root, os.open(name, places.FOLDER, dir_fd=self._copies()), name)

    # -- while a program runs -----------------------------------------------------------------------------------------

    def _watch(self, running: State) -> Json:
        """Wait until a program ends or breaks a limit; returns how it ended.

        Of the process of a session we hear by its line, since it lives on; that of a single run is believed by its end
        alone.
        """
        began, limits = time.monotonic(), self.config["limits"]
        self.base = processes.resident(os.getpid())
        reason, told, ended = None, None, None
        watched = os.pidfd_open(running.pid)
        line = running.line.fileno() if running is not self.current else -1
        holders = {"holders": len(self.saved) + 2 if line >= 0 else 0}
        while told is None and ended is None:
            left = began + limits["seconds"] - time.monotonic()
            ready = self._wait([self.host.fileno(), watched, line, self.worker], max(0.0, min(TICK, left)))
            if line in ready:
                told, _ = wire.receive(running.line)
                line = line if told else -1
            reason = self._interrupted(ready) or reason
            if watched in ready and told is None:
                ended = processes.reap(running.pid) or self._gone(running)
            if told is None and ended is None:
                reason = reason or ("timeout" if left <= 0 else self._over(limits | holders))
                if reason:
                    processes.signal_to(running.pid, signal.SIGKILL)
        os.close(watched)
        if told and processes.is_ours(told.get("pid")):
            running.pid = told["pid"]
        code, peak = ended or (0, 0)
        return {
            "ok": bool(told and told.get("ok")) and not reason,
            "exit": code,
            "signal": -code if code < 0 else None,
            "reason": reason,
            "seconds": time.monotonic() - began,
            "peak": peak,
        }

    def _interrupted(self, ready: set[int]) -> str | None:
        """Whether the host wants a program to stop; without host or worker, everything ends."""
        if self.worker in ready:
            self.end()
        if self.host.fileno() in ready:
            if wire.receive(self.host)[0] is None:
                self.end()
            return "stopped"
        return None

    def _gone(self, running: State) -> tuple[int, int]:
        """How a process ended that is another one's child."""
        return processes.exit_code(running.pid), 0

    def _over(self, limits: Json) -> str | None:
        if reason := processes.over_limit(limits, self.base):
            return reason
        if self.config["namespaces"]:
            held = os.fstatvfs(self.root)
            return "files" if held.f_files - held.f_ffree > limits["files"] else None
        size, count = places.in_use(self.root, limits["files"])
        if count > limits["files"]:
            return "files"
        return "disk" if size > limits["disk"] + self.room else None

    def _wait(self, descriptors: list[int], seconds: float | None) -> set[int]:
        poll = select.poll()
        for descriptor in descriptors:
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        return {descriptor for descriptor, _ in ready}


def watch(host: socket.socket, streams: list[int], config: Json, worker: int) -> NoReturn:
    """Build what a run needs, start the process for its program, and watch over it. It never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_DUMPABLE, 0)  # No one of the same user may look into the watcher.
        if not config["namespaces"]:
            config["uid"] = places.user(config["uid"])
        root = places.make(config)
        listening = loopback.listen(config["network"])
        ours, theirs = wire.pair()
        pid = os.fork()
        if pid == 0:
            program.live(theirs, streams, config)
        theirs.close()
        for descriptor in streams:
            os.close(descriptor)
        wire.send(host, {"ready": True}, [root, *listening])
        for descriptor in listening:
            os.close(descriptor)
        Watch(host, config, root, State(pid, ours), worker).serve()
    except BaseException as error:
        with contextlib.suppress(OSError):
            wire.send(host, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(70)
