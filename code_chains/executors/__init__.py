"""Executors, which run code. The default, `SandboxExecutor`, isolates every run with the kernel's own means."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
