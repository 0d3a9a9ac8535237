"""Answer questions with executed code: plain LangChain chains, no graph runtime."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from code_chains.budget import Budget
    from code_chains.chains import (
        ApprovalRequest,
        AttemptChain,
        CachedChain,
        EvaluateChain,
        ExecuteChain,
        GenerateChain,
        InterpretChain,
        JudgeChain,
        LanguageChain,
        LearnChain,
        Piece,
        PlanChain,
        RepairChain,
        RetrieveChain,
        SampleChain,
        Sequence,
        StepsChain,
        Transform,
        TranslateChain,
        ValidateChain,
        WriteTestsChain,
    )
    from code_chains.code_chain import CodeChain
    from code_chains.errors import (
        BudgetError,
        CodeChainsError,
        CodeFailedError,
        ConfigurationError,
        ExecutorError,
        InputError,
        IsolationError,
        OverloadedError,
        StoreError,
        WeightsError,
    )
    from code_chains.executors import Limits, SandboxExecutor
    from code_chains.extraction import extract_code
    from code_chains.factory import create_code_chain
    from code_chains.language import detect_language
    from code_chains.memory import ConversationMemory
    from code_chains.snippets import SnippetStore
    from code_chains.state import Execution, Problem, Turn, Verdict
    from code_chains.stores import SqliteStore

__version__ = "0.1.0"

_HOMES = {
    "ApprovalRequest": "chains",
    "AttemptChain": "chains",
    "Budget": "budget",
    "BudgetError": "errors",
    "CachedChain": "chains",
    "JudgeChain": "chains",
    "LanguageChain": "chains",
    "LearnChain": "chains",
    "RetrieveChain": "chains",
    "SnippetStore": "snippets",
    "ConversationMemory": "memory",
    "SqliteStore": "stores",
    "TranslateChain": "chains",
    "detect_language": "language",
    "PlanChain": "chains",
    "SampleChain": "chains",
    "StepsChain": "chains",
    "WriteTestsChain": "chains",
    "create_code_chain": "factory",
    "CodeChain": "code_chain",
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
    "Turn": "state",
    "Verdict": "state",
    "CodeChainsError": "errors",
    "CodeFailedError": "errors",
    "ConfigurationError": "errors",
    "ExecutorError": "errors",
    "InputError": "errors",
    "IsolationError": "errors",
    "OverloadedError": "errors",
    "StoreError": "errors",
    "WeightsError": "errors",
}

__all__ = [
    "ApprovalRequest",
    "AttemptChain",
    "Budget",
    "BudgetError",
    "CachedChain",
    "CodeChain",
    "CodeChainsError",
    "CodeFailedError",
    "ConfigurationError",
    "ConversationMemory",
    "EvaluateChain",
    "ExecuteChain",
    "Execution",
    "ExecutorError",
    "GenerateChain",
    "InputError",
    "InterpretChain",
    "IsolationError",
    "JudgeChain",
    "LanguageChain",
    "LearnChain",
    "Limits",
    "OverloadedError",
    "Piece",
    "PlanChain",
    "Problem",
    "RepairChain",
    "RetrieveChain",
    "SampleChain",
    "SandboxExecutor",
    "Sequence",
    "SnippetStore",
    "SqliteStore",
    "StepsChain",
    "StoreError",
    "Transform",
    "TranslateChain",
    "Turn",
    "ValidateChain",
    "Verdict",
    "WeightsError",
    "WriteTestsChain",
    "create_code_chain",
    "detect_language",
    "extract_code",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import code_chains` stays light."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext code_chains` calls: from then on there is `%%code_chain`."""
    shell.register_magics(import_module(f"{__name__}.notebook").CodeChainMagics(shell))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
