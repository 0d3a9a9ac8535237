"""Untrusted text, Markdown and tables as HTML in which no script runs."""

from __future__ import annotations

from collections.abc import MutableMapping
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from code_chains.callbacks.redaction import strip_control_chars
from code_chains.inputs import shortened

__all__ = ["MAX_CHARS", "frame_height", "framed", "plain", "render_markdown"]

MAX_CHARS = 20_000
"""Maximum length of a text or program that is displayed in full."""
_MAX_MARKDOWN_CHARS = 8_000
_MAX_HTML_CHARS = 100_000
_MAX_FRAME_CHARS = 2_000_000
_FRAME_STYLE = """<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>
body { margin: 2px 0; font: 13px/18px system-ui, sans-serif; color-scheme: light dark }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: 4px 12px; border: 0; border-bottom: 1px solid rgb(128 128 128 / 30%); text-align: right }
</style>"""


def plain(content: str) -> str:
    """Return text as HTML that displays it literally; a very long one is shortened."""
    return escape(strip_control_chars(shortened(content, MAX_CHARS)))


def framed(html: str, title: str) -> str:
    """Return untrusted HTML in a frame of its own: no script of it runs, and it loads nothing from elsewhere."""
    content = escape(_FRAME_STYLE + html[:_MAX_FRAME_CHARS], quote=True)
    style = f"width: 100%; height: {frame_height(html)}px; border: 0"
    return f'<iframe sandbox title="{escape(title)}" style="{style}" srcdoc="{content}"></iframe>'


def frame_height(html: str) -> int:
    """Estimate the height of a table in a frame, in pixels, as a frame cannot be measured; a higher one scrolls."""
    return min(420, 20 + 31 * html.count("<tr")) if "<tr" in html else 240


def render_markdown(content: str) -> str:
    """Render Markdown as HTML, without embedded HTML and images, and with links to the web only.

    Content whose source or HTML is too long is displayed as its source.
    """
    html = _MARKDOWN.render(strip_control_chars(content)) if len(content) <= _MAX_MARKDOWN_CHARS else ""
    return html if 0 < len(html) <= _MAX_HTML_CHARS else f'<pre class="printed">{plain(content)}</pre>'


def _is_web_link(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _create_parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    markdown.validateLink = _is_web_link  # type: ignore[method-assign]
    markdown.add_render_rule("link_open", _render_link)
    markdown.add_render_rule("fence", RendererHTML.code_block)  # Without the class that a fence names.
    return markdown


def _render_link(
    renderer: RendererHTML, tokens: Any, index: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    tokens[index].attrs.pop("title", None)
    tokens[index].attrs.update(target="_blank", rel="noopener noreferrer nofollow")
    return renderer.renderToken(tokens, index, options, env)


_MARKDOWN = _create_parser()
