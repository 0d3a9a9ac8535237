"""Answer questions with executed code: plain LangChain chains, no graph runtime."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from code_chains.chains import (
        EvaluateChain,
        ExecuteChain,
        GenerateChain,
        InterpretChain,
        Piece,
        RepairChain,
        Sequence,
        Transform,
        ValidateChain,
    )
    from code_chains.errors import (
        CodeChainsError,
        CodeFailedError,
        ConfigurationError,
        ExecutorError,
        InputError,
        IsolationError,
        WeightsError,
    )
    from code_chains.executors import Limits, SandboxExecutor
    from code_chains.extraction import extract_code
    from code_chains.factory import CodeChain, create_code_chain
    from code_chains.state import Execution, Problem, Verdict

__version__ = "0.1.0"

_HOMES = {
    "create_code_chain": "factory",
    "CodeChain": "factory",
    "GenerateChain": "chains",
    "ValidateChain": "chains",
    "ExecuteChain": "chains",
    "EvaluateChain": "chains",
    "RepairChain": "chains",
    "InterpretChain": "chains",
    "Piece": "chains",
    "Transform": "chains",
    "Sequence": "chains",
    "SandboxExecutor": "executors",
    "Limits": "executors",
    "extract_code": "extraction",
    "Execution": "state",
    "Problem": "state",
    "Verdict": "state",
    "CodeChainsError": "errors",
    "CodeFailedError": "errors",
    "ConfigurationError": "errors",
    "ExecutorError": "errors",
    "InputError": "errors",
    "IsolationError": "errors",
    "WeightsError": "errors",
}

__all__ = [
    "CodeChain",
    "CodeChainsError",
    "CodeFailedError",
    "ConfigurationError",
    "EvaluateChain",
    "ExecuteChain",
    "Execution",
    "ExecutorError",
    "GenerateChain",
    "InputError",
    "InterpretChain",
    "IsolationError",
    "Limits",
    "Piece",
    "Problem",
    "RepairChain",
    "SandboxExecutor",
    "Sequence",
    "Transform",
    "ValidateChain",
    "Verdict",
    "WeightsError",
    "create_code_chain",
    "extract_code",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import code_chains` stays light."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
