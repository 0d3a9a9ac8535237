"""Receipts of anybody: read, run again without a model, and compared."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from code_chains.errors import InputError, brief
from code_chains.executors.base import Executor
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.values import (
    unpack_untrusted,
)
from code_chains.inputs.pasted import find_data
from code_chains.language.detect import LANGUAGES
from code_chains.language.messages import messages_in
from code_chains.receipts.receipt import (
    FORMAT,
    MAX_OUTPUT_CHARS,
    MAX_VALUES,
    Receipt,
    checksums,
    given_file,
    sha256_of,
    valid_text,
    versions_of,
)
from code_chains.state import Execution
from code_chains.storage.foreign import parse_json, read_text
from code_chains.verification.comparison import Outcome
from code_chains.verification.grounding import (
    multiplied_numbers,
    omits_result,
    places_of_numbers,
    unsupported_numbers,
)
from code_chains.verification.provenance import may_reach, names_from_elsewhere
from code_chains.verification.quotes import format_outcome, quotation

_SAME = "The program shows the same again."
_SAME_IN_WORDS = "The program shows the same again; the answer's words are claims."
_MAX_LISTED, _MAX_SAID_CHARS = 10, 200
_WORD, _NUMBER = re.compile(r"\w++"), re.compile(r"[0-9_]++")


@dataclass(frozen=True)
class Comparison:
    """What came of running a program again.

    Attributes:
        status: `same` or `different`, of what the program shows; or `unknown`: it could not be run as it was, or the answer
            has other numbers, or none of an output without any.
        reason: Why, as a sentence.
        compared: What was compared and is the same, in words. All else is the receipt's claim.
    """

    status: Literal["same", "different", "unknown"]
    reason: str
    compared: tuple[str, ...] = ()


def read_receipt(source: str | os.PathLike[str] | Mapping[str, Any]) -> Receipt:
    """Return a receipt from its JSON.

    Args:
        source: The JSON as text or as `result["receipt"]` has it, or the `pathlib.Path` of a file that contains it.

    Raises:
        InputError: It is no receipt, of another version, or was changed; or the file cannot be read.
    """
    try:
        data = (
            dict(source)
            if isinstance(source, Mapping)
            else parse_json(source if isinstance(source, str) else read_text(Path(source)), is_strict=True)
        )
        if not isinstance(data, dict):
            raise InputError("This is no receipt of an answer: it must be a JSON object.")
        if data.get("format", FORMAT) != FORMAT:
            raise InputError(
                f"This receipt has the form {brief(data['format'])}; this version reads {FORMAT!r}."
            )
        receipt = Receipt.from_dict(data)
    except InputError:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        place = brief(".".join(map(str, first["loc"])))
        raise InputError(f"This is no receipt of an answer: {place}: {first['msg']}.") from error
    except (ValueError, TypeError, RecursionError) as error:  # Of a mapping that a program has made.
        remedy = "Pass the JSON of one, result['receipt'], or pathlib.Path(…) for a file."
        said = str(error)[:_MAX_SAID_CHARS].rstrip(".")
        raise InputError(f"This is no receipt of an answer: {said}. {remedy}") from error
    if receipt.checksum() != receipt.sha256:
        raise InputError("The receipt was changed after it was written: its checksum is another one.")
    return receipt


def run_again(
    receipt: Receipt | Mapping[str, Any],
    executor: Executor,
    *,
    files: Mapping[str, Any] | Sequence[Any] | None = None,
) -> Comparison:
    """Run the program of a receipt again, without a model, and compare what it shows.

    Args:
        receipt: The receipt, or its JSON as `result["receipt"]` has it.
        executor: Where the program runs.
        files: The files that it was given, in any form that a question takes: paths, bytes or open files by name, or a
            list of paths.

    Raises:
        InputError: This is no receipt, or a file cannot be read.
    """
    receipt = receipt if isinstance(receipt, Receipt) else read_receipt(receipt)
    with files_on_disk(files) as given, files_on_disk(_pasted(receipt, given)) as pasted:
        paths = {**pasted, **given}
        if obstacle := _obstacle(receipt, executor, paths):
            return Comparison("unknown", obstacle)
        variables = {**receipt.variables, **_unpacked(receipt.packed_variables)}
        # A turn of a conversation may read files of earlier ones.
        names = paths if receipt.in_session else receipt.files
        inputs: dict[str, Any] = {"files": {name: paths[name] for name in names}}
        inputs |= {"variables": variables, "stdin": receipt.stdin}
        again = executor.run(receipt.program, **{key: value for key, value in inputs.items() if value})
    return _compared(receipt, again)


def _pasted(receipt: Receipt, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files that were made of data in the question, as far as they are not given."""
    missing = receipt.files.keys() - given.keys()
    if not missing:
        return {}
    taken = dict.fromkeys([*(receipt.files.keys() - missing), *receipt.variables])
    session = "receipt" if receipt.in_session else None
    paste = None
    with suppress(InputError):  # Anybody may have written the question.
        paste = find_data({"query": receipt.question, "variables": taken, "session": session})
    return {name: content for name, content in paste.files.items() if name in missing} if paste else {}


