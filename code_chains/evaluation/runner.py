"""Evaluate a chain: ask it the questions of cases, and score its answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.specification import ChainSpec
from code_chains.batch.records import Answer
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import Answers, map_questions
from code_chains.callbacks.budget import Budget
from code_chains.chains.judge import JudgeChain
from code_chains.errors import ConfigurationError
from code_chains.evaluation.cases import Case, cases_of
from code_chains.evaluation.records import Evaluation, Score, stored_text
from code_chains.evaluation.scorers import Scorer
from code_chains.evaluation.scoring import Stated, is_right
from code_chains.state import Verdict


class Judgements:
    """The judgements of answers, which are kept beside the results file, as each costs a call of a model.

    A context manager. Judgements that are not clear are not kept: the judge is asked again.

    Args:
        judge: The judge; None if no case needs one.
        results_file: The file of the answers; `PATH.judged` beside it holds the judgements. None keeps none.
    """

    def __init__(self, judge: JudgeChain | None, results_file: ResultsFile | None) -> None:
        self._judge = judge
        is_kept = judge is not None and results_file is not None
        self._file = (
            ResultsFile(f"{results_file.path}.judged", resume=True) if is_kept and results_file else None
        )
        self._stack = ExitStack()
        self._known: dict[str, Verdict] = {}

    def __enter__(self) -> Judgements:
        if self._file is not None:
            self._stack.enter_context(self._file)
            for record in self._file.records():
                with suppress(ValueError, KeyError):  # A record from outside is judged again.
                    self._known[str(record["id"])] = Verdict.from_dict(record["computed"]["verdict"] or {})
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def judge(self, case_id: str, result: Mapping[str, Any]) -> Verdict:
        """Return the judgement of an answer."""
        if case_id not in self._known:
            assert self._judge is not None  # Checked before the first case was asked.
            self._known[case_id] = self._judge.invoke(
                {key: result.get(key) or "" for key in ("query", "code", "output")}
            )["verdict"]
            self._keep(case_id)
        return self._known[case_id]

    def _keep(self, case_id: str) -> None:
        verdict = self._known[case_id]
        if self._file is not None and verdict.status != "unverified":
            record = {
                "given": {"query": "", "own": {}, "digest": ""},
                "computed": {"verdict": verdict.to_dict()},
            }
            self._file.add({"id": case_id, **record})


Watch = Callable[[Answers], Iterable[Answer]]


def evaluate(
    chain: CodeChain | ChainSpec,
    cases: Path | Iterable[Case | Mapping[str, Any]],
    *,
    results_file: ResultsFile | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    cluster: Any = None,
    judge: JudgeChain | None = None,
    scorer: Scorer | None = None,
    watch: Watch = iter,
    **options: Any,
) -> Evaluation:
    """Ask a chain the questions of all cases, and score its answers.

    An answer is right if it is what the case expects and its verdict is not `failed`: a chain that withholds a right
    output has not given it. Where no answer is expected (`"expected": null`), a `failed` verdict is right, and so is the
    value None. A case for which the chain raises, as its model's provider did not answer, has no answer that could be right
    or wrong: it counts apart, and is asked again when the results file is resumed.

    Args:
        chain: A `CodeChain`, or its specification as JSON, as for `map_questions`.
        cases: Cases, or mappings with `query`, the inputs of the chain, and what is expected; or the path of a file of
            them, as for `read_cases`.
        results_file: Where answers are written; the caller opens and closes it. Those in it are scored without asking
            again, so an interrupted evaluation can be resumed, and one with corrected expectations costs nothing.
        concurrency: How many questions run at once; two per core by default.
        budget: Limits for all questions together. Cases that it prevents are `missing` and have no score.
        cluster: Workers, as for `map_questions`.
        judge: Decides on the cases that ask for a judge. Its calls are not part of the cost.
        scorer: Decides on the cases with an expected value, from that value and the result; see `scorers`.
        watch: Called with the answers as they come; returns them, e.g. to show progress.
        options: `retries`, `rate`, `max_errors` and `again`, as for `map_questions`.

    Raises:
        InputError: A case is invalid; no question was asked.
        StoreError: The results file has the answers of another chain; no question was asked.
        ConfigurationError: A case asks for a judge, and there is none, or the chain is `schema_only`, so that no
            model may see its output; no question was asked.

    Example:
        >>> from code_chains import create_code_chain
        >>> from code_chains.testing import ScriptedExecutor, ScriptedModel
        >>> model, executor = ScriptedModel(lambda messages: "print(6 * 7)"), ScriptedExecutor(lambda code: "42")
        >>> chain = create_code_chain(model, executor=executor)
        >>> evaluate(chain, [{"query": "What is 6 times 7?", "expected": 42}]).accuracy.value
        1.0
    """
    checked = cases_of(cases)
    _check_judge(checked, judge, chain)
    by_id = {case.id: case for case in checked}
    scores: dict[str, Score] = {}
    with Judgements(judge, results_file) as judgements:
        earlier = _earlier(by_id, results_file)
        answers = map_questions(
            chain,
            list(map(attrgetter("question"), checked)),
            cluster=cluster,
            concurrency=concurrency,
            results_file=results_file,
            budget=budget,
            **options,
        )
        with closing(answers):  # Failures are written before the file is closed.
            for answer in itertools.chain(earlier, watch(answers)):
                if not _is_prevented(answer, budget):
                    scores[answer.id] = _score(by_id[answer.id], answer, judgements, scorer)
    missing = tuple(itertools.filterfalse(scores.__contains__, by_id))
    return Evaluation(tuple(filter(None, map(scores.get, by_id))), missing, _model_of(chain))


def _model_of(chain: CodeChain | ChainSpec) -> str:
    """Return the name of the model that writes programs."""
    if isinstance(chain, CodeChain):
        return chain.model_name
    return str(chain.get("model") or "local") if isinstance(chain, Mapping) else ""


def _check_judge(cases: list[Case], judge: JudgeChain | None, chain: CodeChain | ChainSpec) -> None:
    for case in cases:
        if case.expectation.by != "judge":
            continue
        if judge is None:
            raise ConfigurationError("judge", judge, f"a JudgeChain, as {case.question} asks for one")
        if _is_schema_only(chain):
            remedy = f"False, or no case with a judge, such as {case.question}: it sees the output"
            raise ConfigurationError("schema_only", True, remedy)


def _is_schema_only(chain: CodeChain | ChainSpec) -> bool:
    if isinstance(chain, CodeChain):
        return chain.schema_only
    data = chain.get("data") if isinstance(chain, Mapping) else None
    return isinstance(data, Mapping) and bool(data.get("schema_only"))


def _earlier(cases: Mapping[str, Case], results_file: ResultsFile | None) -> list[Answer]:
    """Return the answers that are in the results file, and the questions that were abandoned; without those that changed."""
    if results_file is None:
        return []
    abandoned = [record for key, record in results_file.failures.items() if key in results_file.abandoned]
    answers = list[Answer]()
    for record in (*abandoned, *results_file.records()):
        case = cases.get(record["id"])
        if case is not None and not results_file.is_changed(case.question):
            answers.append(results_file.answer_to(case.question, record))
    return answers


def _is_prevented(answer: Answer, budget: Budget | None) -> bool:
    """Return whether the budget for all questions left nothing for this one."""
    return budget is not None and answer.limit in budget.limits


def _score(case: Case, answer: Answer, judgements: Judgements, scorer: Scorer | None) -> Score:
    result = {"query": case.question.query, **answer.result}
    details = {key: stored_text(result.get(key)) for key in ("output", "answer", "code")}
    common: dict[str, Any] = {
        **details,
        "id": case.id,
        "query": stored_text(case.question.query),
        "expectation": case.expectation,
        "seconds": answer.seconds,
        "usage": answer.usage,
    }
    if answer.error:
        return Score(right=False, status="error", reason=stored_text(answer.error), **common)
    verdict = result["verdict"]
    right, reason = _decide(case, result, judgements, scorer)
    common |= {"by": verdict.by, "attempts": len(result.get("attempts") or ())}
    return Score(right=right, status=verdict.status, reason=stored_text(reason or verdict.reason), **common)


def _decide(
    case: Case, result: Mapping[str, Any], judgements: Judgements, scorer: Scorer | None
) -> tuple[bool, str]:
    """Return whether an answer is right, and the reason of a judge."""
    if scorer is not None and case.expectation.by == "value" and result["verdict"].ok:
        return bool(scorer(case.expectation.value, result)), ""
    if case.expectation.by != "judge":
        return is_right(Stated.by(result), case.expectation), ""
    if not result["verdict"].ok:
        return False, ""
    judgement = judgements.judge(case.id, result)
    return judgement.status == "plausible", judgement.reason
