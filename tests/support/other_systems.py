"""macOS and Windows as far as they can be imitated on Linux, for code_chains and its tests alone.

Both see another `sys.platform`, and modules, functions, constants and files are absent that the other system lacks. The
standard library and other packages see the real system and go on working. It must begin before code_chains is imported:

    pytest --platform win32                                  imitates in all tests and the Pythons that they start
    python -I tests/support/other_systems.py win32 SCRIPT ARGUMENT…  imitates in one script

What is not imitated: paths and file systems, how files are shared and locked, signals, consoles and event loops.
"""

from __future__ import annotations

import builtins
import importlib
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any

PLATFORMS = ("darwin", "win32")
VARIABLE = "CODE_CHAINS_TEST_PLATFORM"
"""The variable that has Pythons which the tests start imitate the same system."""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STARTUP_FOLDER = os.path.join(ROOT, "tests", "support", "other_systems_startup")
"""The folder of a `sitecustomize` that imitates what the variable names."""
OURS = tuple(os.path.join(ROOT, name) + os.sep for name in ("code_chains", "tests", "examples", "docs"))
PRODUCT = os.path.join(ROOT, "code_chains") + os.sep
PROGRAMS = os.path.join(PRODUCT, "executors", "guest")
"""What runs within a sandbox or a container, and thus only on Linux."""
REFUSALS = {
    "The sandbox needs Linux": "needs the kernel sandbox of Linux",
    "such as SandboxExecutor": "needs sessions or tests, which WebAssembly lacks",
}
"""How code_chains refuses what other systems lack, and the reason for which such a test is skipped."""
STANDARD_LIBRARY = (os.path.dirname(os.__file__) + os.sep, "<frozen ")

LINUX_ALONE: dict[str, str] = {
    "os": "O_PATH O_TMPFILE copy_file_range eventfd getresgid getresuid memfd_create pidfd_open pipe2 posix_fadvise"
    " prctl process_vm_readv sched_getaffinity sched_setaffinity setns setresgid setresuid splice unshare getrandom"
    " MFD_ALLOW_SEALING MFD_CLOEXEC O_DIRECT RTLD_DEEPBIND getxattr setxattr listxattr removexattr",
    "signal": "SIGRTMIN SIGRTMAX SIGPOLL SIGPWR SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    "socket": "AF_ALG AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC SO_BINDTODEVICE SO_DOMAIN SO_PEERCRED SO_PEERSEC"
    " SO_PROTOCOL SOCK_CLOEXEC SOCK_NONBLOCK",
    "select": "epoll EPOLLIN EPOLLOUT EPOLLHUP EPOLLERR EPOLLET",
    "fcntl": "F_ADD_SEALS F_GET_SEALS F_SEAL_GROW F_SEAL_SEAL F_SEAL_SHRINK F_SEAL_WRITE F_SETPIPE_SZ F_GETPIPE_SZ",
    "resource": "prlimit RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING RUSAGE_THREAD",
}
NOT_ON_WINDOWS: dict[str, str] = {
    "os": "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC WNOHANG EX_USAGE chown chroot confstr ctermid"
    " fchdir fchmod fchown fork forkpty fwalk getegid geteuid getgid getgroups getpgid getpgrp getpriority getsid"
    " getuid initgroups killpg lchown lockf major minor mkfifo mknod nice openpty pathconf posix_spawn pread preadv"
    " pwrite pwritev readv register_at_fork sched_yield sendfile setegid seteuid setgid setgroups setpgid setpriority"
    " setregid setreuid setsid setuid statvfs fstatvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4"
    " waitid writev WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG RTLD_NOW RTLD_GLOBAL P_PID P_PIDFD WEXITED WNOWAIT",
    "signal": "ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGSYS SIGTSTP SIGUSR1"
    " SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt"
    " sigpending sigwait SIG_BLOCK SIG_UNBLOCK SIG_SETMASK",
    "socket": "AF_UNIX CMSG_LEN CMSG_SPACE SCM_RIGHTS SO_REUSEPORT recv_fds send_fds sethostname socketpair_unix",
    "select": "poll POLLIN POLLOUT POLLHUP POLLERR kqueue",
}
MISSING_MODULES = {
    "darwin": ("spwd", "ossaudiodev"),
    "win32": (
        "crypt",
        "curses",
        "fcntl",
        "grp",
        "pty",
        "pwd",
        "readline",
        "resource",
        "syslog",
        "termios",
        "tty",
    ),
}
OTHER_VALUES: dict[str, dict[str, dict[str, Any]]] = {
    "darwin": {"sys": {"platform": "darwin"}, "platform": {"system": lambda: "Darwin"}},
    "win32": {
        "sys": {"platform": "win32"},
        "platform": {"system": lambda: "Windows"},
        "os": {
            "name": "nt",
            "supports_dir_fd": frozenset(),
            "supports_follow_symlinks": frozenset({os.stat}),
        },
    },
}
imitated: str | None = None
"""The system that this process imitates, if any."""


class AbsentError(AttributeError):
    """The imitated system lacks this name."""


