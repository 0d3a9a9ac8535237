"""For agents of LangChain (`create_agent`): programs with a state for each thread, and a shell, in the sandbox."""

from __future__ import annotations

from code_chains.agents.middleware import PythonMiddleware
from code_chains.agents.shell import SandboxExecutionPolicy

__all__ = ["PythonMiddleware", "SandboxExecutionPolicy"]