def _compared(receipt: Receipt, again: Execution) -> Comparison:
    from code_chains.analysis.determinism import is_repeatable

    shows_same = valid_text(again.output[:MAX_OUTPUT_CHARS]) == receipt.output
    ends_same = receipt.failure == ("" if again.ok else valid_text(again.summary))
    if ends_same and shows_same and sha256_of(again.output) == receipt.output_sha256:
        return _compared_artifacts(receipt, again)
    if receipt.in_session and (not again.ok or may_reach(receipt.program, "")):
        names = sorted(set(names_from_elsewhere(receipt.program)) - receipt.variables.keys())
        others = f"that set {', '.join(names)}" if names else "that may have left what it reads"
        return Comparison("unknown", f"The program ran in a conversation, after others {others}.")
    if again.error is not None and again.error.type == "NameError":
        return Comparison(
            "unknown", f"The program uses what no receipt has, such as a tool: {again.error.message}."
        )
    if not again.ok:
        return Comparison(
            "different", f"The program fails now: {again.summary}{_limits_then(receipt, again)}"
        )
    if receipt.failure:
        return Comparison("different", f"The program runs to its end now. It failed then: {receipt.failure}")
    shown = again.output.strip()[:200]
    if not is_repeatable(receipt.program):
        return Comparison("different", f"The program depends on time or chance. It shows now: {shown}")
    return Comparison("different", f"The program shows now: {shown}{_because(receipt)}")


def _compared_artifacts(receipt: Receipt, again: Execution) -> Comparison:
    from code_chains.analysis.determinism import is_repeatable

    made = checksums(again.artifacts)
    if not (receipt.output or receipt.artifacts or receipt.failure):
        return Comparison("unknown", "The program shows nothing, and what checked it is not in the receipt.")
    if missing := sorted(receipt.artifacts.keys() - made.keys()):
        return Comparison("different", f"The program does not make these files now: {', '.join(missing)}.")
    others = [name for name, checksum in receipt.artifacts.items() if made[name] != checksum]
    if not others:
        return _compared_answer(receipt, again)
    reason = f"These files have another content now: {', '.join(others)}."
    chance = "" if is_repeatable(receipt.program) else " The program depends on time or chance."
    return Comparison("different", f"{reason}{chance or _because(receipt)}")


def _compared_answer(receipt: Receipt, again: Execution) -> Comparison:
    """Compare the answer in words with an output that is the same again.

    Invariant: nothing is `same` unless each number of the answer is found, also where it stands in a form that is not read,
    and the answer has an output without numbers in whole words: anybody can write a receipt. What else the words say is the
    receipt's claim, as words can turn each output into its opposite.
    """
    timed = [name for name, checksum in receipt.artifacts.items() if not checksum]
    files = [name for name in receipt.artifacts if name not in timed]
    compared = ["the output"] * bool(receipt.output) + ["that the program fails"] * bool(receipt.failure)
    compared += [f"the content of {_listed(files)}"] * bool(files)
    compared += [f"that there is {_listed(timed)}, in which the time stands"] * bool(timed)
    answer, output, query = receipt.answer, receipt.output, receipt.question
    if not answer.strip():
        return Comparison("same", _SAME, tuple(compared))
    if len(answer) > MAX_OUTPUT_CHARS:
        return Comparison("unknown", "The output is the same; the answer is too long to be compared with it.")
    others = [*unsupported_numbers(answer, output, query), *multiplied_numbers(answer, output, query)]
    known = set(_folded(f"{output} {query}").split())
    others += [text for text in _unread_numbers(answer) if text not in known]
    if others and not _is_quoted(answer, again):
        reason = f"The output is the same, but the answer has {_listed(others)}, which the output has not."
        return Comparison("unknown", reason, tuple(compared))
    if omits_result(answer, output) or not _has_words(answer, output, query):
        return Comparison(
            "unknown", "The output is the same, but the answer states something else.", tuple(compared)
        )
    places = places_of_numbers(answer, output, MAX_VALUES)
    claimed = {value.text: value.output_line for value in receipt.values if value.output_line is not None}
    if wrong := [text for text, line in claimed.items() if places.get(text, line) != line]:
        reason = (
            f"The output is the same, but {_listed(wrong)} is in another line of it than the receipt says."
        )
        return Comparison("different", reason, tuple(compared))
    elsewhere = [text for text, line in places.items() if line is None and text not in others]
    found = [f"{text} (line {line})" for text, line in places.items() if line is not None]
    compared += [f"of the answer's numbers, in the output: {_listed(found)}"] * bool(found)
    compared += [f"of the answer's numbers, only in the question or counted: {_listed(elsewhere)}"] * bool(
        elsewhere
    )
    compared += [f"the output as the answer quotes it; only claimed, in its words: {_listed(others)}"] * bool(
        others
    )
    return Comparison("same", _SAME_IN_WORDS, tuple(compared))


