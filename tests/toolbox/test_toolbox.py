"""Tools of the application as functions of a program: their names, signatures and descriptions."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from pydantic import BaseModel

from code_chains import ConfigurationError
from code_chains.chains import ValidateChain
from code_chains.toolbox import Toolbox
from code_chains.toolbox.schemas import type_of_schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    count: int = 1


class Tree(BaseModel):
    children: list[Tree] = []


def plain(a: int, b: float = 0.5, *, c: bool = False) -> list[str]:
    """Return nothing of interest."""
    return []


def rich(
    when: datetime.date, items: list[Item], kind: Literal["x", "y"] = "x", color: Color = Color.RED
) -> Item:
    """Return an item."""
    return items[0]


def optional(text: str | None = None, amount: decimal.Decimal | None = None) -> dict[str, float]:
    """Return numbers."""
    return {}


def table(n: int) -> pandas.DataFrame:
    """Return a table."""
    return pandas.DataFrame({"n": range(n)})


def injected(
    x: int,
    secret: Annotated[str, InjectedToolArg] = "s",
    config: RunnableConfig = None,  # type: ignore[assignment]
) -> bytes:
    """Return bytes."""
    return b""


def recursive(tree: Tree) -> None:
    """Return nothing."""


async def waits(x: int) -> int:
    """Wait."""
    return x


SIGNATURES: list[tuple[Callable[..., Any], str]] = [
    (
        plain,
        "def plain(a: int, b: float = 0.5, c: bool = False) -> list[str]: ...  # Return nothing of interest.",
    ),
    (
        rich,
        "def rich(when: date, items: list[{'name': str, 'count': int}], kind: Literal['x', 'y'] = 'x',"
        " color: Literal['red', 'blue'] = 'red') -> {'name': str, 'count': int}: ...  # Return an item.",
    ),
    (table, "def table(n: int) -> DataFrame: ...  # Return a table."),
    (injected, "def injected(x: int) -> bytes: ...  # Return bytes."),
    (waits, "def waits(x: int) -> int: ...  # Wait."),
]


@pytest.mark.parametrize(
    ("function", "expected"), SIGNATURES, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_function_is_described_by_its_signature_and_its_docstring(
    function: Callable[..., Any], expected: str
) -> None:
    assert expected in Toolbox([function]).format_for_model()


@pytest.mark.parametrize("function", [optional, recursive])
def test_a_signature_ends_where_a_type_does_not(function: Callable[..., Any]) -> None:
    described = Toolbox([function]).format_for_model()
    assert f"def {function.__name__}(" in described
    assert len(described) < 1000


def test_nested_models_keep_the_types_of_their_fields() -> None:
    def place(path: list[dict[str, list[Item]]]) -> None:
        """Place."""

    assert "list[dict[str, list[{'name': str, 'count': int}]]]" in Toolbox([place]).format_for_model()


def test_a_table_as_argument_is_refused_in_one_line() -> None:
    def use(frame: pandas.DataFrame) -> int:
        """Use."""
        return 1

    with pytest.raises(ConfigurationError) as refused:
        Toolbox([use])
    assert "\n" not in str(refused.value)


def test_a_langchain_tool_keeps_its_own_name_and_description() -> None:
    @tool("find_city", description="Find a city by its name.")
    def find(name: str) -> str:
        return name

    assert (
        "def find_city(name: str) -> str: ...  # Find a city by its name."
        in Toolbox([find]).format_for_model()
    )


def test_a_tool_with_a_json_schema_has_a_signature() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array"}},
        "required": ["id"],
    }
    remote = StructuredTool.from_function(
        lambda **arguments: None, name="remote", description="Call.", args_schema=schema
    )
    assert "def remote(id: int, tags: list = None)" in Toolbox([remote]).format_for_model()


def test_only_the_first_paragraph_of_a_long_description_is_shown() -> None:
    long = StructuredTool.from_function(plain, description=f"{'word ' * 1000}\n\nsecond paragraph")
    described = Toolbox([long]).format_for_model()
    assert len(described) < 800
    assert "second" not in described


def named(name: str) -> BaseTool:
    return StructuredTool.from_function(plain, name=name)


def untold(x: int) -> int:
    return x


def variable(*numbers: int) -> int:
    """Add numbers."""
    return sum(numbers)


def variable_names(**numbers: int) -> int:
    """Add numbers."""
    return sum(numbers.values())


REFUSED: dict[str, tuple[list[Any], str]] = {
    "a builtin": ([named("print")], "another name"),
    "a module": ([named("json")], "a module"),
    "what programs call their result": ([named("result")], "another name"),
    "no identifier": ([named("search-web")], "search_web"),
    "a keyword": ([named("class")], "a Python function"),
    "a private name": ([named("_plain")], "a Python function"),
    "twice": ([plain, plain], "each name once"),
    "no docstring": ([untold], "a docstring"),
    "variable arguments": ([variable], r"without \*numbers; give it named parameters"),
    "variable names": ([variable_names], r"without \*\*numbers; give it named parameters"),
    "no function": ([42], "LangChain tools or typed functions"),
    "a text": (["plain"], "LangChain tools or typed functions"),
}


@pytest.mark.parametrize(("tools", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_a_function_of_a_program_is_refused_with_a_remedy(
    tools: list[Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Toolbox(tools)


def test_a_parameter_that_python_cannot_have_is_named() -> None:
    schema = {"type": "object", "properties": {"user-id": {"type": "integer"}}}
    remote = StructuredTool.from_function(
        lambda **arguments: None, name="remote", description="Call.", args_schema=schema
    )
    with pytest.raises(ConfigurationError, match="'user-id'"):
        Toolbox([remote])


@pytest.mark.parametrize(
    ("metadata", "effect"),
    [
        (None, "other"),
        ({"read_only": True}, "read_only"),
        ({"readOnlyHint": True}, "read_only"),
        ({"pure": True, "read_only": False}, "pure"),
        ({"read_only": "yes"}, "other"),
    ],
)
def test_a_tool_has_effects_unless_its_metadata_denies_it(
    metadata: dict[str, Any] | None, effect: str
) -> None:
    toolbox = Toolbox([StructuredTool.from_function(plain, metadata=metadata)])
    assert toolbox.signatures["plain"].effect == effect
    assert toolbox.is_read_only == (effect != "other")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(JSON)
def test_any_json_is_rendered_as_a_type(schema: Any) -> None:
    assert isinstance(type_of_schema({"type": "object", "properties": {"x": schema}}), str)


def test_what_the_sandbox_receives_of_a_tool_is_json() -> None:
    for signature in Toolbox([plain, rich, table]).signatures.values():
        assert json.loads(json.dumps(signature.to_dict()))["name"] == signature.name


def test_a_program_that_defines_a_tool_itself_is_refused() -> None:
    chain = ValidateChain(names=("price",))
    problems = chain.invoke({"code": "def price(s):\n    return 99\nprint(price('a'))"})["problems"]
    assert "Call it; do not define it again" in problems[0].message
    assert chain.invoke({"code": "price = price('a')\nprint(price)"})["problems"] == []
