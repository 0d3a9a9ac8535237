"""A column, label or field may be called like an attribute of what holds it, and nothing takes the one for the other."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_chains import create_code_chain
from code_chains.executors import SandboxExecutor
from code_chains.executors.values import value_of
from code_chains.testing import ScriptedModel

NAMES = [
    *("name", "names", "values", "index", "columns", "size", "shape", "T", "dtype", "dtypes", "items", "count", "item"),
    *("head", "to_arrow", "to_dict", "to_dicts", "tolist", "isoformat", "iterrows", "ndim", "keys", "label", "read"),
    *("to_pydatetime", "tzinfo", "fingerprint", "model_dump", "to_json", "is_tool", "kind", "value", "sizes"),
]  # fmt: skip
SOME = st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True)


@pytest.mark.slow
@settings(max_examples=15)
@given(SOME)
def test_a_table_crosses_the_border_whatever_its_columns_are_called(
    sandbox: SandboxExecutor, names: list[str]
) -> None:
    frame = pd.DataFrame({name: [number, number + 1] for number, name in enumerate(names)})
    for table in (frame, frame.set_index(names[0]), frame.rename_axis(names[-1]), frame.T):
        back = value_of(sandbox.run("x", variables={"x": table}, return_value=True))
        pd.testing.assert_frame_equal(back, table)


@pytest.mark.slow
@settings(max_examples=10)
@given(SOME)
def test_a_series_keeps_its_labels_and_its_name(sandbox: SandboxExecutor, names: list[str]) -> None:
    series = pd.Series(range(len(names)), index=names, name=names[0])
    back = value_of(sandbox.run("x", variables={"x": series}, return_value=True))
    pd.testing.assert_series_equal(back, series)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_a_value_whatever_its_fields_are_called(sandbox: SandboxExecutor, name: str) -> None:
    record = f"import dataclasses\n@dataclasses.dataclass\nclass R:\n    {name}: str\nR('x')"
    assert value_of(sandbox.run(record, return_value=True)) == {name: "x"}


def test_tools_return_and_take_such_tables(sandbox: SandboxExecutor) -> None:
    frame = pd.DataFrame({name: ["a", "b"] for name in NAMES})
    taken: list[Any] = []

    def load() -> pd.DataFrame:
        """Load a table."""
        return frame

    def save(rows: list[dict[str, str]]) -> None:
        """Save rows."""
        taken.extend(rows)

    done = sandbox.run("t = load()\nsave(t)\nlist(t.columns)", tools=[load, save])
    assert (done.output, taken) == (repr(NAMES), frame.to_dict("records"))


def test_a_conversation_describes_and_answers_with_such_tables(sandbox: SandboxExecutor) -> None:
    frame = pd.DataFrame({name: [1, 2] for name in NAMES})
    prompts: list[str] = []

    def script(messages: list[Any]) -> str:
        prompts.append(str(messages[-1].text))
        return "kept = df\nclass P:\n    columns = shape = 3\np = P()\ndf"

    with create_code_chain(
        ScriptedModel(script), executor=sandbox, answer_type=pd.DataFrame, interpret=False
    ) as chain:
        for query in ("First.", "Second."):
            result = chain.invoke({"query": query, "session_id": "s", "variables": {"df": frame}})
            pd.testing.assert_frame_equal(result["value"], frame)
    assert "variable `kept`: DataFrame, 2 rows, columns `name`" in prompts[1]
