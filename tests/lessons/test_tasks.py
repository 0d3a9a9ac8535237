"""Steps that no test decides: choices, gaps and explanations; what is right stays with the teacher until it is answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.stores import InMemoryByteStore

from code_chains import SandboxExecutor
from code_chains.errors import InputError
from code_chains.lessons import GradeChain, HintGate, LearnerWork, Lesson, Progress, TutorChain, read_lesson
from code_chains.lessons.check import LessonCheck
from code_chains.lessons.hints import Hints
from code_chains.lessons.notebook import to_notebook
from code_chains.lessons.release import release
from code_chains.lessons.report import grades
from code_chains.lessons.running import Submission
from code_chains.testing import ScriptedExecutor

CHOICE = """\
```text choice
- [ ] `while x:`
  > It runs until x is false.
- [x] `for x in y:`
- [x] `if x:`
```
"""
GAPS = """\
```python gaps
total = {{0}}
for number in [1, 2]:
    total {{+= number|= total + number}}
print('a', total)
```
"""
TESTED = """\
```python gaps
def double(x):
    return {{x * 2}}
```

```python tests
# Doubles.
assert double(4) == 8
```
"""
RUBRIC = """\
```text rubric
- The loop ends when the list does.
- Nothing is printed for an empty list.
```
"""


class Nobody(ScriptedExecutor):
    """Says that it can run tests, and fails if it is asked to."""

    runs_tests = True


NOBODY = Nobody(lambda _: "")


def lesson(*steps: str, front: str = "") -> Lesson:
    return read_lesson(source(*steps, front=front))


def source(*steps: str, front: str = "") -> str:
    parts = (f"## Step {number}\n\nWhat is asked.\n\n{step}" for number, step in enumerate(steps, 1))
    return f"---\ntitle: Loops\n{front}\n---\n" + "\n".join(parts)


def grade(step: str, answer: str, **options: Any) -> dict[str, Any]:
    executor = options.pop("executor", NOBODY)
    return GradeChain(lesson(step), executor, **options).invoke({"code": answer})


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("B C", "pass"),
        ("c, b", "pass"),
        ("bC", "pass"),
        ("B and C", "error"),
        ("B", "fail"),
        ("A B C", "fail"),
        ("D", "error"),
    ],
)
def test_all_right_answers_of_a_choice_and_no_other_are_chosen(answer: str, status: str) -> None:
    assert grade(CHOICE, answer)["results"]["status"] == status


def test_whoever_chooses_a_wrong_answer_is_told_why_and_not_what_is_right() -> None:
    told = grade(CHOICE, "A")["verdict"].reason
    assert told == "Not right yet.\n- A: It runs until x is false."


@pytest.mark.parametrize(
    ("filled", "status"),
    [
        ("total = 0\nfor number in [1, 2]:\n    total += number\nprint('a', total)\n", "pass"),
        ("total=0\nfor number in [1,2]:\n    total = total+number\nprint('a', total)", "error"),
        ("total =  0\nfor number in [1, 2]:\n    total = total+number\nprint('a', total)", "pass"),
        ("total = 1\nfor number in [1, 2]:\n    total += number\nprint('a', total)", "fail"),
        ("total = ____\nfor number in [1, 2]:\n    total += number\nprint('a', total)", "error"),
        ("total = 0\nfor number in [1, 2]:\n    total += number\nprint('b', total)", "error"),
        ("total = 0", "error"),
    ],
)
def test_gaps_are_filled_and_the_rest_stays_as_it_is(filled: str, status: str) -> None:
    assert grade(GAPS, filled)["results"]["status"] == status


@pytest.mark.kernel_sandbox
@pytest.mark.parametrize(("filled", "status"), [("x + x", "pass"), ("x + 2", "fail")])
def test_tests_decide_about_gaps_where_there_are_some(
    filled: str, status: str, sandbox: SandboxExecutor
) -> None:
    outcome = grade(TESTED, f"def double(x):\n    return {filled}\n", executor=sandbox)
    assert outcome["results"]["status"] == status


def test_a_model_reads_an_explanation_for_each_criterion_and_its_word_is_no_proof() -> None:
    model = FakeListChatModel(responses=["YES: It says so.", "NO: It does not.", "YES: yes.", "YES: yes."])
    half, whole = (grade(RUBRIC, "It ends with the list.", model=model) for _ in range(2))
    assert (half["results"]["status"], half["results"]["points"]) == ("fail", 0.5)
    assert (whole["verdict"].status, whole["results"]["points"]) == ("plausible", 1.0)


@pytest.mark.parametrize("model", [None, FakeListChatModel(responses=["I cannot say."])])
def test_an_explanation_that_nobody_read_has_unknown_points(model: Any) -> None:
    outcome = grade(RUBRIC, "It ends with the list.", model=model)
    assert outcome["verdict"].status == "unverified"
    assert (outcome["results"]["status"], outcome["results"]["points"]) == ("pass", None)


def work(of: Lesson, store: InMemoryByteStore) -> LearnerWork:
    return LearnerWork(of, NOBODY, Progress(store, of, "ann"), Hints(of))


def test_of_a_choice_the_first_attempt_counts_and_an_unread_explanation_leaves_its_field_empty() -> None:
    of, store = lesson(CHOICE, RUBRIC, GAPS), InMemoryByteStore()
    learner = work(of, store)
    for answer in ("A", "B C"):
        learner.write(answer)
        learner.submit()
    learner.next()
    learner.write("It ends.")
    assert learner.submit()
    assert grades(of, store, "moodle")[1][1:] == ["0", "", "0"]


def test_answers_in_words_are_no_programs_of_later_steps() -> None:
    of, store = lesson(CHOICE, RUBRIC, TESTED), InMemoryByteStore()
    learner = work(of, store)
    learner.write("B C")
    assert learner.submit()
    assert Progress(store, of, "ann").accepted(of.steps[2]) == []
    with pytest.raises(InputError, match="asks for no program"):
        learner.run()


SECRETS = ("[x]", "until x is false", "+= number", "x * 2", "ends when the list does")


def test_what_is_right_is_in_nothing_that_a_learner_gets() -> None:
    of = lesson(CHOICE, GAPS, TESTED, RUBRIC)
    shown = "".join(step.text + step.initial for step in of.steps)
    notebook = nbformat.writes(to_notebook(Progress(InMemoryByteStore(), of, "ann")))  # type: ignore[no-untyped-call]
    copy = release(source(CHOICE, GAPS, TESTED, RUBRIC))
    unended = release(source(GAPS) + "\n" + CHOICE.removesuffix("```\n"))
    for text in (shown, notebook, copy, unended):
        assert [secret for secret in SECRETS if secret in text] == []
    assert "**B** `for x in y:`" in shown
    assert [step.form for step in read_lesson(copy).steps] == ["choice", "program", "program", "text"]


def test_a_copy_grades_nothing_that_it_does_not_know() -> None:
    of = read_lesson(release(source(CHOICE)))
    assert GradeChain(of, NOBODY).invoke({"code": "B"})["results"]["gradable"] is False


@pytest.mark.parametrize(
    ("hint", "is_shown"),
    [
        ("Which of them runs more than once?", True),
        ("A condition is asked once.", True),
        ("It is B.", False),
        ("Take `for x in y:`", False),
    ],
)
def test_a_hint_that_names_a_right_answer_is_withheld(hint: str, *, is_shown: bool) -> None:
    of, model = lesson(CHOICE), FakeListChatModel(responses=[hint, "Think."])
    told = TutorChain(model=model, lesson=of, gate=HintGate(NOBODY)).invoke({"code": "A"})
    assert (told["hint"] == hint) is is_shown
    assert "[x]" not in str(Submission(of, of.steps[0], "A").step.text)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```text choice\n- [x] a\n- [x] b\n```", "a wrong one"),
        ("```text choice\n- [ ] a\n- [ ] b\n```", "needs a right answer"),
        ("```text choice\n- [x] a\n```", "2 to 20 answers"),
        ("```text choice\na\n```", "in each line"),
        ("```python gaps\nx = 1\n```", "there is no gap"),
        ("```python gaps\n" + "{{a|b}}" * 8 + "\n```", "at most 200 ways"),
        ("```python gaps\nx = {{1}}" + " " * 600 + "\n```", "500 characters"),
        ("```text rubric\n```", "1 to 8 lines"),
        ("```text rubric\nSay it.\n```", "lines `- …`"),
        (CHOICE + "\n" + RUBRIC, "make two steps"),
        (CHOICE + "\n```python tests\nassert f(1)\n```", "which needs none"),
        (CHOICE + "\n```yaml rules\npoints: many\n```", "points must be a number"),
    ],
)
def test_a_block_that_is_none_is_said_with_its_line(block: str, said: str) -> None:
    with pytest.raises(InputError, match="line ") as raised:
        lesson(block)
    assert said in str(raised.value)


def test_a_step_is_worth_what_its_rules_say() -> None:
    of = lesson(CHOICE + "\n```yaml rules\npoints: 4\n```")
    assert GradeChain(of, NOBODY).invoke({"code": "B or C"})["results"]["gradable"] is False
    assert GradeChain(of, NOBODY).invoke({"code": "B C"})["results"]["points"] == 4


@pytest.mark.kernel_sandbox
def test_a_check_needs_no_solution_of_steps_that_have_their_answers(sandbox: SandboxExecutor) -> None:
    findings = list(LessonCheck(lesson(CHOICE, GAPS, TESTED, RUBRIC), sandbox).findings())
    assert [finding.severity for finding in findings] in ([], ["warning"])


def test_results_of_all_kinds_are_json() -> None:
    outcomes = (grade(CHOICE, "A"), grade(RUBRIC, "It ends."), grade(GAPS, "x"))
    assert all(json.loads(json.dumps(outcome["results"])) for outcome in outcomes)


def test_the_examples_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(source(CHOICE, GAPS))
    assert read_lesson(tmp_path / "a.md").exercises[1].initial.startswith("total = ____\n")


@pytest.mark.parametrize(
    ("answer", "filled", "is_right"),
    [
        ("'a'", '"a"', True),
        ('"it\'s"', "'it\\'s'", True),
        ("print('\"')", 'print("\'")', False),
        ('"it\'s"', "'it\"s'", False),
        ("\"x = 'y'\"", "'x = \"y\"'", False),
        ("'a  b'", "'a b'", False),
        ("rb'a  b'", "rb'a b'", False),
        ("'''a  b", "'''a b", False),
        ("not x", "notx", False),
        ("a+b", "a + b", True),
        ("a == b", "a = = b", False),
        ("2 ** 3", "2 * * 3", False),
        ("1.5", "1 . 5", False),
        ("[1,2]", "[1, 2]", True),
        ("a + b", "a\u00a0+ b", False),
        ("1e-5", "1e - 5", False),
    ],
)
def test_of_a_filled_gap_blanks_and_quotes_are_free_and_the_content_of_texts_is_not(
    answer: str, filled: str, *, is_right: bool
) -> None:
    status = grade(f"```python gaps\nx = {{{{{answer}}}}}\n```\n", f"x = {filled}")["results"]["status"]
    assert (status == "pass") is is_right


def test_the_indentation_of_a_line_is_no_blank() -> None:
    task = "```python gaps\nfor x in xs:\n    t += x\n{{return t}}\n```\n"
    for indentation, status in (("", "pass"), ("    ", "fail"), (" ", "fail")):
        filled = f"for x in xs:\n    t += x\n{indentation}return t"
        assert grade(task, filled)["results"]["status"] == status


def test_a_line_that_is_longer_than_it_could_be_is_not_read() -> None:
    filled = 'x = "' + '\\"' * 49_000
    assert grade('```python gaps\nx = {{"a"}}\n```\n', filled)["results"]["status"] == "fail"


def test_the_ways_to_fill_all_lines_are_counted_together() -> None:
    line = "x = {{" + "|".join(map(str, range(40))) + "}} # " + "a" * 100
    with pytest.raises(InputError, match="in each way to fill its lines"):
        lesson("```python gaps\n" + f"{line}\n" * 4 + "```\n")
