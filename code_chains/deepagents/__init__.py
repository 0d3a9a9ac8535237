"""For Deep Agents (the extra `deepagents`): the kernel sandbox as a backend with files and a shell."""

from __future__ import annotations

from code_chains.deepagents.sandbox_backend import SandboxBackend

__all__ = ["SandboxBackend"]
