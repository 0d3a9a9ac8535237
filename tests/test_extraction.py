"""The program in a reply: which text of a model is run, and which never is."""

from __future__ import annotations

import contextlib
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.analysis.extraction import extract_code, extract_fenced

from . import more_reply_shapes, reply_shapes

REPLIES = {
    "a fence": ("```python\nprint(1)\n```", "print(1)"),
    "a fence in prose": ("Sure!\n\n```py\nprint(1)\n```\nThat prints 1.", "print(1)"),
    "a fence without a language": ("```\nprint(1)\n```", "print(1)"),
    "a fence with attributes": ('```{python title="x.py"}\nprint(1)\n```', "print(1)"),
    "upper case": ("```Python3\nprint(1)\n```", "print(1)"),
    "tildes": ("~~~python\nprint('```')\n~~~", "print('```')"),
    "a longer fence": ("````python\nprint('''\n```\n''')\n````", "print('''\n```\n''')"),
    "several fences": ("```python\nx = 1\n```\nthen\n```python\nprint(x)\n```", "x = 1\n\nprint(x)"),
    "a corrected second fence": (
        "```python\ndef f(): return 1\n```\nBetter:\n```python\ndef f(): return 2\nprint(f())\n```",
        "def f(): return 2\nprint(f())",
    ),
    "another language beside": ("```bash\npip install x\n```\n```python\nprint(1)\n```", "print(1)"),
    "another language alone": ("```bash\nls\n```", ""),
    "an unclosed fence": ("```python\nprint(1)\n", "print(1)"),
    "an indented fence": ("1. Do this:\n\n   ```python\n   print(1)\n   ```", "print(1)"),
    "CRLF": ("```python\r\nx = 1\r\nprint(x)\r\n```", "x = 1\nprint(x)"),
    "a tag": ("<execute_python>\nprint(1)\n</execute_python>", "print(1)"),
    "a tag around a fence": ("<execute_python>\n```python\nprint(1)\n```\n</execute_python>", "print(1)"),
    "an unclosed tag": ("Let me run it. <execute_python>\nprint(1)", "print(1)"),
    "a tag inside a program": ("```python\nprint('<code>x</code>')\n```", "print('<code>x</code>')"),
    "a thought with a fence": (
        "<think>\n```python\nbad()\n```\n</think>\n```python\nprint(1)\n```",
        "print(1)",
    ),
    "an unclosed thought": ("<think>maybe ```python\nprint(1)\n```", ""),
    "doctest prompts": ("```python\n>>> x = 1\n>>> print(x)\n1\n```", "x = 1\nprint(x)"),
    "notebook magics": ("```python\n%matplotlib inline\n!pip install x\nprint(1)\n```", "print(1)"),
    "bare code": ("x = 2\nprint(x)", "x = 2\nprint(x)"),
    "a bare expression": ("sum(range(1, 6))", "sum(range(1, 6))"),
    "a bare element": (
        "sales.loc[sales['amount'].idxmax(), 'region']",
        "sales.loc[sales['amount'].idxmax(), 'region']",
    ),
    "a bare column": ("df['amount']", "df['amount']"),
    "a bare text": ('f"{total} in all"', 'f"{total} in all"'),
    "bare code in prose": (
        "Use this:\n\nimport math\nprint(math.pi)\n\nHope it helps!",
        "import math\nprint(math.pi)",
    ),
    "JSON": ('{"code": "print(1)"}', "print(1)"),
    "prose alone": ("The answer is 42.", ""),
    "a word": ("Hello", ""),
    "a number": ("15", ""),
    "nothing": ("", ""),
    "a fence that is opened twice": ("```python\n```python\nprint(1)\n```", "print(1)"),
    "a word that is left of a fence": ("python\nprint(1)", "print(1)"),
    "a broken program": ("```python\nprint(1\n```", "print(1"),
}


@pytest.mark.parametrize(("reply", "code"), REPLIES.values(), ids=REPLIES.keys())
def test_finds_the_program(reply: str, code: str) -> None:
    assert extract_code(reply).rstrip("\n") == code


SHAPES = {shape.name: shape for shape in (*reply_shapes.SHAPES, *more_reply_shapes.SHAPES)}
BROKEN = {"none truncated call", "none truncated def"}
"""A fence that is labelled as Python is returned even if it is not valid, so that a check says why."""
MISSED = {"shell_heredoc_writes_and_runs"}


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.expected is not None])
def test_the_program_in_a_reply_runs(name: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        exec(compile(extract_code(SHAPES[name].reply), name, "exec"), {"__name__": "__main__"})
    assert (printed.getvalue().strip() == SHAPES[name].expected) == (name not in MISSED)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.expected is None])
