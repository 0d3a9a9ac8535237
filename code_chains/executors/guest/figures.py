"""Figures as a notebook would show them: each that is shown, and of matplotlib each that is closed or left unsaved."""

from __future__ import annotations

import importlib.util
import io
import sys
import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.machinery import ModuleSpec
from typing import Any

from . import charts

PYPLOT = "matplotlib.pyplot"
MAX_SHOWN = 300


class Shown:
    """The figures of a program that were drawn for its reader.

    Attributes:
        drawn: Those that were shown so far, each in one or more forms.
        seen: Figures that need not be drawn at the end: they were shown, or saved into a file.
        now: The ids of those of this run.
        last: The figure that was shown last.
        keeps: Whether figures can be opened again once the program has ended.
        stay_open: Whether showing figures closes none, so that tests can look at them.
    """

    def __init__(self) -> None:
        self.drawn: list[list[charts.Form]] = []
        self.seen = weakref.WeakSet[Any]()
        self.now: set[int] = set()
        self.last: Any = None
        self.keeps = self.stay_open = False
        self._managers: list[Any] = []

    def draw(self, figure: Any) -> None:
        """Draw a chart, or a figure unless it is empty."""
        if len(self.drawn) >= MAX_SHOWN:
            return
        if charts.is_chart(figure):
            forms = charts.forms(figure)
            is_same = figure is self.last and self.drawn and self.drawn[-1][-1:] == forms[-1:]
            self.drawn += [] if is_same else [forms]
        elif figure.axes or figure.texts or figure.images:
            target = io.BytesIO()
            figure.savefig(target, format="png")
            self.drawn.append([("png", "image/png", target.getvalue())])
        if is_figure(figure):
            self.mark(figure)
        self.last = figure

    def mark(self, figure: Any) -> None:
        """Note that a figure was shown or saved."""
        self.seen.add(figure)
        self.now.add(id(figure))

    def keep(self, figures: Iterable[Any]) -> None:
        """Keep figures that are about to be closed without being asked for."""
        if self.keeps:
            self._managers += [figure.canvas.manager for figure in figures]

    def reopen(self) -> None:
        """Let pyplot have the figures again that were kept, the last one as its current one."""
        if helpers := sys.modules.get("matplotlib._pylab_helpers"):
            for manager in self._managers:
                helpers.Gcf.set_active(manager)

    def draw_unseen(self, figures: Iterable[Any]) -> None:
        """Draw the figures that were neither shown nor saved."""
        for figure in figures:
            if figure not in self.seen:
                self.draw(figure)

    def take(self) -> list[list[charts.Form]]:
        """Return what was drawn, which is forgotten."""
        drawn, self.drawn, self.now = self.drawn, [], set()
        return drawn


SHOWN = Shown()


class Finder:
    """Changes modules as soon as a program imports them.

    Attributes:
        changes: By the name of a module, what is called with it.
    """

    def __init__(self) -> None:
        self.changes: dict[str, Callable[[Any], None]] = {}

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return how a module that is changed is loaded; None for all else."""
        change = self.changes.pop(name, None)
        spec = importlib.util.find_spec(name) if change else None
        if change and spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_change(module: Any) -> None:
                load(module)
                change(module)

            spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


FINDER = Finder()


def on_import(module: str, change: Callable[[Any], None]) -> None:
    """Change a module, now or when it is imported."""
    if module in sys.modules:
        change(sys.modules[module])
        return
    FINDER.changes[module] = change
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)


def follow(pyplot: Any) -> None:
    """Draw figures when they are shown, or closed unsaved."""
    if hasattr(pyplot.show, "__wrapped__"):
        return
    close, save, canvas = (
        pyplot.close,
        pyplot.savefig,
        sys.modules["matplotlib.backend_bases"].FigureCanvasBase,
    )
    print_figure = canvas.print_figure

    @wraps(pyplot.show)
    def show(*_: Any, **__: Any) -> None:
        opened = open_figures()
        SHOWN.draw_unseen(opened)
        SHOWN.keep(opened)
        if not SHOWN.stay_open:
            close("all")

    @wraps(close)
    def close_drawn(fig: Any = None) -> None:
        before = open_figures()
        close(fig)
        after = open_figures()
        SHOWN.draw_unseen(figure for figure in before if figure not in after)

    @wraps(save)
    def save_last(*args: Any, **options: Any) -> Any:
        # Who saves a figure after it was shown means that one, and no empty one.
        is_open = bool(pyplot.get_fignums()) or SHOWN.last is None
        return (save if is_open else SHOWN.last.savefig)(*args, **options)

    @wraps(print_figure)
    def print_and_mark(self: Any, *args: Any, **options: Any) -> Any:
        SHOWN.mark(self.figure)
        return print_figure(self, *args, **options)

    pyplot.show, pyplot.close, pyplot.savefig, canvas.print_figure = (
        show,
        close_drawn,
        save_last,
        print_and_mark,
    )


def open_figures() -> list[Any]:
    """Return the figures that pyplot has open."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return (
        [] if helpers is None else [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]
    )


def is_figure(value: object) -> bool:
    """Return whether a value is a figure of matplotlib."""
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def all_drawn(values: list[Any], names: Iterable[Any]) -> list[list[charts.Form]]:
    """Return what was shown, with the last values; draw figures that pyplot has open or that variables hold, each once.

    Raises:
        Exception: A figure cannot be drawn.
    """
    if "matplotlib" in sys.modules:
        opened = open_figures()
        SHOWN.draw_unseen([*opened, *filter(is_figure, [*values, *names])])
        for figure in filter(is_figure, values):  # One of an earlier run is asked for.
            if id(figure) not in SHOWN.now:
                SHOWN.draw(figure)
        if PYPLOT in sys.modules and opened:
            SHOWN.keep(opened)
            sys.modules[PYPLOT].close("all")
    for chart in filter(charts.is_chart, values):
        if not (SHOWN.drawn and chart is SHOWN.last):
            SHOWN.draw(chart)
    return SHOWN.take()
