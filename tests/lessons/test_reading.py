"""A lesson's file says what it means, and each mistake in it has its line."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from code_chains.errors import InputError
from code_chains.lessons import Lesson, read_lesson

FRONT = "---\ntitle: Loops\n---\n"
TESTS = "```python tests\nassert f(1) == 2\n```\n"
STEP = f"## One\n\nText\n\n{TESTS}"
LESSON = FRONT + STEP


def problems(text: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        read_lesson(text)
    return str(caught.value)


def one(role_and_code: str) -> Lesson:
    return read_lesson(f"{LESSON}\n{role_and_code}")


def test_front_matter_headings_and_roles_are_a_lesson() -> None:
    text = LESSON + "```python starter\ndef f(x): ...\n```\n```text hint\nThink.\n```\n## Two\n\nRead.\n"
    lesson = read_lesson(text)
    first, second = lesson.steps
    assert (lesson.title, first.title, first.text, second.text) == ("Loops", "One", "Text", "Read.")
    assert first.starter
    assert (first.starter.line, first.hints) == (12, ("Think.",))
    assert lesson.exercises == (first,)


def test_a_learner_reads_no_block_that_has_a_role_and_no_comment() -> None:
    lesson = one("<!-- for teachers -->\n```python solution\nf = 1\n```\n```python\nprint(1)\n```\n")
    assert "solution" not in lesson.steps[0].text
    assert "teachers" not in lesson.steps[0].text
    assert "print(1)" in lesson.steps[0].text


def test_comments_and_docstrings_describe_tests() -> None:
    text = (
        f"{FRONT}## One\n```python tests\n# Adds.\n# hint: Look.\nassert f(1) == 2\nassert f(2) == 3\n\n"
        'assert f(3) == 4\ndef test_big():\n    """Adds to big numbers.\n\n    hint: Count.\n    """\n'
        "    assert f(9) == 10\n```\n"
    )
    tests = read_lesson(text).steps[0].tests
    assert tests
    notes = [(note.description, note.hint, note.inputs) for note in tests.notes]
    assert notes == [
        ("Adds.", "Look.", "f(1)"),
        ("Adds.", "Look.", "f(2)"),
        ("", "", "f(3)"),
        ("Adds to big numbers.", "Count.", "f(9)"),
    ]


def test_tests_in_yaml_are_examples_of_calls_or_of_runs() -> None:
    text = "## One\n```yaml tests\n- {stdin: '2', output: '4', description: Doubles, hint: Read a number.}\n```\n"
    tests = read_lesson(FRONT + text).steps[0].tests
    assert tests
    assert tests.notes[0].description == "Doubles"
    assert "4" not in tests.notes[0].inputs


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("titel: x", "line 2: unknown key 'titel'; did you mean 'title'?"),
        ("title: x\nlimits: {second: 1}", "line 3: limits has no key 'second'; did you mean 'seconds'?"),
        ("title: x\nlimits: {seconds: 0}", "line 3: Invalid Limits.seconds=0"),
        ("title: x\nreveals: all", "line 3: reveals must be one of"),
        ("title: x\nhints: {quota: -1}", "line 3: hints.quota must be a whole number"),
        ("title: x\nlanguage: klingon", "line 3: "),
        ("title: x\nimports: math", "line 3: imports must be a list"),
        ("title: x\nfiles: [../secret]", "line 3: '../secret' is not beside the lesson"),
        ("title: x\nfiles: [none.csv]", "line 3: there is no file 'none.csv'"),
        ("title: [", "the front matter is not YAML"),
        ("- x", "line 2: the front matter must be lines of `key: value`"),
        ("level: easy", "the front matter has no title"),
        ("title: 5", "line 2: title must be text"),
    ],
)
def test_a_mistake_in_the_front_matter_has_its_line(front: str, said: str) -> None:
    assert said in problems(f"---\n{front}\n---\n{STEP}")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("```python test\nassert 1\n```\n", "line 11: unknown role 'test'; did you mean 'tests'?"),
        ("```text starter\nx\n```\n", "line 11: a 'starter' block must begin with ```python starter"),
        ("```text examples\nx\n```\n", "line 11: write 'examples' in python or yaml"),
        ("```python solution\nx =\n```\n", "line 12: the solution is not Python"),
        (TESTS, "line 11: a second 'tests' block in one step"),
        ("```python examples\nx = 1\n```\n", "line 12: The tests assert nothing"),
        ("```yaml examples\n- 1\n```\n", "line 12: The block must be a list of examples"),
        ("```yaml examples\n- {args: [1], expectd: 2}\n```\n", "line 12: {'args': [1], 'expectd': 2} is not"),
        ("```yaml rules\nforbid: sum\n```\n", "line 12: forbid must be a list"),
        ("```yaml rules\nforbidden: [sum]\n```\n", "line 12: unknown rule 'forbidden'"),
        ("```yaml rules\nrequire: [goto]\n```\n", "line 12: 'goto' cannot be required"),
        ("A <script>alert(1)</script>\n", "line 11: HTML is not shown to learners: '<script>'"),
        ("## Two\n```python solution\nx = 1\n```\n", "line 11: step 'Two' has a program, but no tests"),
    ],
)
def test_a_mistake_in_a_step_has_its_line(body: str, said: str) -> None:
    assert said in problems(LESSON + body)


def test_code_may_hold_what_looks_like_html() -> None:
    text = (
        "`a <b>` or a < b and b > a, <https://example.org>, [x](<a b.txt>)\n\n```python\nprint('<b>')\n```\n"
    )
    assert one(text).steps


@pytest.mark.parametrize("text", ["", "# A heading", FRONT, f"{FRONT}## One\nText\n", STEP])
def test_what_is_no_lesson_is_told_so(text: str) -> None:
    assert "is not a lesson yet" in problems(text)


def test_a_file_in_another_encoding_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "loops.md"
    path.write_bytes("---\ntitle: Año\n---\n".encode("latin-1"))
    assert "not in UTF-8, see line 2" in problems(path)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "loops.md"
    path.write_bytes(b"\xef\xbb\xbf" + LESSON.replace("\n", "\r\n").encode())
    assert read_lesson(path).steps[0].tests.code == read_lesson(LESSON).steps[0].tests.code  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_lesson_may_have_a_thousand_steps() -> None:
    text = "".join(f"## Step {number}\n\n{TESTS}\n" for number in range(1000))
    assert len(read_lesson(FRONT + text).steps) == 1000


def test_a_lesson_that_is_too_long_is_refused() -> None:
    assert "Split it" in problems(LESSON + "x" * (3 << 20))


def test_each_change_of_the_file_changes_the_digest() -> None:
    assert read_lesson(LESSON).digest != read_lesson(LESSON + "\n").digest


def test_reading_executes_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    evil = f"open({str(mark)!r}, 'w')"
    read_lesson(f"{FRONT}## One\n```python solution\n{evil}\n```\n```python tests\nassert {evil}\n```\n")
    assert not mark.exists()


def test_an_import_among_tests_is_no_test() -> None:
    tests = "```python tests\nimport random\n\n# Doubles.\nassert double(2) == 4\n```"
    lesson = read_lesson(f"---\ntitle: First\n---\n## One\n{tests}")
    expected = lesson.steps[0].tests
    assert expected is not None
    assert [note.description for note in expected.notes] == ["Doubles."]


# -- lessons that somebody else wrote ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a lesson's data, links out of it, and what is no file."""
    folder, outside = tmp_path / "lessons", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("---\nsecret")
    (folder / "data.csv").write_text("1")
    (folder / "link").symlink_to(outside / "secret")
    (folder / "sub").symlink_to(outside)
    (folder / "proc").symlink_to("/proc/self/environ")
    (folder / "inner").mkdir()
    os.mkfifo(folder / "fifo")
    return folder


