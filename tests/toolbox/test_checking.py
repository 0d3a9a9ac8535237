"""Calls of tools are checked before the program runs, and results of MCP arrive as values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel
from pytest_httpserver import HTTPServer

from code_chains import create_code_chain
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.testing import ScriptedModel
from code_chains.toolbox import Toolbox, json_schemas
from code_chains.toolbox.arguments import wrong_arguments
from code_chains.toolbox.checking import find_wrong_calls

SCHEMA = {
    "type": "object",
    "properties": {
        "customer": {"type": "integer"},
        "states": {"type": "array", "items": {"enum": ["new", "old"]}},
    },
    "required": ["customer"],
}


def lookup(customer: int, states: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the orders of a customer."""
    return [{"id": customer}]


def one(text: str) -> str:
    """Return a text."""
    return text


def remote(returned: Any, metadata: dict[str, Any] | None = None) -> StructuredTool:
    """Return a tool as adapters of MCP make them."""

    def call(**arguments: Any) -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    return StructuredTool.from_function(
        call,
        name="remote",
        description="Orders.",
        args_schema=SCHEMA,
        response_format="content_and_artifact",
        metadata=metadata,
        handle_tool_error=True,
    )


BOX = Toolbox([lookup, one, remote(("", None))])

WRONG = {
    "lookup()": "missing a required argument: 'customer'",
    "lookup(1, [], 3)": "too many positional arguments",
    "print(sum(o['id'] for o in lookup(custmer=1)))": "'customer'",
    "lookup(customer=1, limit=3)": "unexpected keyword argument 'limit'",
    "lookup('many')": "customer: Input should be a valid integer",
    "lookup(customer='12')": "customer: Input should be a valid integer",
    "lookup(True)": "customer: Input should be a valid integer",
    "x = 2\nlookup(x, states=[1])": "states",
    "async def main():\n    return await lookup()": "customer",
    "remote(customer='1')": "'1' is not of type 'integer'",
    "remote(customer=1, states=['lost'])": "'lost' is not one of ['new', 'old']",
    "remote(states=['new'])": "customer",
    "one()": "text",
    "one(text='a', other=1)": "other",
}
RIGHT = [
    *(
        "lookup(1)",
        "lookup(n)",
        "lookup(*given)",
        "lookup(**given)",
        "lookup(1, states=())",
    ),
    *("lookup = len\nlookup()", "def f(lookup):\n    return lookup()", "from x import y as lookup\nlookup()"),
    *(
        "remote(1)",
        "remote(1, ['new', state])",
        "one(tool_input='a')",
        "x.lookup()",
        "lookup(",
        "map(lookup, [1])",
    ),
]


@pytest.mark.parametrize(("code", "reason"), WRONG.items())
def test_a_call_that_must_fail_is_found(code: str, reason: str) -> None:
    [problem] = find_wrong_calls(code, BOX)
    assert reason in problem.message
    assert problem.severity == "error"


@pytest.mark.parametrize("code", RIGHT)
def test_a_call_that_may_succeed_is_let_through(code: str) -> None:
    assert find_wrong_calls(code, BOX) == []


def test_a_wrong_call_is_repaired_before_anything_runs(sandbox: SandboxExecutor) -> None:
    def reply(messages: list[Any]) -> str:
        name = "customer" if "unexpected" in str(messages[-1].text) else "limit=1, customer"
        return f"print(lookup({name}=1))"

    with create_code_chain(ScriptedModel(reply), executor=sandbox, tools=[lookup], interpret=False) as chain:
        result = chain.invoke("Which orders has customer 1?")
    assert result["output"] == "[{'id': 1}]"
    assert [attempt.status for attempt in result["attempts"]] == ["refused", "ok"]


RETURNED: dict[str, tuple[Any, Any]] = {
    "an object": (([{"type": "text", "text": "{}"}], {"structured_content": {"id": 1}}), {"id": 1}),
    "a wrapped list": (([], {"structured_content": {"result": [1, 2]}}), [1, 2]),
    "text": (([{"type": "text", "text": "a b"}], None), "a b"),
    "two texts": (([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None), ["a", "b"]),
    "text without blocks": (("a", {"own": 1}), "a"),
}


@pytest.mark.parametrize(("returned", "value"), RETURNED.values(), ids=RETURNED)
def test_what_a_tool_of_mcp_returns_is_a_value_of_the_program(
    sandbox: SandboxExecutor, returned: Any, value: Any
) -> None:
    done = sandbox.run("print(repr(remote(1)))", tools=[remote(returned)])
    assert done.stdout.strip() == repr(value)


def test_a_failure_of_a_tool_of_mcp_is_an_error_and_no_value(sandbox: SandboxExecutor) -> None:
    done = sandbox.run("remote(1)", tools=[remote(ToolException("There is no such customer."))])
    assert done.error is not None
    assert "There is no such customer." in done.error.message


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "object", "properties": {"id": {"type": "integer"}}}, "-> {'id': int}:"),
        (
            {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "number"}}}},
            "-> list[float]:",
        ),
    ],
)
def test_an_output_schema_is_the_return_type_that_the_model_sees(schema: dict[str, Any], kind: str) -> None:
    assert kind in Toolbox([remote(("", None), {"outputSchema": schema})]).format_for_model()