def _is_quoted(answer: str, again: Execution) -> bool:
    """Return whether an answer ends with the outcome as a chain quotes it where a model's words differ from it."""
    outcome = format_outcome({"execution": again, "output": again.output})
    quotations = tuple(quotation(outcome, messages_in(language)) for language in LANGUAGES)
    return bool(outcome.strip()) and valid_text(answer).endswith(quotations)


def _has_words(answer: str, output: str, query: str) -> bool:
    """Return whether an answer has an output without numbers as it is, in whole words; True for any other output."""
    if Outcome.from_text(output, query).numbers or not output.strip():
        return True
    return re.search(rf"(?<!\w){re.escape(_folded(output))}(?!\w)", _folded(answer)) is not None


def _unread_numbers(answer: str) -> list[str]:
    """Return the words with figures of any script that are no number as we read them, such as 15k or ⑨."""
    words = map(str.strip, _WORD.findall(_folded(answer)))
    return [word for word in words if any(map(str.isnumeric, word)) and not _NUMBER.fullmatch(word)]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(str, names[:_MAX_LISTED]))
    return shown if len(names) <= _MAX_LISTED else f"{shown} and {len(names) - _MAX_LISTED} more"


def _because(receipt: Receipt) -> str:
    changed = _changed_versions(receipt)
    return f" These versions differ: {', '.join(changed)}." if changed else ""


def _limits_then(receipt: Receipt, again: Execution) -> str:
    """Return what a program had of what it ran out of."""
    if again.status == "timeout" and "seconds" in receipt.limits:
        return f" It had {receipt.limits['seconds']:g} seconds then."
    if again.status == "memory" and "memory" in receipt.limits:
        return f" It had {receipt.limits['memory'] / 2**20:g} MB then."
    return ""


def _obstacle(receipt: Receipt, executor: Executor, files: Mapping[str, Any]) -> str:
    """Return why a program cannot be run as it was; empty if it can."""
    if not receipt.program.strip():
        return "There is no program: nothing was computed."
    if receipt.language != executor.language:
        return f"The program is in {receipt.language}; the executor runs {executor.language}."
    if receipt.other_variables:
        why = "too large for a receipt, or of a type that it cannot have"
        return f"These variables are {why}: {', '.join(receipt.other_variables)}."
    if missing := [name for name in receipt.files if name not in files]:
        return f"These files are missing: {', '.join(missing)}."
    for name, given in receipt.files.items():
        if given_file(files[name]) != given:
            return f"The file {name} has another content than the one of the answer."
    return ""


def _unpacked(packed: Mapping[str, str]) -> dict[str, Any]:
    """Return packed variables.

    Raises:
        InputError: One is no packed value: anybody may have written the receipt.
    """
    try:
        return {name: unpack_untrusted(text.encode()) for name, text in packed.items()}
    except LookupError as error:
        raise InputError(f"A variable of the receipt cannot be read: {error}") from error


def _changed_versions(receipt: Receipt) -> list[str]:
    now = versions_of(receipt.program)
    return [
        f"{name} {version}, now {now.get(name, 'missing')}"
        for name, version in receipt.versions.items()
        if now.get(name) != version
    ]
