"""Examples that are run before a model is shown them, so that it learns from none that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from langchain_core.documents import Document
from pydantic import TypeAdapter

from code_chains.analysis.dotted_names import root_of
from code_chains.inputs import shortened
from code_chains.records.printable import strip_control_chars
from code_chains.retrieval.prose import is_prose
from code_chains.retrieval.references import is_reference
from code_chains.state import Execution

Run = Callable[..., Execution]
"""The `run` of an executor."""
NOT_RUN = "# From the documentation, not run:\n"
"""What stands before the examples of a docstring until they are run."""
MAX_DOCSTRINGS, MAX_PROGRAMS = 200, 50
_MAX_RUNS, _MAX_OUTPUT_CHARS = 3, 400
"""Runs of docstrings, of which one that ends the run costs itself alone; characters of one output."""
_REPORT = TypeAdapter(tuple[str, list[str], str])
_RUN = """\
import contextlib, doctest, importlib, io, json, sys

checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
for name, module, text in jobs:
    ran, error, sys.displayhook = [], "", sys.__displayhook__
    try:
        names = dict(vars(importlib.import_module(module)))
        for example in doctest.DocTestParser().get_examples(text):
            if doctest.SKIP in example.options:
                continue
            shown, wanted = io.StringIO(), example.want
            try:
                with contextlib.redirect_stdout(shown):
                    exec(compile(example.source, name, "single"), names)
            except Exception as raised:
                if not (example.exc_msg or "").startswith(type(raised).__name__):
                    raise
                shown.write(wanted)
            got = shown.getvalue()
            ran.append(">>> " + "\\\\n... ".join(example.source.splitlines()))
            ran.append(wanted if checker.check_output(wanted, got, flags) else got)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    print(json.dumps([name, ran, error]), flush=True)
"""


class ExampleRuns(NamedTuple):
    """The names of references and the ids of programs whose examples ran, failed for a reason, or were not run."""

    ran: list[str]
    failed: dict[str, str]
    not_run: list[str]


def run_examples(documents: Iterable[Document], run: Run) -> tuple[list[Document], ExampleRuns]:
    """Run the examples of references, and the programs that say what they are about; return those, as they are shown now."""
    found = {str(one.metadata.get("source") if is_reference(one) else one.id): one for one in documents}
    references = {name: one for name, one in found.items() if one.metadata.get("examples")}
    programs = {name: one for name, one in found.items() if _is_program(one)}
    packages = set(map(root_of, references)) or {"sys"}
    if not all(_is_usable(package, run) for package in packages):
        return [], ExampleRuns([], {}, [*references, *programs])
    errors: dict[str, str] = {}
    changed = []
    for name, lines, error in _run_docstrings(references, run):
        errors[name] = error
        changed.append(_with_examples(references[name], lines))
    for name, one in islice(programs.items(), MAX_PROGRAMS):
        execution = run(one.page_content)
        errors[name] = "" if execution.ok else execution.summary
        outcome = {"output": shortened(execution.output, _MAX_OUTPUT_CHARS), "failure": errors[name]}
        changed.append(one.model_copy(update={"metadata": {**one.metadata, **outcome}}))
    failed = {name: error for name, error in errors.items() if error}
    not_run = [name for name in (*references, *programs) if name not in errors]
    return changed, ExampleRuns([name for name in errors if name not in failed], failed, not_run)


def _is_program(document: Document) -> bool:
    """Return whether a snippet is an example in Python that was not run yet."""
    data = document.metadata
    is_example = "about" in data and not is_reference(document) and not is_prose(document)
    return is_example and data.get("language", "python") == "python" and "failure" not in data


def _is_usable(package: str, run: Run) -> bool:
    """Return whether programs can import a package, and are isolated."""
    execution = run(f"import {package}")
    return execution.ok and execution.isolation is not None and execution.isolation.level != "none"


def _run_docstrings(references: Mapping[str, Document], run: Run) -> list[tuple[str, list[str], str]]:
    """Return for each reference the lines that ran, and why the rest did not."""
    waiting = {
        name: [name, one.page_content.split()[1], str(one.metadata["examples"])]
        for name, one in islice(references.items(), MAX_DOCSTRINGS)
    }
    reports = []
    for _ in range(_MAX_RUNS if waiting else 0):
        execution = run(_RUN, variables={"jobs": list(waiting.values())})
        for line in execution.stdout.splitlines():
            with suppress(ValueError):  # What a package prints itself.
                report = _REPORT.validate_json(line)
                reports += [report] if waiting.pop(report[0], None) else []
        if not execution.ok and waiting:  # It ended in the first of those that are left.
            name = next(iter(waiting))
            reports.append((name, [], execution.summary))
            del waiting[name]
        if not waiting:
            break
    return reports


def _with_examples(reference: Document, shown: Sequence[str]) -> Document:
    """Return a reference that shows what ran, in the place of what its docstring says."""
    lines = [line for text in shown for line in shortened(text, _MAX_OUTPUT_CHARS).splitlines() if line]
    written = f"{NOT_RUN}{reference.metadata['examples']}\n"
    text = strip_control_chars("".join(map("{}\n".format, lines)))
    metadata = {key: value for key, value in reference.metadata.items() if key != "examples"}
    content = reference.page_content.replace(written, text, 1)
    return reference.model_copy(update={"page_content": content, "metadata": metadata})
