"""The chains: each reads keys of the state and adds keys to it."""

from code_chains.chains.answerability import AnswerabilityChain
from code_chains.chains.attempt import AttemptChain
from code_chains.chains.base import StreamingChain, StreamingSequentialChain, StreamingTransformChain
from code_chains.chains.cached import CachedChain
from code_chains.chains.detect_language import LanguageChain
from code_chains.chains.escalate import EscalateChain
from code_chains.chains.evaluate import EvaluateChain
from code_chains.chains.execute import ExecuteChain
from code_chains.chains.generate import GenerateChain
from code_chains.chains.interpret import InterpretChain
from code_chains.chains.iterate import IterateChain
from code_chains.chains.judge import JudgeChain
from code_chains.chains.learn import LearnChain
from code_chains.chains.plan import PlanChain
from code_chains.chains.profile import ProfileChain
from code_chains.chains.repair import RepairChain
from code_chains.chains.retrieve import RetrieveChain
from code_chains.chains.sample import SampleChain
from code_chains.chains.steps import StepsChain
from code_chains.chains.translate import TranslateChain
from code_chains.chains.validate import ApprovalRequest, ValidateChain
from code_chains.chains.verify import VerifyChain
from code_chains.chains.write_tests import WriteTestsChain

__all__ = [
    "AnswerabilityChain",
    "ApprovalRequest",
    "AttemptChain",
    "CachedChain",
    "EscalateChain",
    "EvaluateChain",
    "ExecuteChain",
    "GenerateChain",
    "InterpretChain",
    "IterateChain",
    "JudgeChain",
    "LanguageChain",
    "LearnChain",
    "PlanChain",
    "ProfileChain",
    "RepairChain",
    "RetrieveChain",
    "SampleChain",
    "StepsChain",
    "StreamingChain",
    "StreamingSequentialChain",
    "StreamingTransformChain",
    "TranslateChain",
    "ValidateChain",
    "VerifyChain",
    "WriteTestsChain",
]
