"""The program in a reply: which text of a model is run, and which never is."""

from __future__ import annotations

import contextlib
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from code_chains.analysis.replies.extraction import as_program, extract_code, extract_fenced
from tests.support import reply_shapes

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
    "a thought in brackets": (
        "[THINK]\n```python\nbad()\n```\n[/THINK]\n```python\nprint(1)\n```",
        "print(1)",
    ),
    "a thought between tokens": (
        "<|begin_of_thought|>\n```python\nbad()\n```\n<|end_of_thought|>\n```python\nprint(1)\n```",
        "print(1)",
    ),
    "a list named like a tag": ("thinking = 1\nprint([thinking])", "thinking = 1\nprint([thinking])"),
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
    "JSON with another key": ('{"thought": "six by seven", "solution": "print(6 * 7)"}', "print(6 * 7)"),
    "the call of a tool": ("run_python(code='print(6 * 7)')", "print(6 * 7)"),
    "the call of a tool of a module": ('print(default_api.run(code="print(6 * 7)"))', "print(6 * 7)"),
    "a document in a command": ("```bash\npython3 <<'EOF'\nprint(6 * 7)\nEOF\n```", "print(6 * 7)"),
    "an argument of a command": ('```sh\npython -c "print(\\"six\\", 6 * 7)"\n```', 'print("six", 6 * 7)'),
    "typographic operators": ("```python\nprint('×', 6 × 7 − 1 ≠ 41)\n```", "print('×', 6 * 7 - 1 != 41)"),
    "two files": (
        "```python\n# helper.py\ndef f(): return 7\n```\n```python\n# main.py\nfrom helper import f\nprint(f())\n```",
        "# helper.py\ndef f(): return 7\n\n# main.py\nprint(f())",
    ),
    "a text that is printed": ("```python\nprint('print(1)')\n```", "print('print(1)')"),
    "a text that is executed": ("```python\nexec('print(1)')\n```", "exec('print(1)')"),
    "a broken program": ("```python\nprint(1\n```", "print(1"),
}


@pytest.mark.parametrize(("reply", "code"), REPLIES.values(), ids=REPLIES.keys())
def test_finds_the_program(reply: str, code: str) -> None:
    assert extract_code(reply).rstrip("\n") == code


