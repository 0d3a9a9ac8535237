"""Chains as targets of LangSmith's evaluations, and an evaluator that scores them as `evaluate` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from code_chains.assembly.code_chain import CodeChain
from code_chains.evaluation import examples
from code_chains.evaluation.cases import Case
from code_chains.evaluation.scoring import Stated, is_right
from code_chains.state import Verdict, as_json


def as_target(chain: CodeChain) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function for `langsmith.evaluate`: from the inputs of an example to outputs in JSON.

    The inputs have a `query`, `question` or `input`, and optionally `files`, `variables` and others. The outputs are
    `answer`, `output`, `result` (the last value as the program shows it), `value` (with an answer type) and `verdict`.
    """

    def target(inputs: dict[str, Any]) -> dict[str, Any]:
        result = chain.invoke(examples.inputs_of(inputs))
        execution = result.get("execution")
        outputs = {key: result.get(key) for key in ("answer", "output", "verdict")}
        outputs["result"] = None if execution is None else execution.result
        if "value" in result:
            outputs["value"] = result["value"]
        return as_json(outputs)

    return target


def correct(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], reference_outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Score an answer as an evaluator of `langsmith.evaluate`: `{"key": "correct", "score": 0 or 1}`.

    Args:
        inputs: The inputs of the example.
        outputs: What `as_target` returned; empty if it raised.
        reference_outputs: The reference: `expected`, `answer` or `output`, a JSON value.

    Example:
        >>> verdict = {"status": "unverified", "by": "none", "reason": "It ran."}
        >>> correct({"question": "What is 6 times 7?"}, {"output": "42", "verdict": verdict}, {"answer": 42})
        {'key': 'correct', 'score': 1}
    """
    query = examples.inputs_of(inputs)["query"]
    expectation = Case.from_mapping(
        {"query": query, "expected": examples.expected_of(reference_outputs)}
    ).expectation
    if not outputs.get("verdict"):
        return {"key": "correct", "score": 0}
    stated = Stated(
        query=query,
        output=str(outputs.get("output") or ""),
        ok=Verdict.from_dict(outputs["verdict"]).ok,
        result=outputs.get("result"),
        value=outputs.get("value"),
        has_value="value" in outputs,
    )
    return {"key": "correct", "score": int(is_right(stated, expectation))}
