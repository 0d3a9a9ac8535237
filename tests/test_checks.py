from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.checks import POLICIES, find_problems, names_defined, parses, resolve_checks, shorter_than
from code_chains.errors import ConfigurationError
from code_chains.state import Problem


def test_parses_says_where() -> None:
    assert parses("x = 1\nprint(1")[0].line == 2


def test_parses_lets_top_level_await_pass() -> None:
    assert parses("import asyncio\nawait asyncio.sleep(0)") == []


def test_a_null_byte_is_a_problem() -> None:
    assert parses("x = '\0'")[0].check == "parses"


def test_names_defined_finds_an_unknown_name() -> None:
    assert names_defined("print(math.pi)") == [Problem("names_defined", "undefined name 'math'", 1)]


def test_names_defined_leaves_syntax_to_parses() -> None:
    assert names_defined("print(") == []


def test_names_defined_knows_builtins_and_comprehensions() -> None:
    assert names_defined("print([n for n in range(3)], __name__)") == []


def test_shorter_than_counts_lines() -> None:
    assert shorter_than(2)("a = 1\nb = 2\nc = 3")[0].message == "The program has 3 lines; at most 2 are allowed"


@pytest.mark.parametrize("lines", [0, -1, True, "many"])
def test_shorter_than_refuses_what_is_no_number(lines: int) -> None:
    with pytest.raises(ConfigurationError, match="lines="):
        shorter_than(lines)


def test_a_users_function_is_a_check() -> None:
    def no_prints(code: str) -> list[Problem]:
        return [Problem("no_prints", "no printing")] if "print" in code else []

    assert [problem.check for problem in find_problems("print(1)", resolve_checks(no_prints))] == ["no_prints"]


@pytest.mark.parametrize("checks", ["paranoid", 5, [parses, "parses"]])
def test_an_unknown_policy_is_refused(checks: object) -> None:
    with pytest.raises(ConfigurationError, match=r"checks=.*standard"):
        resolve_checks(checks)  # type: ignore[arg-type]


@given(st.text())
def test_checks_never_raise(code: str) -> None:
    assert isinstance(find_problems(code, POLICIES["standard"]), list)


def test_the_standard_policy_lets_ordinary_programs_pass() -> None:
    programs = (Path(__file__).parent.parent / "code_chains").rglob("*.py")
    assert [p for path in programs for p in find_problems(path.read_text(), POLICIES["standard"])] == []
