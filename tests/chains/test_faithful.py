"""Answers that do not state what was computed are never shown alone, in any language."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from benchmarks.faithful import LANGUAGES, Answer, bad, good
from code_chains import SandboxExecutor, create_code_chain
from code_chains.chains.interpret import is_faithful
from code_chains.language import LANGUAGES as ALL
from code_chains.testing import ScriptedModel, asks_for_code
from code_chains.verification.grounding import omits_words, rounds_beyond


def faithful(answer: Answer) -> bool:
    return is_faithful({"answer": answer.text, "query": answer.query, "output": answer.output})


def test_answers_are_scripted_in_every_language() -> None:
    assert LANGUAGES.keys() == ALL.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_good_answers_stand_alone(language: str) -> None:
    assert [answer.kind for answer in good(LANGUAGES[language]) if not faithful(answer)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_bad_answers_never_stand_alone(language: str) -> None:
    assert [answer.kind for answer in bad(LANGUAGES[language]) if faithful(answer)] == []


@pytest.mark.parametrize(
    ("query", "output", "answer"),
    [
        ("¿Qué día es?", "Sunday", "Es domingo."),
        ("Ist 7 prim?", "True", "Ja, 7 ist prim."),
        ("Which are missing?", "[]", "None is missing."),
        ("Reverse 'abc def'.", "fed cba", "Reversed, it reads fed cba."),
        ("Who is the oldest?", "Oldest: Ann", "Ann is the oldest."),
        ("Welche Stadt?", "Köln", "Die Stadt ist Koln."),
        ("Write a poem", "roses are red, violets are blue, and so are you and me", "Here it is."),
    ],
)
def test_words_may_be_translated_or_summarized(query: str, output: str, answer: str) -> None:
    assert is_faithful({"answer": answer, "query": query, "output": output})


def test_a_number_may_be_shorter_if_it_is_exact() -> None:
    query = "What is the mean, rounded to two decimals?"
    assert not rounds_beyond("It is 2.5.", "2.50", query)
    assert not rounds_beyond("It is 2.5.", "2.5", query)
    assert rounds_beyond("It is 2.7.", "2.67", query)
    assert not rounds_beyond("It is 2.7.", "2.67", "What is the mean?")


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=100))
def test_looking_at_answers_never_raises(answer: str, output: str, query: str) -> None:
    assert omits_words(answer, output, query) in (True, False)
    assert rounds_beyond(answer, output, f"{query} rounded to two decimals") in (True, False)


def test_what_an_answer_left_out_is_quoted_below_it(sandbox: SandboxExecutor) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        return "print('kestrel')" if asks_for_code(messages) else "The longest word is falcon."

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain:
        answer = chain.invoke("Which word is the longest?")["answer"]
    assert answer.startswith("The longest word is falcon.")
    assert "kestrel" in answer
