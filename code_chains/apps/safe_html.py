"""Untrusted text and Markdown as HTML in which no script runs."""

from __future__ import annotations

from collections.abc import MutableMapping
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from code_chains.inputs import shortened
from code_chains.records.printable import strip_control_chars

MAX_CHARS = 20_000
"""Maximum length of a text or program that is displayed in full."""
_MAX_MARKDOWN_CHARS = 8_000
_MAX_HTML_CHARS = 100_000


def plain(content: str) -> str:
    """Return text as HTML that displays it literally; a very long one is shortened."""
    return escape(strip_control_chars(shortened(content, MAX_CHARS)))


def render_markdown(content: str) -> str:
    """Render Markdown as HTML, without embedded HTML and images, and with links to the web only; of others the text is left.

    Content whose source or HTML is too long is displayed as its source.
    """
    html = _MARKDOWN.render(strip_control_chars(content)) if len(content) <= _MAX_MARKDOWN_CHARS else ""
    return html if 0 < len(html) <= _MAX_HTML_CHARS else f'<pre class="printed">{plain(content)}</pre>'


def _is_web_link(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _create_parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    markdown.validateLink = lambda _: True  # type: ignore[assignment]
    markdown.add_render_rule("link_open", _render_link)
    markdown.add_render_rule("fence", RendererHTML.code_block)  # Without the class that a fence names.
    return markdown


def _render_link(
    renderer: RendererHTML, tokens: Any, index: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    opening = tokens[index]
    if _is_web_link(opening.attrs.get("href", "")):
        opening.attrs.pop("title", None)
        opening.attrs.update(target="_blank", rel="noopener noreferrer nofollow")
    else:  # Invariant: no other address is in the HTML. Links do not nest.
        closing = next(token for token in tokens[index:] if token.type == "link_close")
        opening.tag = closing.tag = "span"
        opening.attrs.clear()
    return renderer.renderToken(tokens, index, options, env)


_MARKDOWN = _create_parser()
