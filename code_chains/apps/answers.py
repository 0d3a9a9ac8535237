"""Answers as HTML: what a model phrased is Markdown, what a program printed is preformatted text."""

from __future__ import annotations

from code_chains.apps.safe_html import plain, render_markdown
from code_chains.inputs import shortened
from code_chains.records.screen import as_shown
from code_chains.state import Execution, Verdict
from code_chains.verification.quotes import MAX_QUOTE_CHARS, format_outcome


def render_answer(
    answer: str, *, output: str = "", execution: Execution | None = None, verdict: Verdict | None = None
) -> str:
    """Return an answer as HTML.

    `InterpretChain` quotes the program where the model's words may not be faithful to it, and returns its output if no
    model phrased it. Both stand on lines of their own; output within a sentence of the model is part of its Markdown.
    A quote is left out where the value is displayed above the answer.
    """
    if verdict is not None and not verdict.ok:  # The reason quotes an error of the program.
        return f"<p>{plain(answer)}</p>" if answer else ""
    printed = format_outcome({"output": output, "execution": execution})
    for quote in (printed, shortened(printed, MAX_QUOTE_CHARS), output):
        before, middle, after = answer.rpartition(quote) if quote.strip() else ("", "", "")
        phrased, _, last_line = before.rpartition("\n")
        if middle and after == ")" and last_line.startswith("("):
            if execution is not None and views_of(execution):
                return _markdown(phrased)
            label = f'<p class="hint">{plain(last_line[1:])}</p>'
            return f"{_markdown(phrased)}{label}{_preformatted(quote)}"
        if middle and not last_line.strip() and (not after or after.startswith("\n(")):
            return f"{_markdown(before)}{_preformatted(quote)}{_markdown(after)}"
    return _markdown(answer)


def views_of(execution: Execution) -> list[str]:
    """Return how the program's value displays itself as HTML."""
    return [one.data for one in execution.display_data if one.media_type == "text/html"]


def text_beside_views(execution: Execution) -> str:
    """Return what a person would have seen, without the text of a value that is displayed."""
    if not views_of(execution):
        return execution.output
    return as_shown(execution.stdout).rstrip().removesuffix((execution.result or "").rstrip()).rstrip()


def _preformatted(quote: str) -> str:
    return f'<pre class="printed">{plain(quote)}</pre>'


def _markdown(content: str) -> str:
    return render_markdown(content) if content.strip() else ""
