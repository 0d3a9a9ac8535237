"""Answer questions with executed code: plain LangChain chains, no graph runtime."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from code_chains._version import __version__ as __version__

if TYPE_CHECKING:
    from code_chains.analysis.replies.extraction import extract_code
    from code_chains.callbacks.budget import Budget
    from code_chains.chains import (
        AnswerabilityChain,
        ApprovalRequest,
        AttemptChain,
        CachedChain,
        EscalateChain,
        EvaluateChain,
        ExecuteChain,
        GenerateChain,
        InterpretChain,
        IterateChain,
        JudgeChain,
        LanguageChain,
        LearnChain,
        PlanChain,
        ProfileChain,
        RepairChain,
        RetrieveChain,
        SampleChain,
        StepsChain,
        StreamingChain,
        StreamingSequentialChain,
        StreamingTransformChain,
        TranslateChain,
        ValidateChain,
        WriteTestsChain,
    )
    from code_chains.code_chain import CodeChain
    from code_chains.conversations.memory import ConversationMemory
    from code_chains.errors import (
        BudgetError,
        CodeChainsError,
        ConfigurationError,
        ExecutorError,
        InputError,
        IsolationError,
        OverloadedError,
        StoreError,
        WeightsError,
    )
    from code_chains.evaluation import Case, Evaluation, compare, evaluate
    from code_chains.executors import Limits, SandboxExecutor
    from code_chains.factory import create_code_chain
    from code_chains.language import detect_language
    from code_chains.lessons import GradeChain, HintGate, Lesson, TutorChain, read_lesson
    from code_chains.python_tool import create_python_tool
    from code_chains.retrieval.store import SnippetStore
    from code_chains.settings import Data, Language, Prompts, Snippets
    from code_chains.solvers import Escalate, Iterate, Plan, Repair, Solver
    from code_chains.state import CodeFailedError, Execution, Problem, Turn, Verdict
    from code_chains.storage.sqlite import SqliteStore
    from code_chains.toolbox import Toolbox, ToolRequest
    from code_chains.verifiers import Agreement, Answerability, Calibrated, GeneratedTests, Judge, Verifier

_MODULE_OF = {
    "Repair": "solvers",
    "Iterate": "solvers",
    "Plan": "solvers",
    "Escalate": "solvers",
    "Solver": "solvers",
    "GeneratedTests": "verifiers",
    "Agreement": "verifiers",
    "Answerability": "verifiers",
    "Calibrated": "verifiers",
    "Judge": "verifiers",
    "Verifier": "verifiers",
    "Data": "settings",
    "Snippets": "settings",
    "Language": "settings",
    "Prompts": "settings",
    "ApprovalRequest": "chains",
    "AnswerabilityChain": "chains",
    "AttemptChain": "chains",
    "Budget": "callbacks.budget",
    "BudgetError": "errors",
    "CachedChain": "chains",
    "Case": "evaluation",
    "Evaluation": "evaluation",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "IterateChain": "chains",
    "JudgeChain": "chains",
    "ToolRequest": "toolbox",
    "Toolbox": "toolbox",
    "LanguageChain": "chains",
    "GradeChain": "lessons",
    "Lesson": "lessons",
    "HintGate": "lessons",
    "TutorChain": "lessons",
    "read_lesson": "lessons",
    "LearnChain": "chains",
    "RetrieveChain": "chains",
    "SnippetStore": "retrieval.store",
    "ConversationMemory": "conversations.memory",
    "SqliteStore": "storage.sqlite",
    "TranslateChain": "chains",
    "detect_language": "language",
    "PlanChain": "chains",
    "ProfileChain": "chains",
    "SampleChain": "chains",
    "StepsChain": "chains",
    "WriteTestsChain": "chains",
    "create_code_chain": "factory",
    "create_python_tool": "python_tool",
    "CodeChain": "code_chain",
    "GenerateChain": "chains",
    "ValidateChain": "chains",
    "ExecuteChain": "chains",
    "EscalateChain": "chains",
    "EvaluateChain": "chains",
    "RepairChain": "chains",
    "InterpretChain": "chains",
    "StreamingChain": "chains",
    "StreamingTransformChain": "chains",
    "StreamingSequentialChain": "chains",
    "SandboxExecutor": "executors",
    "Limits": "executors",
    "extract_code": "analysis.replies.extraction",
    "Execution": "state",
    "Problem": "state",
    "Turn": "state",
    "Verdict": "state",
    "CodeChainsError": "errors",
    "CodeFailedError": "state",
    "ConfigurationError": "errors",
    "ExecutorError": "errors",
    "InputError": "errors",
    "IsolationError": "errors",
    "OverloadedError": "errors",
    "StoreError": "errors",
    "WeightsError": "errors",
}

__all__ = [
    "Agreement",
    "Answerability",
    "AnswerabilityChain",
    "ApprovalRequest",
    "AttemptChain",
    "Budget",
    "BudgetError",
    "CachedChain",
    "Calibrated",
    "Case",
    "CodeChain",
    "CodeChainsError",
    "CodeFailedError",
    "ConfigurationError",
    "ConversationMemory",
    "Data",
    "Escalate",
    "EscalateChain",
    "EvaluateChain",
    "Evaluation",
    "ExecuteChain",
    "Execution",
    "ExecutorError",
    "GenerateChain",
    "GeneratedTests",
    "GradeChain",
    "HintGate",
    "InputError",
    "InterpretChain",
    "IsolationError",
    "Iterate",
    "IterateChain",
    "Judge",
    "JudgeChain",
    "Language",
    "LanguageChain",
    "LearnChain",
    "Lesson",
    "Limits",
    "OverloadedError",
    "Plan",
    "PlanChain",
    "Problem",
    "ProfileChain",
    "Prompts",
    "Repair",
    "RepairChain",
    "RetrieveChain",
    "SampleChain",
    "SandboxExecutor",
    "SnippetStore",
    "Snippets",
    "Solver",
    "SqliteStore",
    "StepsChain",
    "StoreError",
    "StreamingChain",
    "StreamingSequentialChain",
    "StreamingTransformChain",
    "ToolRequest",
    "Toolbox",
    "TranslateChain",
    "Turn",
    "TutorChain",
    "ValidateChain",
    "Verdict",
    "Verifier",
    "WeightsError",
    "WriteTestsChain",
    "compare",
    "create_code_chain",
    "create_python_tool",
    "detect_language",
    "evaluate",
    "extract_code",
    "read_lesson",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import code_chains` stays light."""
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Register `%%code_chain` and `%%lesson`; called by `%load_ext code_chains`."""
    shell.register_magics(import_module(f"{__name__}.apps.notebook").CodeChainMagics(shell))
    shell.register_magics(import_module(f"{__name__}.apps.lesson_magic").LessonMagics(shell))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
