"""Programs as HTML with numbered lines."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from code_chains.apps.safe_html import MAX_CHARS, plain
from code_chains.records.printable import escape_invisible


def listing(code: str, language: str | None = "python", line: int | None = None) -> str:
    """Return a program as HTML with numbered lines.

    Args:
        code: The program; invisible characters are shown as escapes. A very long one is shortened, and neither
            highlighted nor marked.
        language: The language for syntax highlighting; None for none.
        line: The line to mark as the one that failed.
    """
    # Invariant: who approves a program has seen all of it, also what fonts show nothing of.
    code = escape_invisible(code.replace("\r\n", "\n").strip("\n"))
    if len(code) > MAX_CHARS:
        language = line = None
    body = plain(code) if language is None else _highlight(code, language)
    lines = ""
    for number, content in enumerate(body.split("\n"), 1):
        classes = "line wrong" if number == line else "line"
        lines += f'<span class="{classes}">{content}\n</span>'
    return f"<pre tabindex=0><code>{lines}</code></pre>"


def _highlight(code: str, language: str) -> str:
    return str(
        highlight(code, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True))
    ).rstrip("\n")