def test_items_of_a_program_are_compared_in_time_that_is_linear() -> None:
    schema = {"properties": {"items": {"type": "array", "uniqueItems": True}}}
    items: list[Any] = [{"a": number} for number in range(20_000)]
    assert not wrong_arguments(schema, {"items": items})
    assert "the same" in wrong_arguments(schema, {"items": [*items, {"a": 7.0}]})


class Sum(BaseModel):
    left: Sum | Product | float
    right: Sum | Product | float


class Product(BaseModel):
    left: Sum | Product | float
    right: Sum | Product | float


class Formula(BaseModel):
    formula: Sum


@pytest.mark.parametrize("schema", [Formula, Formula.model_json_schema()])
def test_arguments_whose_levels_double_the_work_are_refused(
    schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schemas, "_MAX_STEPS", 5_000)
    node: Any = "x"
    for _ in range(40):
        node = {"left": 1, "right": node}
    assert "too deep" in wrong_arguments(schema, {"formula": node}, are_all=True)
    assert not wrong_arguments(schema, {"formula": {"left": 1, "right": {"left": 2, "right": 3}}})


class Wide(BaseModel):
    a: int
    b: int
    c: int
    d: int
    e: int


class Rows(BaseModel):
    rows: list[Wide]


def test_objects_that_lack_all_their_fields_are_counted_before_each_is_an_error() -> None:
    row = dict.fromkeys("abcde", 1)
    assert not wrong_arguments(Rows, {"rows": [row] * 30_000})
    assert "too large" in wrong_arguments(Rows, {"rows": [{}] * 100_000})
    assert "Field required" in wrong_arguments(Rows, {"rows": [{}]})


LOOP: dict[str, Any] = {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    "recursive",
    [
        {"allOf": [{"items": LOOP}, {"items": LOOP}]},
        {"items": LOOP, "contains": LOOP},
        {"not": {"not": {"items": LOOP}}, "if": {"items": LOOP}},
    ],
)
def test_a_schema_that_refers_to_itself_is_left_after_so_many_steps(
    recursive: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schemas, "_MAX_STEPS", 5_000)
    value: Any = "x"
    for _ in range(60):
        value = [value]
    schema = {"$defs": {"A": recursive}, "properties": {"v": LOOP}}
    assert "too deep" in wrong_arguments(schema, {"v": value}, are_all=True)


@pytest.mark.parametrize(
    ("pattern", "text", "is_wrong"),
    [
        (r"^([a-zA-Z0-9]+\s?)+$", "a" * 5_000 + "!", True),
        (r"^(a+)+$", "a" * 5_000, False),
        ("^[a-z]+$", "A", True),
        ("(?=a)b", "b", False),
        ("(", "b", False),
    ],
)
def test_expressions_of_a_schema_are_matched_in_time_that_is_linear(
    pattern: str, text: str, *, is_wrong: bool
) -> None:
    schema = {
        "properties": {
            "text": {"pattern": pattern},
            "more": {"patternProperties": {pattern: {"type": "null"}}},
        }
    }
    told = wrong_arguments(schema, {"text": text, "more": {text: 1}}, are_all=True)
    assert bool(told) is is_wrong


def test_no_keyword_of_a_schema_matches_expressions_by_backtracking() -> None:
    inner = {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "unevaluatedProperties": False}
    assert not wrong_arguments({"properties": {"h": inner}}, {"h": {"a" * 60 + "!": 1}}, are_all=True)


def test_errors_of_a_schema_do_not_show_whole_values() -> None:
    tree = {
        "anyOf": [{"required": ["next"], "properties": {"next": LOOP}, "type": "object"}, {"type": "number"}]
    }
    value: Any = "x" * 3_000_000 + "\N{GRINNING FACE}"
    for _ in range(40):
        value = {"next": value}
    began = time.thread_time()
    assert wrong_arguments({"$defs": {"A": tree}, "properties": {"t": LOOP}}, {"t": value}, are_all=True)
    assert time.thread_time() - began < 1


def test_a_schema_reads_no_file_and_opens_no_address(tmp_path: Path, httpserver: HTTPServer) -> None:
    (tmp_path / "secret.json").write_text('{"enum": ["secret"]}')
    for reference in ((tmp_path / "secret.json").as_uri(), httpserver.url_for("/secret.json")):
        assert not wrong_arguments({"properties": {"a": {"$ref": reference}}}, {"a": "z"}, are_all=True)
    assert not httpserver.log
