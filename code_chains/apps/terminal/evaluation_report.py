"""An evaluation as an HTML page that needs nothing else: no script, no network. What programs wrote is text in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from code_chains.apps.safe_html import plain
from code_chains.errors import InputError
from code_chains.evaluation.records import Evaluation, Score
from code_chains.storage.files import atomic_write

_STYLE = """
:root { color-scheme: light dark; --soft: #6b645f; --edge: #d6d3d1; --good: #15803d; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --soft: #a3a3ad; --edge: #3f3f46; --good: #4ade80; --bad: #fca5a5; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
pre { overflow-x: auto; margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 14px/1.5 ui-monospace, monospace; }
summary { cursor: pointer; padding: .4rem 0; overflow-wrap: anywhere; }
details details { border: 1px solid var(--edge); border-radius: 8px; margin: .5rem 0; padding: 0 1rem; }
dl { margin: 0 0 1rem; }
dt { color: var(--soft); font-size: 14px; margin-top: .6rem; }
dd { margin: 0; }
.right { color: var(--good); }
.wrong { color: var(--bad); }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_report(evaluation: Evaluation, path: str | Path, *, title: str = "Evaluation") -> None:
    """Write the report of an evaluation to an HTML file, which is replaced as a whole.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        atomic_write(Path(path), render_report(evaluation, title=title).encode(errors="replace"))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}.") from error


def render_report(evaluation: Evaluation, *, title: str = "Evaluation") -> str:
    """Return the report of an evaluation as HTML: the table, then the wrong answers, then the right ones."""
    right = [score for score in evaluation.scores if score.right]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{plain(title)}</title>\n<style>{_STYLE}</style>",
            f"<main>\n<h1>{plain(title)}</h1>\n<pre>{plain(str(evaluation))}</pre>",
            _section("Wrong", "wrong", evaluation.wrong, is_open=True),
            *([_section("Errors", "wrong", evaluation.errors, is_open=True)] if evaluation.errors else []),
            _section("Right", "right", right, is_open=False),
            "</main>\n</html>\n",
        ]
    )


def _section(name: str, kind: str, scores: Sequence[Score], *, is_open: bool) -> str:
    cases = "\n".join(_case(score, is_open=is_open) for score in scores)
    head = f'<summary><strong class="{kind}">{name}: {len(scores)}</strong></summary>'
    return f"<details{_opened(is_open)}>{head}\n{cases}\n</details>"


def _opened(is_open: bool) -> str:
    return " open" if is_open else ""


def _case(score: Score, *, is_open: bool) -> str:
    parts = {
        "Expected": str(score.expectation),
        "Output": score.output,
        "Answer": score.answer,
        "Error" if score.status == "error" else "Verdict": f"{score.status}: {score.reason}",
        "Program": score.code,
        "Cost": f"{score.seconds:.1f} seconds, {score.usage.model_calls} model calls; id {score.id}",
    }
    rows = "\n".join(
        f"<dt>{name}</dt><dd><pre>{plain(text)}</pre></dd>" for name, text in parts.items() if text
    )
    return (
        f"<details{_opened(is_open)}><summary>{plain(score.query)}</summary>\n<dl>\n{rows}\n</dl>\n</details>"
    )
