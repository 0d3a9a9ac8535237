"""The stages of a program that a person or an agent wrote: it answers no question."""

from __future__ import annotations

from code_chains.chains.base import Chain, StreamingTransformChain
from code_chains.chains.evaluate import UNCHECKED
from code_chains.chains.execute import ExecuteChain
from code_chains.chains.validate import ValidateChain
from code_chains.executors.base import Executor
from code_chains.state import Execution, Verdict
from code_chains.toolbox import Toolbox


def user_code_chains(
    validate: ValidateChain, executor: Executor, toolbox: Toolbox | None = None
) -> list[Chain]:
    """Return the stages of a program that answers no question: one that ran is right, even if it shows nothing."""
    evaluate = StreamingTransformChain(
        name="evaluate",
        input_variables=["execution"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": _verdict_on_user_code(state["execution"])},
    )
    return [validate, ExecuteChain(executor, tools=toolbox), evaluate]


def _verdict_on_user_code(execution: Execution) -> Verdict:
    if execution.ok:
        return UNCHECKED
    return Verdict("failed", "none", execution.summary)
