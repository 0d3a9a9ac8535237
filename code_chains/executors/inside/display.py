"""What a notebook would draw: figures that are open at the end, and rich views of the last value."""

from __future__ import annotations

import base64
import contextlib
import io
import sys
from collections.abc import Iterator

from .wire import Json

View = tuple[str, str, bytes]

METHODS = (
    ("_repr_html_", "text/html", "html"),
    ("_repr_markdown_", "text/markdown", "md"),
    ("_repr_svg_", "image/svg+xml", "svg"),
    ("_repr_png_", "image/png", "png"),
    ("_repr_jpeg_", "image/jpeg", "jpg"),
    ("_repr_latex_", "text/x-latex", "tex"),
)
CHARTS = {"plotly": "application/vnd.plotly.v1+json", "altair": "application/vnd.vegalite.v5+json"}


def views(value: object, room: int) -> Json:
    """Figures and views that fit into `room` bytes, and whether some did not."""
    shown: list[Json] = []
    truncated = False
    for name, media_type, data in [*figures(), *rich(value)]:
        if len(data) > room:
            truncated = True
            continue
        room -= len(data)
        shown.append({"name": name, "media_type": media_type, "data": base64.b64encode(data).decode()})
    return {"views": shown, "truncated": truncated}


def figures() -> Iterator[View]:
    """Open matplotlib figures as PNG, also those that were never saved. They are closed: a session shows each once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        with contextlib.suppress(Exception):
            target = io.BytesIO()
            pyplot.figure(number).savefig(target, format="png")  # type: ignore[union-attr]
            yield f"figure-{number}.png", "image/png", target.getvalue()
            pyplot.close(number)  # type: ignore[union-attr]  # Shown once, as in a notebook.


def rich(value: object) -> Iterator[View]:
    """How a value wants to be shown, if it says so."""
    if value is None or isinstance(value, type):
        return
    library = type(value).__module__.partition(".")[0]
    if library in CHARTS and hasattr(value, "to_json"):
        with contextlib.suppress(Exception):
            yield "result.json", CHARTS[library], value.to_json().encode()
    for method, media_type, suffix in METHODS:
        with contextlib.suppress(Exception):
            view = getattr(value, method)()
            if isinstance(view, tuple):  # Data with its metadata.
                view = view[0]
            if isinstance(view, str | bytes) and view:
                yield f"result.{suffix}", media_type, view.encode() if isinstance(view, str) else view
