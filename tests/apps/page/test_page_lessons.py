"""A learner works at lessons on the page, in a real browser (see `page_server.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.apps.page.test_page_accessibility import findings
from tests.support.page_browser import SLOW_CONNECTION, needs_browser, page_of, running_server, server_address

pytestmark = needs_browser
LESSON = """---
title: First steps
limits: {seconds: 20}
---

## Double a number

Write `double(n)`.

```python starter
def double(n):
    pass
```

```python examples
assert double(4) == 8
```

```python tests
# Doubles a negative number.
assert double(-3) == -6
```

```text hint
Which operator multiplies?
```

## Say it

Print `<b>done</b>`, and draw something.

```python tests
assert "done" in output
```
"""
QUESTIONS = """---
title: Questions
---

## Which loop may never end?

```text choice
- [ ] `for number in range(3):`
  > A range has an end.
- [x] `while True:`
```

## Why?

```text rubric
- Nothing makes the condition false.
```
"""
RIGHT = "def double(n): return 2 * n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("lessons")
    (folder / "first.md").write_text(LESSON)
    (folder / "questions.md").write_text(QUESTIONS)
    (folder / "README.md").write_text("# For teachers\n")
    with server_address(f"--lessons={folder}") as address:
        yield f"{address}lessons"


@pytest.fixture(params=["light", "dark"])
def listed(request: pytest.FixtureRequest, profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, address, scheme=request.param) as page:
        yield page


@pytest.fixture
def page(profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, f"{address}/first") as page:
        yield page


def write(page: Page, code: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)
    expect(page.locator(".cm-content")).to_contain_text(code.splitlines()[-1])


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def go_to_second_step(page: Page) -> None:
    """Go there and wait for its editor: until then the one of the first step takes what is typed."""
    page.get_by_role("button", name="2. Say it").click()
    expect(page.get_by_role("heading", name="Say it")).to_be_visible()


def test_a_learner_checks_submits_and_goes_on(page: Page, address: str) -> None:
    write(page, "def double(n): return abs(2 * n)")
    press(page, "Check examples")
    expect(page.locator(".told")).to_contain_text("1 of 1 tests pass")
    press(page, "Submit")
    expect(page.locator(".told")).to_contain_text("Doubles a negative number.")
    assert "-6" not in page.locator("body").inner_text()
    write(page, RIGHT)
    press(page, "Submit")
    press(page, "Next step")
    expect(page.get_by_role("heading", name="Say it")).to_be_visible()
    page.goto(address)
    expect(page.locator("li")).to_have_count(2)
    expect(page.locator("li").first).to_contain_text("1 of 2 exercises done")


def test_what_was_typed_and_what_was_sent_is_there_after_a_reload(page: Page) -> None:
    write(page, "# typed")
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("# typed")
    write(page, "# sent")
    press(page, "Run")
    expect(page.locator(".outcome")).to_contain_text("without output")
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("# sent")


def test_what_is_typed_before_a_slow_connection_has_answered_stays(page: Page) -> None:
    write(page, "# an older draft")
    page.add_init_script(SLOW_CONNECTION)
    page.reload()
    write(page, "print('typed at once')")
    page.wait_for_timeout(3_000)
    expect(page.locator(".cm-content")).to_have_text("print('typed at once')")
    press(page, "Run")
    expect(page.locator(".printed")).to_have_text("typed at once")


def test_what_is_typed_and_run_before_the_page_is_connected_is_what_runs(
    profile: BrowserContext, address: str
) -> None:
    page = profile.new_page()
    page.add_init_script(SLOW_CONNECTION)
    page.goto(f"{address}/first")
    for text in ("a", "b", "c"):
        write(page, f"print('{text}')")
        page.keyboard.press("End")
        page.keyboard.type("  # is run")
        press(page, "Run")
    expect(page.locator(".printed")).to_have_text("c")
    page.reload()
    expect(page.locator(".cm-content")).to_have_text("print('c')  # is run")
    page.close()


def test_tabs_at_two_steps_keep_their_programs_apart(page: Page, address: str) -> None:
    write(page, "print('first')")
    other = page.context.new_page()
    other.goto(f"{address}/first")
    go_to_second_step(other)
    write(other, "print('second')")
    press(other, "Run")
    expect(other.locator(".printed")).to_have_text("second")
    press(page, "Run")
    expect(page.locator(".printed")).to_have_text("first")
    go_to_second_step(page)
    expect(page.locator(".cm-content")).to_contain_text("second")


def test_output_is_shown_literally_with_figures_and_errors(page: Page) -> None:
    go_to_second_step(page)
    write(page, "import matplotlib.pyplot as plt\nplt.plot([1]); plt.show(); print('<b>done</b>')")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".printed")).to_have_text("<b>done</b>")
    expect(page.locator("figure img")).to_be_visible()
    write(page, "n = 0\n1 / n")
    press(page, "Run")
    expect(page.locator(".failure")).to_contain_text("Line 2ZeroDivisionError")


def test_a_run_can_be_stopped(page: Page) -> None:
    write(page, "while True: pass")
    press(page, "Run")
    press(page, "Stop")
    expect(page.get_by_text("Stopped.")).to_be_visible()
    write(page, "print('on')")
    press(page, "Run")
    expect(page.locator(".printed")).to_have_text("on")
    expect(page.locator(".outcome")).to_contain_text("What earlier runs made is gone")


def test_another_tab_ends_no_run(page: Page, address: str) -> None:
    write(page, "import time; time.sleep(4); print('to the end')")
    press(page, "Run")
    other = page.context.new_page()
    other.goto(f"{address}/first")
    other.get_by_role("button", name="2. Say it").click()
    expect(other.get_by_text("Your last program still runs.")).to_be_visible()
    expect(page.locator(".printed")).to_have_text("to the end")


def test_a_program_reads_the_input(page: Page) -> None:
    write(page, "print(int(input()) + 1)")
    page.get_by_label("Input of the program").fill("41")
    press(page, "Run")
    expect(page.locator(".printed")).to_have_text("42")


def test_hints_come_one_by_one_and_work_can_be_deleted(page: Page) -> None:
    press(page, "Hint")
    expect(page.get_by_role("list", name="Hints")).to_contain_text("Which operator multiplies?")
    write(page, RIGHT)
    press(page, "Submit")
    expect(page.get_by_role("button", name="1. Double a number ✓ done")).to_be_visible()
    press(page, "Delete my work")
    press(page, "Delete")
    expect(page.get_by_role("button", name="1. Double a number", exact=True)).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("pass")


def test_a_lesson_that_is_not_there_is_said(profile: BrowserContext, address: str) -> None:
    with page_of(profile, f"{address}/second") as page:
        expect(page.locator("body")).to_contain_text("There is no lesson 'second'.")


def test_lists_and_lessons_are_accessible(listed: Page) -> None:
    assert not findings(listed)
    listed.get_by_role("link", name="First steps").click()
    write(listed, "def double(n): return n")
    press(listed, "Hint")
    press(listed, "Submit")
    expect(listed.locator(".told")).to_be_visible()
    assert not findings(listed)


def test_a_learner_chooses_and_explains(profile: BrowserContext, address: str) -> None:
    with page_of(profile, f"{address}/questions") as page:
        assert "[x]" not in page.content()
        page.get_by_role("checkbox", name="A").click()
        press(page, "Submit")
        expect(page.locator(".told")).to_contain_text("A: A range has an end.")
        page.get_by_role("checkbox", name="A").click()
        page.get_by_role("checkbox", name="B").click()
        press(page, "Submit")
        expect(page.locator(".told")).to_contain_text("Right.")
        press(page, "Next step")
        page.get_by_role("textbox", name="Your answer").fill("The condition stays true.")
        press(page, "Submit")
        expect(page.locator(".told")).to_contain_text("Your answer is kept for your teacher to read.")
        page.reload()
        page.get_by_role("button", name="2. Why?").click()
        expect(page.get_by_role("textbox", name="Your answer")).to_have_value("The condition stays true.")


def test_a_teacher_sees_which_test_fails_most_while_the_class_works(
    profile: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "first.md").write_text(LESSON)
    with running_server(f"--lessons={tmp_path}") as (server, address), page_of(profile, address) as page:
        assert server.stderr is not None
        teacher = re.findall(r"http\S+", server.stderr.readline())[0]
        page.get_by_role("link", name="First steps").click()
        with page_of(profile, teacher) as view:
            expect(view.get_by_role("row", name="Double a number 0 0 0")).to_be_visible()
            write(page, "def double(n): return 8")
            press(page, "Submit")
            expect(
                view.get_by_role("row", name="Double a number 1 0 1 Doubles a negative number. (1)")
            ).to_be_visible()
        with page_of(profile, teacher.replace("k=", "k=x")) as other:
            expect(other.locator("body")).to_contain_text("Open the address of the class")


def test_whoever_shares_a_computer_can_be_forgotten(profile: BrowserContext, address: str) -> None:
    with page_of(profile, f"{address}/questions") as page:
        page.get_by_role("checkbox", name="B").click()
        press(page, "Submit")
        expect(page.locator(".told")).to_contain_text("Right.")
        page.goto(address)
        expect(page.locator("li").nth(1)).to_contain_text("1 of 2 exercises done")
        press(page, "Forget me on this computer")
        press(page, "Forget me")
        expect(page.locator("li").nth(1)).to_contain_text("0 of 2 exercises done")
