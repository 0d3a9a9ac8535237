"""The allowlist of system calls: complete for ordinary programs, and closed to everything else."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from code_chains.executors import SandboxExecutor
from code_chains.executors.guest.kernel import seccomp

NEVER = """
ptrace process_vm_readv process_vm_writev mount umount2 pivot_root chroot unshare setns open_tree open_tree_attr move_mount
fsopen fsmount mount_setattr bpf perf_event_open userfaultfd io_uring_setup init_module kexec_load reboot keyctl add_key
open_by_handle_at name_to_handle_at memfd_create pidfd_getfd process_madvise shmget shmat shmctl shmdt semget semop
semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
timer_create inotify_init inotify_init1 fanotify_init sync syncfs listmount statmount acct swapon quotactl syslog
settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname personality vmsplice io_setup kcmp
"""


@pytest.mark.parametrize("name", NEVER.split())
def test_calls_that_reach_beyond_the_sandbox_are_not_on_the_list(name: str) -> None:
    assert name not in seccomp.ALLOWED


@pytest.mark.parametrize("column", [0, 1])
def test_no_number_is_used_for_two_calls(column: int) -> None:
    numbers = [number for call in seccomp.ALLOWED.values() if (number := call[column]) is not None]
    assert len(numbers) == len(set(numbers))
    assert max(numbers) <= seccomp.LAST_SYSCALL


@pytest.mark.parametrize("machine", seccomp.MACHINES)
@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("network", [True, False])
def test_every_jump_of_the_filter_stays_within_it(machine: str, *, namespaces: bool, network: bool) -> None:
    program = seccomp.filter_program(machine, namespaces=namespaces, network=network)
    assert len(program) < 4096  # The kernel takes no longer ones.
    for number, (code, if_true, if_false, _) in enumerate(program):
        if code & 7 == 5:
            assert number + 1 + max(if_true, if_false) < len(program)
    assert program[-1] == seccomp.ret(seccomp.RET_EPERM)


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/aarch64-linux-gnu/asm/unistd_64.h",
}


def test_the_numbers_are_those_of_the_kernels_headers() -> None:
    header = Path(HEADERS.get(platform.machine(), ""))
    if not header.is_file():
        pytest.skip("the kernel's headers are not installed")
    lines = [line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR_")]
    known = {name.removeprefix("__NR_"): int(number) for _, name, number in lines}
    column = seccomp.MACHINES[platform.machine()][0]
    listed = {name: call[column] for name, call in seccomp.ALLOWED.items() if name in known}
    assert listed == {name: known[name] for name in listed}
    assert len(listed) > 200


def test_a_missing_call_is_distinguished_from_a_denied_one(sandbox: SandboxExecutor) -> None:
    program = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
[(libc.syscall(number), errno.errorcode[ctypes.get_errno()]) for number in (468, 999)]
"""
    assert sandbox.run(program).result == "[(-1, 'EPERM'), (-1, 'ENOSYS')]"


def test_memory_runs_out_for_programs_before_it_does_for_the_app(sandbox: SandboxExecutor) -> None:
    assert sandbox.run("open('/proc/self/oom_score_adj').read()").result == repr("1000\n")
