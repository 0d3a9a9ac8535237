"""Charts of libraries that draw in a browser, as files that open without the library and without a network."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
from collections.abc import Container, Iterator
from typing import Any

Form = tuple[str, str, bytes]
"""Suffix of a file, media type and data."""
MIN_ADDRESS_SPACE = 64 << 30
"""Bytes that V8 reserves, whatever it uses, with some left."""


def plotly(chart: Any) -> Iterator[Form]:
    """Yield the forms of a chart of Plotly: an image only where Kaleido, which starts a browser, is installed."""
    if importlib.util.find_spec("kaleido"):
        with contextlib.suppress(Exception):
            yield "png", "image/png", chart.to_image("png")
    yield "html", "text/html", chart.to_html(include_plotlyjs=True).encode()
    yield "json", "application/vnd.plotly.v1+json", chart.to_json().encode()


def altair(chart: Any) -> Iterator[Form]:
    """Yield the forms of a chart of Altair: without vl-convert its HTML loads scripts from the web."""
    is_inline = has_address_space() and importlib.util.find_spec("vl_convert") is not None
    if is_inline:
        image = io.BytesIO()
        chart.save(image, format="png")
        yield "png", "image/png", image.getvalue()
    yield "html", "text/html", chart.to_html(inline=is_inline).encode()
    yield "json", "application/vnd.vegalite+json", chart.to_json().encode()


def has_address_space() -> bool:
    """Return whether V8, which vl-convert brings, can start: with too little address space it ends the process."""
    try:
        import resource
    except ImportError:  # In WebAssembly, or on Windows.
        return False
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return limit == resource.RLIM_INFINITY or limit >= MIN_ADDRESS_SPACE


def bokeh(chart: Any) -> Iterator[Form]:
    """Yield the form of a chart of Bokeh, or write it where `output_file` says; for an image it would need a browser."""
    embed, resources, state = map(
        importlib.import_module, ("bokeh.embed", "bokeh.resources", "bokeh.io.state")
    )
    html = embed.file_html(chart, resources.INLINE, "").encode()
    if file := state.curstate().file:
        with open(file.filename, "wb") as target:
            target.write(html)
    else:
        yield "html", "text/html", html


FORMS = {
    ("plotly", "BaseFigure"): plotly,
    ("altair", "TopLevelMixin"): altair,
    ("bokeh", "LayoutDOM"): bokeh,
}
"""By library and base class, what draws a chart."""
SHOWING = {
    "plotly.io._renderers": ("", "show"),
    "altair.vegalite.v5.api": ("TopLevelMixin", "show", "display"),
    "altair.vegalite.v6.api": ("TopLevelMixin", "show", "display"),
    "bokeh.io.showing": ("", "show"),
    "PIL.Image": ("Image", "show"),
}
"""By module, the class and the functions that would open a window."""


def is_chart(value: object) -> bool:
    """Return whether a value is a chart of such a library."""
    return find_base(value, FORMS) is not None


def forms(chart: object) -> list[Form]:
    """Return a chart in each form that its library can make."""
    made: list[Form] = []
    if base := find_base(chart, FORMS):
        with contextlib.suppress(Exception):
            made.extend(FORMS[base](chart))  # Forms before one that fails stay.
    return made


def find_base(value: object, bases: Container[tuple[str, str]]) -> tuple[str, str] | None:
    """Return which of some base classes, by library and name, a value has; nothing is imported for it."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__)
    return next((kind for kind in kinds if kind in bases), None)


def follow(module: Any, show: Any) -> None:
    """Show where a notebook would what a module would open a window for."""
    owner, *names = SHOWING[module.__name__]
    for name in names:
        # Options of windows, renderers and browsers mean nothing here.
        setattr(getattr(module, owner) if owner else module, name, lambda chart, *_, **__: show(chart))
