from typing import Any

from ._version import __version__ as __version__
from .analysis.replies.extraction import extract_code as extract_code
from .assembly.code_chain import CodeChain as CodeChain
from .assembly.factory import create_code_chain as create_code_chain
from .assembly.python_tool import create_python_tool as create_python_tool
from .assembly.settings import Data as Data
from .assembly.settings import Language as Language
from .assembly.settings import Prompts as Prompts
from .assembly.settings import Snippets as Snippets
from .assembly.solvers import Escalate as Escalate
from .assembly.solvers import Iterate as Iterate
from .assembly.solvers import Plan as Plan
from .assembly.solvers import Repair as Repair
from .assembly.solvers import Solver as Solver
from .assembly.verifiers import Agreement as Agreement
from .assembly.verifiers import Answerability as Answerability
from .assembly.verifiers import Calibrated as Calibrated
from .assembly.verifiers import GeneratedTests as GeneratedTests
from .assembly.verifiers import Judge as Judge
from .assembly.verifiers import Verifier as Verifier
from .callbacks.budget import Budget as Budget
from .conversations.memory import ConversationMemory as ConversationMemory
from .errors import BudgetError as BudgetError
from .errors import CodeChainsError as CodeChainsError
from .errors import ConfigurationError as ConfigurationError
from .errors import ExecutorError as ExecutorError
from .errors import InputError as InputError
from .errors import IsolationError as IsolationError
from .errors import StoreError as StoreError
from .evaluation import Case as Case
from .evaluation import Evaluation as Evaluation
from .evaluation import compare as compare
from .evaluation import evaluate as evaluate
from .executors import Limits as Limits
from .executors import SandboxExecutor as SandboxExecutor
from .executors.approval import ToolRequest as ToolRequest
from .language import detect_language as detect_language
from .retrieval.store import SnippetStore as SnippetStore
from .state import CodeFailedError as CodeFailedError
from .state import Execution as Execution
from .state import Problem as Problem
from .state import Turn as Turn
from .state import Verdict as Verdict
from .storage.sqlite import SqliteStore as SqliteStore
from .toolbox import Toolbox as Toolbox

__all__: list[str]

def load_ipython_extension(shell: Any) -> None: ...
