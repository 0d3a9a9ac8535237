"""Values of programs with their types, and values that a program forged."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from code_chains import SandboxExecutor
from code_chains.executors.sandbox.inside.display import VALUE_TYPE
from code_chains.executors.values import value_of
from code_chains.state import DisplayData, Execution

VALUES = {
    "a number": ("6 * 7", 42),
    "a large number": ("10 ** 400", 10**400),
    "a truth value": ("1 == 1", True),
    "text": ("'ü'", "ü"),
    "a list": ("[1, (2, 3), {4}]", [1, (2, 3), {4}]),
    "a dict with numbers as keys": ("{1: {'a': None}}", {1: {"a": None}}),
    "a date": ("import datetime; datetime.date(2024, 1, 2)", date(2024, 1, 2)),
    "a decimal": ("import decimal; decimal.Decimal('1.10')", Decimal("1.10")),
    "a fraction": ("import fractions; fractions.Fraction(1, 3)", Fraction(1, 3)),
    "a number of NumPy": ("import numpy; numpy.float64(2.5)", 2.5),
    "the variable result": ("result = 42", 42),
}


@pytest.mark.parametrize(("code", "value"), VALUES.values(), ids=VALUES)
def test_a_value_comes_with_its_type(sandbox: SandboxExecutor, code: str, value: object) -> None:
    arrived = value_of(sandbox.run(code, return_value=True))
    assert (arrived, type(arrived)) == (value, type(value))


def test_arrays_and_frames_come_with_their_types(sandbox: SandboxExecutor) -> None:
    assert value_of(sandbox.run("import numpy; numpy.eye(2)", return_value=True)).tolist() == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]
    code = "import pandas as pd\npd.DataFrame({'a': [1, 2], 'd': pd.to_datetime(['2024-01-01', None])}, index=['x', 'y'])"
    frame = value_of(sandbox.run(code, return_value=True))
    assert (list(frame.columns), list(frame.index), frame["a"].dtype) == (["a", "d"], ["x", "y"], "int64")
    assert (str(frame["d"].iloc[0].date()), bool(frame["d"].isna().iloc[1])) == ("2024-01-01", True)


@pytest.mark.parametrize("code", ["open", "list(range(300_000))", "None", "print(1)", "1 / 0", "[object()]"])
def test_what_has_no_value_says_so(sandbox: SandboxExecutor, code: str) -> None:
    with pytest.raises(LookupError):
        value_of(sandbox.run(code, return_value=True))


FORGED = {
    "no JSON": "{",
    "an unknown kind": '{"os.system": "id"}',
    "two kinds": '{"builtins.tuple": [], "builtins.set": []}',
    "a class of its own": '{"namedtuple": ["A", ["b"], [1]]}',
    "a fraction of a huge number": '{"fractions.Fraction": "1e999999999"}',
    "texts of a huge size": '{"numpy.ndarray": [["a"], "<U99999999"]}',
    "objects": '{"numpy.ndarray": [["a"], "O"]}',
    "an array that is none": '{"numpy.ndarray": 3}',
    "a range as an array": '{"numpy.ndarray": [[{"builtins.range": [0, 1000000000, 1]}], "int64"]}',
    "a range of an array": '{"numpy.ndarray": [{"builtins.range": [0, 1000000000, 1]}, "int64"]}',
    "a series of a range": '{"pandas.Series": [{"builtins.range": [0, 1000000000, 1]}, [null], "a", 5]}',
    "a series of a number": '{"pandas.Series": [[1, 2], [null], "a", 5]}',
    "a series without names": '{"pandas.Series": [[1], 5, "a", [5]]}',
    "a frame of numbers": '{"pandas.DataFrame": [[1, 2], [null], ["a", "b"], [5, 5]]}',
    "a name of a number": '{"uuid.UUID": 5}',
    "much text": '{"numpy.ndarray": [[' + "1," * 20_000 + '1], "<U1000"]}',
    "numbers of one hash": json.dumps({"builtins.set": [(2**61 - 1) * n for n in range(3000)]}),
    "no list": '{"builtins.tuple": 3}',
    "nested too deeply": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_value_is_none(forged: str) -> None:
    with pytest.raises(LookupError):
        value_of(Execution("ok", display_data=(DisplayData(VALUE_TYPE, forged),)))
