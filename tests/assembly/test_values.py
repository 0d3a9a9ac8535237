"""The values that the factory takes: what people write with them, and what they refuse."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from code_chains import (
    Agreement,
    Data,
    Escalate,
    GeneratedTests,
    Iterate,
    Judge,
    Language,
    Limits,
    Plan,
    Prompts,
    Repair,
    SandboxExecutor,
    Snippets,
    Solver,
    Toolbox,
    Verdict,
    create_code_chain,
)
from code_chains.assembly.parts import Parts
from code_chains.assembly.specification import build_chain, read_arguments, serialize_spec
from code_chains.chains import ValidateChain
from code_chains.chains.base import Chain, StreamingTransformChain
from code_chains.chains.ranks import Rank
from code_chains.errors import ConfigurationError
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code
from tests.conftest import QUESTION, ROOT, SUM_ANSWER, SUM_CODE


def writing(*programs: str, answer: str = "Told.") -> ScriptedModel:
    """A model that writes these programs, one after the other, and the last one again and again."""
    left = [*programs]

    def reply(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            return answer
        return f"```python\n{left.pop(0) if len(left) > 1 else left[0]}\n```"

    return ScriptedModel(reply)


# -- five uses -----------------------------------------------------------------------------------------------------------


def test_the_simplest_call_needs_a_model_alone() -> None:
    with create_code_chain(writing(SUM_CODE, answer=SUM_ANSWER)) as chain:
        assert chain.invoke(QUESTION)["answer"] == SUM_ANSWER


def test_a_careful_chain_escalates_and_verifies(sandbox: SandboxExecutor) -> None:
    judge = ScriptedModel(lambda messages: "YES: It prints the sum.")
    chain = create_code_chain(
        writing("1 / 0"),
        executor=sandbox,
        solve=Escalate([writing("print(sum(range(1, 6)))")], Repair(5)),
        verify=[Agreement(writing("print(16)", "print(17)", "print(18)")), Judge(judge)],
    )
    result = chain.invoke(QUESTION)
    assert (result["output"], result["verdict"]) == (
        "15",
        Verdict("plausible", "judge", "It prints the sum."),
    )
    assert {attempt.strategy for attempt in result["attempts"]} >= {"initial", "verify"}


def test_tools_and_programs_are_approved(sandbox: SandboxExecutor) -> None:
    asked: list[str] = []

    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    def ask(request: Any) -> bool:
        asked.append(request.name)
        return True

    def look(request: Any) -> bool:
        asked.append("program")
        return True

    chain = create_code_chain(
        writing("print(pay(5))"),
        executor=sandbox,
        tools=Toolbox([pay], approve=ask),
        checks=ValidateChain(approve=look),
    )
    assert (chain.invoke(QUESTION)["output"], asked) == ("paid 5", ["program", "pay"])


def test_messy_files_are_looked_at_before_a_typed_value_is_computed(
    sandbox: SandboxExecutor, sales: Path
) -> None:
    cells = (
        "print(open('sales.csv').read())",
        "final_answer(sum(float(line.split(',')[1]) for line in open('sales.csv').readlines()[1:]))",
    )
    chain = create_code_chain(
        writing(*cells), executor=sandbox, solve=Iterate(cells=12, vision=True), answer_type=float
    )
    result = chain.invoke({"query": "What is the total?", "files": [sales]})
    assert (result["value"], len(result["attempts"])) == (42.0, 2)


@pytest.mark.slow
@pytest.mark.smoke
def test_the_assistant_of_a_shop_learns_translates_and_caches(
    sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "tax.py").write_text('"""Add the tax."""\n\nprint(100 * 1.21)\n')
    chain = create_code_chain(
        writing("def double(x):\n    return 2 * x"),
        executor=sandbox,
        snippets=Snippets(tmp_path / "examples", learn=True),
        language=Language("es", translate=True),
        cache=tmp_path / "a.sqlite",
    )
    question = {"query": "Write a function double(x).", "examples": [(2, 4), (3, 6)]}
    first, *others = (chain.invoke(question) for _ in range(3))
    assert (first["verdict"].status, first["answer_language"], bool(first["learned"])) == (
        "verified",
        "es",
        True,
    )
    # What was learned is shown with the second question, which is thus another one.
    assert [first["cached"], *(other["cached"] for other in others)] == [False, False, True]


def test_the_factory_has_few_keywords() -> None:
    tree = ast.parse((ROOT / "code_chains" / "assembly" / "factory.py").read_text(encoding="utf-8"))
    [factory] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "create_code_chain"
    ]
    assert len(factory.args.args + factory.args.kwonlyargs) <= 18


# -- verifiers and solvers of the user's own -----------------------------------------------------------------------------


def test_verifiers_are_asked_in_order_until_one_decides(sandbox: SandboxExecutor) -> None:
    asked: list[str] = []

    def shy(state: Any) -> None:
        asked.append("shy")

    def sure(state: Any) -> Verdict:
        asked.append(f"sure of {state['output']}")
        return Verdict("plausible", "checks", "Fine.")

    def late(state: Any) -> Verdict:
        raise AssertionError("asked although another one had decided")

    chain = create_code_chain(writing("print(15)"), executor=sandbox, verify=[shy, sure, late])
    assert chain.invoke(QUESTION)["verdict"].reason == "Fine."
    assert asked == ["shy", "sure of 15"]


def test_what_a_verifier_rejects_is_repaired(sandbox: SandboxExecutor) -> None:
    def positive(state: Any) -> Verdict | None:
        is_negative = state["output"].startswith("-")
        return Verdict("failed", "checks", "It must not be negative.") if is_negative else None

    chain = create_code_chain(writing("print(-1)", "print(1)"), executor=sandbox, verify=[positive])
    result = chain.invoke(QUESTION)
    assert (result["output"], len(result["attempts"])) == ("1", 2)


def test_a_verifier_may_be_a_chain(sandbox: SandboxExecutor) -> None:
    chain_of_mine = StreamingTransformChain(
        input_variables=["output"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": Verdict("plausible", "checks", f"Saw {state['output']}.")},
    )
    chain = create_code_chain(writing("print(15)"), executor=sandbox, verify=[chain_of_mine])
    assert chain.invoke(QUESTION)["verdict"].reason == "Saw 15."


class Spelling(StreamingTransformChain):
    """A verifier that can only doubt."""

    rank: ClassVar[Rank] = Rank.DOUBT


def test_a_doubt_is_heard_wherever_its_verifier_stands(sandbox: SandboxExecutor) -> None:
    doubt = Spelling(
        input_variables=["output"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": Verdict("failed", "checks", "It is misspelt.")},
    )
    verify: list[Any] = [Agreement(writing(SUM_CODE)), doubt]
    chain = create_code_chain(writing(SUM_CODE), executor=sandbox, verify=verify, solve=Repair(1))
    assert chain.invoke(QUESTION)["attempts"][0].verdict.reason == "It is misspelt."


@pytest.mark.parametrize("returned", [True, "fine", 1])
def test_a_verifier_that_returns_no_verdict_is_an_error_that_names_it(
    sandbox: SandboxExecutor, returned: Any
) -> None:
    chain = create_code_chain(writing("print(15)"), executor=sandbox, verify=[lambda state: returned])
    with pytest.raises(ConfigurationError, match="return a Verdict or None"):
        chain.invoke(QUESTION)


async def test_verifiers_decide_the_same_whatever_way_a_chain_is_called(sandbox: SandboxExecutor) -> None:
    judge = ScriptedModel(lambda messages: "YES: Right.")
    chain = create_code_chain(writing("print(15)"), executor=sandbox, verify=[Judge(judge)])
    expected = chain.invoke(QUESTION)["verdict"]
    assert (await chain.ainvoke(QUESTION))["verdict"] == expected
    assert [chunk["verdict"] for chunk in chain.stream(QUESTION) if "verdict" in chunk] == [expected]


def test_a_verifier_that_equals_another_is_followed_by_its_own_ones() -> None:
    first, judge, second = Agreement(), Judge(writing("1")), Agreement()
    parts = Parts("local", ScriptedExecutor(str), ValidateChain(), verifiers=[first, judge, second])
    assert (len(parts.chains_of_verifiers(after=first)), parts.chains_of_verifiers(after=second)) == (1, [])


def test_a_solver_of_ones_own_builds_from_the_parts(sandbox: SandboxExecutor) -> None:
    class Once(Solver):
        """Make one attempt, whatever comes of it."""

        def build(self, parts: Parts) -> Chain:
            return Repair(1).build(parts)

    chain = create_code_chain(writing("1 / 0"), executor=sandbox, solve=Once())
    assert len(chain.invoke(QUESTION)["attempts"]) == 1


def test_a_chain_that_solves_nothing_is_refused_as_a_solver() -> None:
    with pytest.raises(ConfigurationError, match="a chain that also adds code"):
        create_code_chain(writing("1"), solve=ValidateChain())


def test_without_sessions_automatic_cells_and_steps_are_left_out(sales: Path) -> None:
    for solve in (Iterate(when="auto"), Plan(when="auto")):
        with create_code_chain(writing("print(1)"), executor=ScriptedExecutor(str), solve=solve) as chain:
            assert chain.invoke({"query": QUESTION, "files": [sales]})["verdict"].ok


# -- as JSON -------------------------------------------------------------------------------------------------------------


def test_every_value_can_be_written_as_json() -> None:
    spec = {
        "solve": {"type": "Escalate", "models": ["local:1.5b"], "solver": {"type": "Repair", "attempts": 5}},
        "verify": [
            {"type": "GeneratedTests"},
            {"type": "Judge", "model": "local:1.5b"},
            {"type": "Agreement", "lead": 2},
        ],
        "data": {"type": "Data", "paste": False},
        "snippets": {"type": "Snippets", "source": "examples", "learn": True},
        "language": {"type": "Language", "name": "es"},
        "instructions": {"type": "Prompts", "instructions": "In euros."},
        "limits": {"seconds": 5},
    }
    assert read_arguments(json.loads(serialize_spec(spec))) == {
        "solve": Escalate(["local:1.5b"], Repair(5)),
        "verify": [GeneratedTests(), Judge("local:1.5b"), Agreement(lead=2)],
        "data": Data(paste=False),
        "snippets": Snippets("examples", learn=True),
        "language": Language("es"),
        "instructions": Prompts("In euros."),
        "limits": Limits(seconds=5),
    }


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"solve": {"type": "Repairs"}}, "one of the types"),
        ({"solve": {"type": "Repair", "tries": 3}}, "tries"),
        ({"solve": {"type": "Repair", "attempts": 0}}, r"Repair\.attempts=0"),
        ({"limits": {"minutes": 1}}, "minutes"),
    ],
)
def test_a_specification_that_is_wrong_is_named(spec: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        build_chain(serialize_spec({"model": "local", **spec}))
