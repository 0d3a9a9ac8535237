"""The pieces: each reads keys of one dict and adds keys to it."""

from code_chains.chains.base import Piece, Sequence, Transform
from code_chains.chains.evaluate import EvaluateChain
from code_chains.chains.execute import ExecuteChain
from code_chains.chains.generate import GenerateChain
from code_chains.chains.interpret import InterpretChain
from code_chains.chains.repair import RepairChain
from code_chains.chains.validate import ValidateChain

__all__ = [
    "EvaluateChain",
    "ExecuteChain",
    "GenerateChain",
    "InterpretChain",
    "Piece",
    "RepairChain",
    "Sequence",
    "Transform",
    "ValidateChain",
]
