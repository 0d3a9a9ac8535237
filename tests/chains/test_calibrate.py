from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from code_chains import Calibrated, create_code_chain
from code_chains.chains.calibrate import Calibration
from code_chains.errors import ConfigurationError, InputError
from code_chains.evaluation import evaluate
from code_chains.language.reasons import verdict_words
from code_chains.state import Verdict
from code_chains.testing import ScriptedExecutor, ScriptedModel

CASES = [{"query": f"What is {number} times 7?", "expected": 42} for number in range(6)]


def chain(**options: Any) -> Any:
    model = ScriptedModel(lambda messages: "print(6 * 7)")
    return create_code_chain(model, executor=ScriptedExecutor(lambda code: "42"), checks=(), **options)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.json"
    evaluate(chain(), CASES).save(path)
    return path


def test_a_verdict_says_what_such_verdicts_were_worth(evaluation: Path) -> None:
    verdict = chain(verify=[Calibrated(evaluation)]).invoke("What is 6 times 7?")["verdict"]
    assert (verdict.status, verdict.worth) == ("unverified", "right in 6 of 6 such cases")
    assert verdict_words(verdict)[1].endswith("(right in 6 of 6 such cases)")


def test_an_evaluation_need_not_be_saved() -> None:
    verify = [Calibrated(evaluate(chain(), CASES))]
    assert chain(verify=verify).invoke("What is 6 times 7?")["verdict"].worth == "right in 6 of 6 such cases"


def test_a_stream_adds_up_to_it(evaluation: Path) -> None:
    calibrated = chain(verify=[Calibrated(evaluation)])
    chunks = list(calibrated.stream("What is 6 times 7?"))
    assert [chunk["verdict"].worth for chunk in chunks if "verdict" in chunk] == [
        "right in 6 of 6 such cases"
    ]


def test_an_evaluation_of_another_model_is_refused(evaluation: Path) -> None:
    saved = json.loads(evaluation.read_text())
    evaluation.write_text(json.dumps({**saved, "model": "openai:gpt-5-mini"}))
    with pytest.raises(ConfigurationError, match="an evaluation of openai:gpt-5-mini"):
        chain(verify=[Calibrated(evaluation)])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": "x", "scores": [{"status": "verified"}]}'])
def test_another_file_is_refused_before_a_model_is_paid(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match="code-chains eval --json"):
        chain(verify=[Calibrated(tmp_path / "a.json")])


def test_repaired_answers_are_compared_with_repaired_ones() -> None:
    verdict = Verdict("unverified", "none", "")
    first = [("unverified", "none", 1, True)] * 6
    repaired = [("unverified", "none", 3, False)] * 5
    calibration = Calibration("m", (*first, *repaired))
    assert calibration.worth(verdict, 1) == "right in 6 of 6 such cases"
    assert calibration.worth(verdict, 2) == "right in 0 of 5 such cases"


def test_too_few_cases_say_nothing() -> None:
    calibration = Calibration("m", (("verified", "tests", 1, True),) * 4)
    assert calibration.worth(Verdict("verified", "tests", ""), 1) == ""
