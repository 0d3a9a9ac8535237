"""What lessons say to learners, in the language of the lesson; Python's own messages stand beside it as they are."""

from __future__ import annotations

from typing import NamedTuple

from code_chains.language.messages import texts


class Texts(NamedTuple):
    """The texts in one language. Names in braces are filled in.

    Attributes:
        empty: There is no program.
        too_long: It is too long.
        unreadable: Python cannot read it, or it breaks a rule of the step.
        passed: All `{count}` tests pass.
        failed: `{failed}` of `{count}` tests fail.
        test: What a test without a description is called, by its `{number}`.
        with_input: What a test is about, and its `{inputs}`.
        first: An earlier `{step}` is to be solved before.
        broken: The test in a `{line}` of the lesson is broken.
        crashed: The program ended with an `{error}`.
        ended: The program ended while it was tested.
        endless: It took longer than `{seconds}`.
        output: It printed more than is allowed.
        memory: It needed more memory than is allowed.
        slow: The machine was too slow.
        uncounted: No attempt was counted.
        line: A `{line}` of the program.
        no_tests: There are no hidden tests here.
        no_hint: There is no hint that can be shown.
        no_more: All hints are used up.
        right: An answer is right.
        wrong: It is not.
        choose: Only the `{letters}` of a choice are an answer.
        gap_open: A gap in a `{line}` is not filled.
        gap_changed: A `{line}` was changed outside of its gaps.
        gap_wrong: The `{lines}` with gaps that are filled wrongly.
        kept: An explanation waits for the teacher.
        criteria: A model finds `{count}` of `{total}` criteria met.
        required: A rule requires `{what}`.
        forbidden: A rule forbids `{what}`.
        loop: What a rule calls so; a keyword of Python's stands for itself.
        function: The same.
        comprehension: The same.
        recursion: The same.
    """

    empty: str
    too_long: str
    unreadable: str
    passed: str
    failed: str
    test: str
    with_input: str
    first: str
    broken: str
    crashed: str
    ended: str
    endless: str
    output: str
    memory: str
    slow: str
    uncounted: str
    line: str
    no_tests: str
    no_hint: str
    no_more: str
    right: str
    wrong: str
    choose: str
    gap_open: str
    gap_changed: str
    gap_wrong: str
    kept: str
    criteria: str
    required: str
    forbidden: str
    loop: str
    function: str
    comprehension: str
    recursion: str


def texts_in(language: str) -> Texts:
    """Return the texts in a language, in English if there are none."""
    return Texts(**texts(language.partition("-")[0].lower(), "lessons"))
