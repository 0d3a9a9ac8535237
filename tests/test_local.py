"""The embedded model itself: real weights, a real server, real answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.chains import GenerateChain
from code_chains.executors import SandboxExecutor

from .conftest import QUESTION

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def local() -> Any:
    from code_chains.models import resolve_model

    return resolve_model("local")


def test_it_answers_the_first_question(local: Any, sandbox: SandboxExecutor) -> None:
    result = create_code_chain(local, executor=sandbox).invoke({"query": QUESTION})
    assert ("15" in result["output"], "15" in result["answer"]) == (True, True)


async def test_it_streams_and_counts(local: Any, sandbox: SandboxExecutor) -> None:
    chunks = [chunk async for chunk in create_code_chain(local, executor=sandbox).astream({"query": QUESTION})]
    assert len([chunk for chunk in chunks if chunk.get("answer")]) > 3
    assert chunks[-1]["usage"].output_tokens > 10


def test_a_grammar_holds_it_to_one_program(local: Any) -> None:
    reply = local.for_code().invoke("Tell me a story.").text
    assert (reply.startswith("```python\n"), reply.count("```")) == (True, 2)


def test_a_reply_that_hits_the_limit_is_no_code(local: Any) -> None:
    short = local.bind(max_tokens=5)
    result = GenerateChain(model=short).invoke({"query": QUESTION})
    assert (result["code"], result["finish_reason"]) == ("", "length")


def test_one_server_serves_the_whole_process(local: Any) -> None:
    from code_chains.local import load_local

    assert load_local("local", temperature=0.5).openai_api_base == local.openai_api_base


async def test_questions_at_once_are_all_answered(local: Any, sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(local, executor=sandbox, interpret=False)
    questions = [{"query": "What is 6 times 7?"}, {"query": "What is 20 divided by 4?"}]
    first, second = await asyncio.wait_for(chain.abatch(questions), 300)
    assert ("42" in first["output"], "5" in second["output"]) == (True, True)
