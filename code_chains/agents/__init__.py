"""For agents of LangChain (`create_agent`): programs with a state for each thread, in the sandbox."""

from __future__ import annotations

from code_chains.agents.middleware import PythonMiddleware

__all__ = ["PythonMiddleware"]