MESSAGES = {
    "a call with a program": AIMessage(
        "", tool_calls=[{"name": "python", "args": {"code": "print(1)"}, "id": "1"}]
    ),
    "a call with words beside": AIMessage(
        "I run it.", tool_calls=[{"name": "python", "args": {"query": "print(1)"}, "id": "1"}]
    ),
    "a call beside a program": AIMessage(
        "```python\nprint(1)\n```", tool_calls=[{"name": "python", "args": {"code": "print(2)"}, "id": "1"}]
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_that_calls_a_tool_with_a_program_is_that_program(case: str) -> None:
    assert extract_code(MESSAGES[case]) == "print(1)\n"


SQL = {
    "a fence": "```sql\nSELECT 1\n```",
    "a label": "SQLQuery: SELECT 1\nSQLResult: 1",
    "a sentence before": "Here is the query:\nSELECT 1",
    "sentences around": "Here it is:\n\nSELECT 1\n\nIt gives one.",
    "JSON": '{"sql": "SELECT 1"}',
    "marks": "The query is `SELECT 1`.",
    "a tag": "<sql>SELECT 1</sql>",
    "a thought": "<think>SELECT 2</think>\nSELECT 1",
}


@pytest.mark.parametrize("case", SQL)
def test_the_statement_in_a_reply_is_found(case: str) -> None:
    assert extract_fenced(SQL[case], "sql") == "SELECT 1\n"


def test_a_statement_of_several_paragraphs_is_whole() -> None:
    statement = "WITH a AS (\n  SELECT 1\n)\n\nSELECT * FROM a\n\nORDER BY 1"
    assert extract_fenced(f"Query:\n{statement}\n\nDone.", "sql") == f"{statement}\n"


SHAPES = {shape.name: shape for shape in reply_shapes.SHAPES}
BROKEN = {"none truncated call", "none truncated def"}
"""A fence that is labelled as Python is returned even if it is not valid, so that a check says why."""


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.expected is not None])
def test_the_program_in_a_reply_runs(name: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        exec(compile(extract_code(SHAPES[name].reply), name, "exec"), {"__name__": "__main__"})
    assert printed.getvalue().strip() == SHAPES[name].expected


@pytest.mark.parametrize("name", SHAPES)
def test_a_program_that_was_found_is_found_in_itself(name: str) -> None:
    code = extract_code(SHAPES[name].reply)
    assert extract_code(code) == code or not can_be_compiled(code)


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
    assert isinstance(extract_fenced(reply, "sql"), str)


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


DOCUMENTED = 'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'


@pytest.mark.parametrize(
    "reply", ["Here it is:\n\n{}", "```python\n{}```\nFor example:\n```\n>>> add(3, 4)\n7\n```"]
)
def test_examples_of_a_docstring_are_not_the_program(reply: str) -> None:
    assert extract_code(reply.format(DOCUMENTED)).startswith(DOCUMENTED)


@pytest.mark.parametrize("broken", [DOCUMENTED.replace("a + b", "(a + b"), DOCUMENTED.partition('"""\n')[0]])
def test_of_a_broken_function_more_is_left_than_the_examples_of_its_docstring(broken: str) -> None:
    assert "def add(a, b):" in extract_code(f"```python\n{broken}\n```")


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


@pytest.mark.slow
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
    extract_code((text * 100_000)[:100_000])
    assert time.process_time() - began < 8


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


# -- programs that are broken, or that look like replies ------------------------------------------------------------------

BROKEN_PROGRAMS = {
    "one bracket too many": "v = [1]\nprint('subtotal', sum(v))\nfor x in [4]:\n    v.append(x)\nprint('total', sum(v)))",
    "cut off": "```python\nx = 1\nprint('step 1', x)\nx += sum([1, 2",
    "cut off in a method": "```python\ndata = [2, 1]\nprint(data)\ndata.sort(",
    "a missing colon": "n = 3\nprint(n)\nwhile n > 0\n    n -= 1\nprint('end')",
    "a broken last line": "```python\nprint('part 1')\nresult = compute(1, 2\n```",
}


@pytest.mark.parametrize("reply", BROKEN_PROGRAMS.values(), ids=BROKEN_PROGRAMS.keys())
def test_no_part_of_a_broken_program_is_run_instead_of_it(reply: str) -> None:
    for code in (extract_code(reply), as_program(reply)):
        assert code == "" or not can_be_compiled(code)


WHOLE_PROGRAMS = [
    '"""Doc."""\nx = 1\nprint(x)\ns = "a <|im_end|> b"\nprint(len(s))\n',
    '"""Example:\n```python\nprint(0)\n```\n"""\nx = 1\n{x}\n',
    "[n for n in range(3)]\n",
    "{'a': len('abc')}\n",
    "x = 5\nx\n",
    "'text'.upper()\n",
    "'2+2'",
    '{"code": "print(1)"}',
]


@pytest.mark.parametrize("code", WHOLE_PROGRAMS)
def test_a_program_is_taken_as_it_is(code: str) -> None:
    assert as_program(code) == code


@pytest.mark.parametrize(
    "reply",
    [
        "<s>x = 6*7\nprint(x)</s>",
        "<s>[INST] What is\nit? [/INST] x = 6*7\nprint(x) </s>",
        "[INST] What is it? [/INST]\nx = 6*7\nprint(x)",
        "x = 6*7\nprint(x)\n\nHuman: And what is y?\nAssistant: y = 2\nprint(y)",
        "x = 6*7\nprint(x)\nUser: Thank you!",
    ],
)
def test_marks_of_turns_cost_no_line_of_bare_code(reply: str) -> None:
    assert (extract_code(reply), as_program(reply)) == ("x = 6*7\nprint(x)\n", "x = 6*7\nprint(x)\n")


def test_a_broken_program_stays_as_it_is() -> None:
    assert as_program("print(1))\nprint(2)") == "print(1))\nprint(2)"


def test_a_program_in_another_language_is_taken_from_its_own_fence() -> None:
    assert as_program("```sql\nSELECT 1 -- code: print(1)\n```", "sql") == "SELECT 1 -- code: print(1)\n"
    assert as_program("DELETE FROM t; -- code: print(1)", "sql") == "DELETE FROM t; -- code: print(1)"


def fences(*blocks: str) -> str:
    return "\n\n".join(
        f"{gap}\n```python\n{code}\n```" for gap, _, code in (block.partition("|") for block in blocks)
    )


PARTS = {
    "calls that are repeated": (
        ["|n = 0\ndef inc():\n    global n\n    n += 1", "|inc()", "|inc()", "|print(n)"],
        "2",
    ),
    "a line that stands in another one": (["|n = 1", "|m = n + 1\nn = 10\nprint(m, n)"], "2 10"),
    "a new version of a line": (["The old one:|x = 1\nprint(x)", "The new one:|x = 2\nprint(x)"], "2"),
    "a value that grows": (["|x = 1\nprint(x)", "|x += 1\nprint(x)"], "1\n2"),
    "a loop over the same name": (["|for n in [1]:\n    print(n)", "|for n in [2]:\n    print(n)"], "2"),
    "a call of a definition": (["|def main():\n    print('ran')", "|main()"], "ran"),
    "a second part": (
        ["|print('mean', 1)", "The second part, with the correct rounding:|print('median', 2)"],
        "mean 1\nmedian 2",
    ),
    "a part that fixes something else": (["|print(1)", "To fix the date as well, add:|print(2)"], "1\n2"),
    "a faster function with the same data": (
        [
            "|data = [1, 4]\ndef f(x):\n    return x",
            "Or, faster:|def f(x):\n    return 2 * x\nprint([f(v) for v in data])",
        ],
        "[2, 8]",
    ),
    "a display at the end": (
        ["|d = [1, 2]\nprint('n', len(d))", "|[sum(d), max(d)]\nprint('end')"],
        "n 2\nend",
    ),
    "a token in a string": (["|print('part 1')", "|print('a </s> b'.split())"], "part 1\n['a', '</s>', 'b']"),
}


@pytest.mark.parametrize(("blocks", "expected"), PARTS.values(), ids=PARTS.keys())
def test_a_reply_in_parts_keeps_those_that_are_needed(blocks: list[str], expected: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(extract_code(fences(*blocks)), "reply", "exec"), {"__name__": "__main__"})
    assert printed.getvalue().strip() == expected


@pytest.mark.parametrize(
    "reply",
    [
        "Never run `import os; print(os.listdir())`.",
        "Call `print(x)` yourself.",
        "Do not use `print(1)` here.",
    ],
)
def test_inline_code_that_prose_warns_of_is_not_run(reply: str) -> None:
    assert extract_code(reply) == ""
