"""Values cross the border of a sandbox as they are, or are refused with their type and place."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import threading
import time
import zoneinfo
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.tools import Tool

from code_chains import create_code_chain
from code_chains.chains.answer_value import answer_value
from code_chains.errors import InputError
from code_chains.executors import SandboxExecutor
from code_chains.executors.values import check_variables, value_of
from code_chains.records import DisplayData, Execution
from code_chains.testing import ScriptedModel
from code_chains.toolbox import Toolbox
from code_chains.verification.values.answer_types import AnswerType, AnswerTypeError

Point = collections.namedtuple("Point", "x y")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=9)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC) | st.just(zoneinfo.ZoneInfo("Asia/Tokyo")))
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.integers(0, 9999).map(lambda ordinal: pd.Period(ordinal=ordinal, freq="D"))
    | st.integers(0, 9).map(lambda left: pd.Interval(left, left + 1))
    | st.integers(0, 10**18).map(pd.Timestamp)
)
KEYS = st.recursive(
    SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=2), max_leaves=3
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.tuples(inner, inner).map(lambda pair: Point(*pair))
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.sets(KEYS, max_size=3)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(preload=("numpy", "pandas")) as executor:
        yield executor


@pytest.mark.slow
@given(VALUES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_variable_comes_back_as_it_went(box: SandboxExecutor, value: Any) -> None:
    done = box.run("[x]", variables={"x": value}, return_value=True)
    assert value_of(done) == [value]


SUMMER = datetime.timezone(datetime.timedelta(hours=2), "CEST")
FRAMES = {
    "pd.cut": pd.DataFrame({"age": [1, 9], "group": pd.cut(pd.Series([1, 9]), [0, 5, 10])}),
    "levels of columns": pd.DataFrame({"k": ["a", "b"], "v": [1, 2]}).groupby("k").agg(["sum", "mean"]),
    "periods as columns": pd.DataFrame([[1, 2]], columns=pd.period_range("2024-01", periods=2, freq="M")),
    "dicts": pd.DataFrame({"d": [{"a": 1}, {"b": 2}], "l": [[1], {2}]}),
    "names": pd.DataFrame([[1, 2, 3]], columns=["a", "a", None]).rename_axis(columns="c"),
    "levels of nothing": pd.DataFrame(index=pd.MultiIndex.from_arrays([[], []], names=["a", "b"])),
    "moments": pd.DataFrame({"t": [1, 2]}, index=pd.date_range("2024", periods=2, freq="D", tz="Asia/Tokyo")),
    "nullable": pd.DataFrame({"i": pd.array([2**62, None], "Int64"), "s": pd.array(["a", None], "string")}),
    "Arrow": pd.DataFrame({"x": pd.array([1, None], "int64[pyarrow]")}),
    "dates of Arrow": pd.DataFrame({"d": pd.to_datetime(["2024"])}).convert_dtypes(dtype_backend="pyarrow"),
    "text and None": pd.DataFrame({"x": pd.Series(["a", None, float("nan")], dtype=object)}),
    "flags": pd.DataFrame({"a": [1]}).set_flags(allows_duplicate_labels=False),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_comes_back_as_it_went(box: SandboxExecutor, frame: pd.DataFrame) -> None:
    arrived = value_of(box.run("x", variables={"x": frame}, return_value=True))
    pd.testing.assert_frame_equal(arrived, frame)


def test_nan_is_not_na(box: SandboxExecutor) -> None:
    cells = pd.Series(pd.arrays.FloatingArray(np.array([np.nan, 0]), np.array([False, True])))
    arrived = value_of(box.run("x", variables={"x": cells}, return_value=True))
    assert str(arrived.tolist()) == "[nan, <NA>]"


@pytest.mark.parametrize("zone", [SUMMER, zoneinfo.ZoneInfo("UTC"), datetime.UTC])
def test_a_time_zone_keeps_its_name(box: SandboxExecutor, zone: datetime.tzinfo) -> None:
    moment = datetime.datetime(2024, 7, 1, tzinfo=zone)
    assert repr(value_of(box.run("x", variables={"x": moment}, return_value=True))) == repr(moment)


def test_an_integer_without_a_text_is_a_value_all_the_same(box: SandboxExecutor) -> None:
    number = 10**4300
    assert value_of(box.run("x", variables={"x": number}, return_value=True)) == number


def test_a_named_tuple_keeps_its_names(box: SandboxExecutor) -> None:
    assert value_of(box.run("x", variables={"x": [Point(1, 2)]}, return_value=True))[0].y == 2


REFUSED: dict[str, tuple[Any, str]] = {
    "a lock": ({"jobs": [threading.Lock()]}, r"x\['jobs'\]\[0\] is a _thread\.lock"),
    "a generator": (iter([1]), "x is a list_iterator"),
    "a class": ([1, int], r"x\[1\] is a type"),
    "a masked array": ([np.ma.array([1])], r"x\[0\] is a numpy\.MaskedArray"),
    "a cell": (
        pd.DataFrame({"g": [1, threading.Lock()]}),
        r"column 'g' of 'x'.*x\['g'\]\[1\] is a _thread\.lock",
    ),
    "a label": (pd.Series([1], index=[threading.Lock()]), r"x\.index\[0\] is a _thread\.lock"),
    "a label of columns": (pd.DataFrame([[1]], columns=[threading.Lock()]), r"x\.columns\[0\] is a"),
    "an attribute": (pd.Series([1]), r"x\.attrs\['a'\]\[0\] is a _thread\.lock"),
    "a name": (pd.Series([1], name=(1, threading.Lock())), r"x\.name\[1\] is a"),
    "the name of an index": (
        pd.DataFrame(index=pd.Index([1], name=threading.Lock())),
        r"x\.index\.name is a",
    ),
    "a category": (
        pd.Series(pd.Categorical([1]).rename_categories(lambda _: threading.Lock())),
        r"x\.categories\[0\] is a",
    ),
    "a key": ({"a": {(1, threading.Lock()): 1}}, r"x\['a'\]\.keys\(\)\[0\]\[1\] is a"),
    "a cell of a matrix": (np.array([[1], [threading.Lock()]]), r"x\.flat\[1\] is a"),
    "a named offset": (pd.Timestamp("2024", tz=SUMMER), "has the time zone 'CEST'"),
    "holidays": (
        pd.date_range("2024", periods=2, freq=pd.offsets.CustomBusinessDay(holidays=["2024-01-02"])),
        r"x\.index has the frequency|x has the frequency",
    ),
    "long numbers": (np.array([1.1], dtype=np.longdouble), "Convert it to float64"),
    "ten million items": ([0] * 10_000_000, "more than 2,000,000 items"),
}
REFUSED["an attribute"][0].attrs["a"] = [threading.Lock()]


@pytest.mark.parametrize(("value", "says"), REFUSED.values(), ids=REFUSED)
def test_a_variable_is_refused_with_type_and_place_before_a_model_is_paid(
    box: SandboxExecutor, value: Any, says: str
) -> None:
    model = ScriptedModel(lambda messages: pytest.fail("a model was asked"))
    with create_code_chain(model, executor=box) as chain, pytest.raises(InputError, match=says):
        chain.invoke({"query": "What is x?", "variables": {"x": value}})


def test_what_contains_itself_is_refused_at_once() -> None:
    value: list[Any] = []
    value += [value, value]
    began = time.process_time()
    with pytest.raises(InputError, match="x contains itself"):
        check_variables({"x": value})
    assert time.process_time() - began < 0.1


@pytest.mark.slow
def test_lists_that_share_their_parts_are_counted() -> None:
    value: list[Any] = [1]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(InputError, match="more than"):
        check_variables({"x": value})


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("{'a': [object()]}", r"the value\['a'\]\[0\] is an object"),
        ("import threading\n[threading.Lock()]", r"the value\[0\] is a _thread\.lock"),
        ("class Thing: pass\n(Thing(),)", r"the value\[0\] is a Thing"),
        ("x = []\nx += [x, x]\nx", "the value contains itself"),
    ],
)
def test_a_program_is_told_type_and_place_of_what_is_no_value(
    box: SandboxExecutor, code: str, says: str
) -> None:
    done = box.run(code, return_value=True)
    with pytest.raises(AnswerTypeError, match=says):
        answer_value(done, code, AnswerType(Any))


PD = "import pandas as pd\n"
ANSWERS: dict[str, tuple[Any, str, Any]] = {
    "sums by month": (
        dict[str, int],
        f"{PD}s = pd.Series([1, 2], index=pd.to_datetime(['2024-01-03', '2024-01-04']))\n"
        "s.groupby(s.index.to_period('M')).sum()",
        {"2024-01": 3},
    ),
    "a period": (str, f"{PD}pd.Period('2024-01', 'M')", "2024-01"),
    "groups": (
        dict[str, int],
        f"{PD}pd.cut(pd.Series([1, 9]), [0, 5, 10]).value_counts(sort=False)",
        {"(0, 5]": 1, "(5, 10]": 1},
    ),
    "types": (dict[str, str], f"{PD}pd.DataFrame({{'a': [1]}}).dtypes.to_dict()", {"a": "int64"}),
    "named tuples": (
        list[tuple[str, int]],
        f"{PD}list(pd.DataFrame({{'k': ['x'], 'v': [1]}}).itertuples(index=False))",
        [("x", 1)],
    ),
    "a named index that counts": (
        list[dict[str, int]],
        f"{PD}pd.DataFrame({{'v': [5]}}, index=pd.Index([0], name='k'))",
        [{"k": 0, "v": 5}],
    ),
    "labels within a dict": (Any, f"{PD}{{'t': pd.Series({{'a': 1}})}}", {"t": {"a": 1}}),
    "numbers with labels": (list[int], f"{PD}pd.Series({{'a': 1}})", [1]),
}


@pytest.mark.parametrize(("kind", "code", "value"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_keeps_what_its_value_says(box: SandboxExecutor, kind: Any, code: str, value: Any) -> None:
    done = box.run(code, return_value=True)
    assert answer_value(done, code, AnswerType(kind)) == value


@pytest.mark.parametrize(
    "packed",
    [
        '{"pandas.Index": ["RangeIndex", [0, 300000000, 1], null]}',
        '{"pandas.array": ["int64", [{"builtins.range": [0, 300000000, 1]}]]}',
        '{"pandas.array": ["<U900000000", ["a"]]}',
        '{"pandas.Timestamp": [0, "ns", "../../etc/passwd"]}',
        '{"datetime.datetime": ["2024-01-01", "../../etc/passwd", 0]}',
        '{"namedtuple": ["a b", ["x"], [1]]}',
        '{"namedtuple": ["P", ["import"], [1]]}',
        '{"numpy.ndarray": [[1], "int64", [1000000000, 1000000000, 0]]}',
        '{"refused": 5}',
        "[" + ",".join(f'{{"namedtuple": ["P{number}", [], []]}}' for number in range(200)) + "]",
    ],
)
def test_what_a_program_forges_is_no_value(packed: str) -> None:
    data = DisplayData("application/vnd.code-chains.value+json", packed)
    with pytest.raises(LookupError):
        value_of(Execution("ok", display_data=(data,)))


@pytest.mark.parametrize("call", ["search('ab')", "search(query='ab')", "search(tool_input='ab')"])
def test_a_tool_of_langchain_takes_its_argument(box: SandboxExecutor, call: str) -> None:
    def find(query: str) -> str:
        return f"found {query}"

    tool = Tool(name="search", func=find, description="Search.")
    assert box.run(call, tools=[tool]).result == "'found ab'"
    assert "def search(query: str) -> str" in Toolbox([tool]).format_for_model()


def test_metadata_of_a_function_counts() -> None:
    def look() -> int:
        """Look."""
        return 1

    vars(look)["metadata"] = {"read_only": True}
    assert Toolbox([look]).is_read_only


def test_numbers_are_exact() -> None:
    checked = check_variables({"x": [decimal.Decimal("1.10"), fractions.Fraction(1, 3), (1,)]})["x"]
    assert checked == [decimal.Decimal("1.10"), fractions.Fraction(1, 3), (1,)]


def test_a_variable_that_would_hide_print_is_refused() -> None:
    with pytest.raises(InputError, match="show their answers"):
        check_variables({"print": 5})
