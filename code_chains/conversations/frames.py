"""Untrusted HTML in frames, for notebooks."""

from __future__ import annotations

from html import escape

_MAX_FRAME_CHARS = 2_000_000
_FRAME_STYLE = """<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>
body { margin: 2px 0; font: 13px/18px system-ui, sans-serif; color-scheme: light dark }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: 4px 12px; border: 0; border-bottom: 1px solid rgb(128 128 128 / 30%); text-align: right }
</style>"""


def framed(html: str, title: str) -> str:
    """Return untrusted HTML in a frame of its own: no script of it runs, and it loads nothing from elsewhere."""
    content = escape(_FRAME_STYLE + html[:_MAX_FRAME_CHARS], quote=True)
    style = f"width: 100%; height: {_frame_height(html)}px; border: 0"
    return f'<iframe sandbox title="{escape(title)}" style="{style}" srcdoc="{content}"></iframe>'


def _frame_height(html: str) -> int:
    """Estimate the height of a table in a frame, in pixels, as a frame cannot be measured; a higher one scrolls."""
    return min(420, 20 + 31 * html.count("<tr")) if "<tr" in html else 240