class Imitation:
    """A module as it is on another system; whatever is set on it is set on the real one.

    Args:
        module: The real module.
        absent: Names that it does not have there.
        values: What other names stand for there.
    """

    __slots__ = ("_absent", "_module", "_values")

    def __init__(self, module: ModuleType, absent: Sequence[str], values: Mapping[str, Any]) -> None:
        for slot, value in (("_module", module), ("_absent", frozenset(absent)), ("_values", dict(values))):
            object.__setattr__(self, slot, value)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """What `monkeypatch` looks into to restore what it has replaced."""
        names = {name: value for name, value in vars(self._module).items() if name not in self._absent}
        return {**names, **self._values}

    def __getattr__(self, name: str) -> Any:
        if name in self._absent:
            message = f"module {self._module.__name__!r} has no attribute {name!r} on {imitated}"
            raise AbsentError(message, name=name, obj=self)
        return self._values[name] if name in self._values else getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._values:
            self._values[name] = value
        else:
            setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._module) if name not in self._absent]


def imitate_if_asked(arguments: Sequence[str]) -> None:
    """Imitate the system of `--platform`, or of the variable that a test's process has set."""
    system = os.environ.get(VARIABLE)
    for name, following in zip(arguments, [*arguments[1:], ""], strict=False):
        option, _, value = name.partition("=")
        if option == "--platform":
            system = value or following
    if system in PLATFORMS and imitated is None:
        os.environ.update(environment(system))
        imitate(system)


def environment(system: str) -> dict[str, str]:
    """Return variables with which a Python imitates a system from its start, and so does what it starts."""
    paths = [STARTUP_FOLDER, ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {VARIABLE: system, "PYTHONPATH": os.pathsep.join(paths)}


def imitate(system: str) -> None:
    """Have code_chains and its tests see another system, from now on."""
    global imitated
    assert "code_chains" not in sys.modules, "code_chains has seen the real system"
    imitated = system
    imitations = _imitations(system)
    missing = MISSING_MODULES[system]
    real_import = builtins.__import__

    def imported(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the name that Python passes
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        is_ours = not level and str((globals or {}).get("__file__") or "").startswith(OURS)
        if is_ours and name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r} on {system}", name=name)
        module = real_import(name, globals, locals, fromlist or (), level)
        return imitations.get(module.__name__, module) if is_ours else module

    builtins.__import__ = imported
    sys.addaudithook(_hide_proc)


def unavailable(error: BaseException, text: str) -> str | None:
    """Return what a test that failed needs and the imitated system lacks; None if it is the product that failed.

    Invariant: what code_chains itself lacks is a failure, but for the sandbox, which says so, and what runs within it.

    Args:
        error: The exception that ended it.
        text: What pytest would show of it, with what was printed, as examples and programs may have met that exception.
    """
    assert imitated is not None
    for message, reason in REFUSALS.items():
        if message in text:
            return reason
    name = _missing_name(error)
    if name in _absent_names():
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        ours = [path for path in frames if path.startswith(OURS) and path != __file__]
        if ours and (not ours[-1].startswith(PRODUCT) or ours[-1].startswith(PROGRAMS)):
            return f"the test itself needs {name}"
    return None


def _missing_name(error: BaseException) -> str | None:
    """Return the name of a module or of something in it that was not found."""
    if isinstance(error, AttributeError | ModuleNotFoundError):
        return error.name or str(error).rpartition("has no attribute ")[2].strip("'")
    return None


def _absent_names() -> set[str]:
    assert imitated is not None
    listed = [LINUX_ALONE, NOT_ON_WINDOWS] if imitated == "win32" else [LINUX_ALONE]
    names = " ".join(text for names in listed for text in names.values())
    return {*names.split(), *MISSING_MODULES[imitated]}


def _imitations(system: str) -> dict[str, Imitation]:
    names = {*LINUX_ALONE, "sys", "platform", "subprocess"} - set(MISSING_MODULES[system])
    modules: dict[str, Imitation] = {}
    for name in names:
        absent = LINUX_ALONE.get(name, "").split()
        absent += NOT_ON_WINDOWS.get(name, "").split() if system == "win32" else []
        values = {"Popen": Popen} if name == "subprocess" else OTHER_VALUES[system].get(name, {})
        modules[name] = Imitation(importlib.import_module(name), absent, values)
    return modules


class Popen(subprocess.Popen[Any]):
    """A process; what runs a script in isolated mode, which no variable reaches, imitates the same system."""

    def __init__(self, args: Any, *others: Any, **options: Any) -> None:
        if imitated == "win32" and (options.get("pass_fds") or options.get("preexec_fn")):
            raise ValueError("pass_fds and preexec_fn are not supported on Windows platforms")
        if isinstance(args, list) and args[:2] == [sys.executable, "-I"] and str(args[2]).startswith(OURS):
            args = [*args[:2], os.path.abspath(__file__), imitated, *args[2:]]
        super().__init__(args, *others, **options)


def _hide_proc(event: str, arguments: tuple[Any, ...]) -> None:
    """Have code_chains find no `/proc`; the tests count processes with it."""
    if event in ("open", "os.listdir", "os.scandir") and arguments and str(arguments[0]).startswith("/proc"):
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code.co_filename.startswith(STANDARD_LIBRARY):
            frame = frame.f_back
        if frame and frame.f_code.co_filename.startswith(PRODUCT):
            raise FileNotFoundError(2, f"No such file or directory on {imitated}", arguments[0])


if __name__ == "__main__":
    del sys.argv[0]
    imitate(sys.argv.pop(0))
    runpy.run_path(sys.argv[0], run_name="__main__")