def test_a_reply_without_a_program_runs_nothing(name: str) -> None:
    code = extract_code(SHAPES[name].reply)
    assert code == "" or (name in BROKEN and not can_be_compiled(code))


def can_be_compiled(code: str) -> bool:
    try:
        compile(code, "reply", "exec")
    except SyntaxError:
        return False
    return True


@given(st.text())
def test_never_raises(reply: str) -> None:
    assert isinstance(extract_code(reply), str)


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "```",
                    "```python\n",
                    "\n",
                    "<think>",
                    "</think>",
                    "<code>",
                    "x = 1\n",
                    ">>> y",
                    "~~~",
                    "{",
                ),
                *(
                    '{"code": "',
                    '"}',
                    "[{",
                    "</s>",
                    "Code: ",
                    "<|channel|>final<|message|>",
                    "`print(1)`",
                    "1: ",
                    "+",
                ),
                *("In [1]: ", "&lt;", "\\n", "code: |\n  ", "[BEGIN]\n", "'", "print(", ")", "    ", "\xa0"),
            ]
        )
    )
)
def test_never_raises_on_scraps_of_markup(scraps: list[str]) -> None:
    assert isinstance(extract_code("".join(scraps)), str)


@given(st.integers(0, 10**6).map(lambda n: f"value = {n}\nprint(value)"))
def test_what_was_fenced_comes_back(code: str) -> None:
    assert extract_code(f"Here:\n\n```python\n{code}\n```\n") == f"{code}\n"


def test_a_doctest_inside_a_docstring_stays_where_it_is() -> None:
    code = 'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b'
    assert extract_code(f"```python\n{code}\n```") == f"{code}\n"


def test_an_output_block_beside_the_program_is_no_code() -> None:
    assert extract_code("```python\nprint(15)\n```\nOutput:\n```\n15\n```") == "print(15)\n"


def test_an_inline_tag_before_a_fence_is_prose() -> None:
    assert extract_code("Use <code>sum</code>:\n```python\nprint(1)\n```") == "print(1)\n"


def test_a_thought_without_its_opening_tag_is_left_out() -> None:
    assert extract_code("```python\ndraft()\n```\n</think>\n```python\nprint(1)\n```") == "print(1)\n"


def test_a_string_that_holds_a_tag_is_kept() -> None:
    assert extract_code("```python\nprint('a<think>b')\n```") == "print('a<think>b')\n"


def test_a_line_of_a_string_that_looks_like_a_magic_is_kept() -> None:
    code = 'print("%d items"\n%count)'
    assert extract_code(f"```python\n{code}\n```") == f"{code}\n"


def test_a_fence_of_json_is_read() -> None:
    assert extract_code('```json\n{"code": "print(1)"}\n```') == "print(1)\n"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "\n",
            "[",
            "- a\n",
            "'",
            "`",
            "1\n",
            "a:",
            "&lt;",
            "```\n",
            "```python\n",
            "> ```python\n> x = (\n",
            "<code>x</code>\n",
        ),
        *(
            "```python\nprint(1\n```\n",
            '{"code": ',
            '{"code": "print(1)"}\n',
            "Code: print(1\n",
            "code: |\n  x = (\n",
        ),
        *(
            ">>> x = (\n",
            "+x = (\n",
            "[BEGIN]\n",
            "print(1)```\n",
            '"</s>"',
            "<think>\n</think>\n",
            "\\n",
            "x = 1\nThis is prose.\n",
        ),
    ],
)
def test_a_huge_reply_is_read_in_bounded_time(text: str) -> None:
    began = time.process_time()
    extract_code((text * 200_000)[:200_000])
    assert time.process_time() - began < 15


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Here:\n```sql\nSELECT 1\n```\nDone.", "SELECT 1\n"),
        ("```\nSELECT 1\n```", "SELECT 1\n"),
        ("<think>\n```sql\nSELECT 2\n```\n</think>\nSELECT 1", "SELECT 1\n"),
        ("```python\nprint(1)\n```", ""),
        ("", ""),
    ],
)
def test_sql_is_found_in_its_fences(reply: str, code: str) -> None:
    assert extract_fenced(reply, "sql") == code
