"""Places where code runs. The default, `SandboxExecutor`, isolates every run with the kernel's own means."""

from code_chains.executors.base import Executor, Limits, Session
from code_chains.executors.sandbox import ProcessExecutor, SandboxExecutor

__all__ = ["Executor", "Limits", "ProcessExecutor", "SandboxExecutor", "Session"]