def with_files(folder: Path, names: object) -> Path:
    path = folder / "a.md"
    path.write_text(f"---\ntitle: x\nfiles: {json.dumps(names)}\n---\n{STEP}")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "link",
        "sub/secret",
        "proc",
        "fifo",
        "inner",
        "../outside/secret",
        "/etc/passwd",
        "inner/../../outside/secret",
        "C:\\x",
        "..\\outside\\secret",
        "",
        ".",
        "a\0",
        "data.csv\n",
        "x" * 999,
    ],
)
def test_a_file_of_a_lesson_is_a_regular_one_in_its_folder(folder: Path, name: str) -> None:
    assert "line 3: " in problems(with_files(folder, [name]))
    assert list(read_lesson(with_files(folder, ["data.csv"])).files) == ["data.csv"]


def test_a_lesson_of_a_folder_is_no_link_out_of_it(folder: Path) -> None:
    (folder / "b.md").symlink_to(folder.parent / "outside" / "secret")
    with pytest.raises(InputError, match="symbolic link"):
        read_lesson(folder / "b.md", below=folder)


BOMB = (
    "[&a [x,x,x,x,x,x,x,x,x]"
    + "".join(f", &{name} [{','.join([f'*{before}'] * 9)}]" for before, name in pairwise("abcdefghi"))
    + "]"
)
KEYS = ("title", "language", "level", "imports", "limits", "reveals", "hints", "files", "released", "other")
VALUES = [
    BOMB,
    "[" * 5000 + "]" * 5000,
    "9" * 5000,
    "0x" + "f" * 5000,
    "2024-99-99",
    "!!python/name:os.system x",
    ".nan",
]
VALUES += [
    "{a: 1, a: 2}",
    "!!binary a",
    "? [a]",
    "[null]",
    "{1: 2}",
    "true",
    "{seconds: .inf}",
    "{quota: 1e99}",
    "[[[5]]]",
]


@pytest.mark.parametrize("key", KEYS)
def test_no_value_in_the_front_matter_does_more_than_a_short_message(key: str) -> None:
    for value in VALUES:
        title = "" if key == "title" else "title: x\n"
        try:
            read_lesson(f"---\n{title}{key}: {value}\n---\n{STEP}")
        except InputError as error:
            assert max(map(len, str(error).splitlines())) < 400  # noqa: PT017


@pytest.mark.parametrize("role", ["tests", "examples", "rules"])
@pytest.mark.parametrize(
    "value", [BOMB, "[" * 5000, "- " * 5000, "[{args: &a [1], expected: *a}]", "[x]", "{forbid: [[]]}"]
)
def test_no_yaml_of_a_block_does_more_than_a_short_message(role: str, value: str) -> None:
    assert max(map(len, problems(f"{FRONT}## One\n```yaml {role}\n{value}\n```\n{TESTS}").splitlines())) < 400


def test_what_is_too_large_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "a.md").open("wb") as file:
        file.write(LESSON.encode())
        file.truncate(900 << 20)
    assert "larger than" in problems(folder / "a.md")
    assert "200,000 characters" in problems(
        LESSON.replace("assert f(1) == 2\n", "assert f(1) == 2\n" * 20_000)
    )
    assert "the heading has more than 200" in problems(f"{LESSON}## {'x' * 300}\n\nText\n")


def test_comments_that_do_not_end_and_thousands_of_steps_take_linear_time() -> None:
    assert "<!--" in read_lesson(f"{LESSON}{'a <!-- ' * 50_000}").steps[0].text
    assert "more than 1000 steps" in problems(FRONT + "## a\n" * 5000)
