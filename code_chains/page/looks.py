"""Text, programs and Markdown as HTML in which nothing runs, whoever wrote them."""

from __future__ import annotations

from collections.abc import MutableMapping
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from code_chains.inputs import shortened
from code_chains.progress import harmless

__all__ = ["LONGEST", "listing", "plain", "typeset"]

LONGEST = 20_000
"""Characters of a program that are shown whole."""
_LONGEST_MARKDOWN = 8_000
_LONGEST_TYPESET = 100_000


def plain(content: str) -> str:
    """Text as HTML that shows it as it is, shortened where it is very long."""
    return escape(harmless(shortened(content, LONGEST)))


def listing(code: str, language: str | None = "python", line: int | None = None) -> str:
    """A program as HTML, with its numbered lines; one of them may be marked.

    Args:
        code: The program. A very long one is shortened, without colours and mark.
        language: Whose colours it has; None for none.
        line: The line to mark.
    """
    code = code.strip("\n")
    if len(code) > LONGEST:
        language = line = None
    body = plain(code) if language is None else _coloured(harmless(code), language)
    lines = [
        f'<span class="line{" wrong" if number == line else ""}">{one}\n</span>'
        for number, one in enumerate(body.split("\n"), 1)
    ]
    return f"<pre tabindex=0><code>{''.join(lines)}</code></pre>"


def _coloured(code: str, language: str) -> str:
    return str(highlight(code, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True))).rstrip("\n")


def typeset(content: str) -> str:
    """Markdown as HTML. It has no HTML of its own, no images, and links to the web only.

    What is too long, or becomes too much, is shown as it was written.
    """
    html = _MARKDOWN.render(harmless(content)) if len(content) <= _LONGEST_MARKDOWN else ""
    return html if 0 < len(html) <= _LONGEST_TYPESET else f'<pre class="printed">{plain(content)}</pre>'


def _is_of_the_web(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    markdown.validateLink = _is_of_the_web  # type: ignore[method-assign]
    markdown.add_render_rule("link_open", _link)
    markdown.add_render_rule("fence", RendererHTML.code_block)  # Without the class that a fence may name.
    return markdown


def _link(renderer: RendererHTML, tokens: Any, index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    tokens[index].attrs.pop("title", None)
    tokens[index].attrs.update(target="_blank", rel="noopener noreferrer nofollow")
    return renderer.renderToken(tokens, index, options, env)


_MARKDOWN = _markdown()
