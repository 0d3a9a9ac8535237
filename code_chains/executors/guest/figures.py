"""Figures of matplotlib as a notebook would show them: each that is shown, closed unsaved, or there at the end."""

from __future__ import annotations

import importlib.util
import io
import sys
import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.machinery import ModuleSpec
from typing import Any

PYPLOT = "matplotlib.pyplot"
MAX_SHOWN = 300


class Shown:
    """The figures of a program that were drawn for its reader.

    Attributes:
        images: Those that were shown so far, as PNG.
        seen: Figures that need not be drawn at the end: they were shown, or saved into a file.
        last: The figure that was shown last.
        keeps: Whether figures can be opened again once the program has ended.
        stay_open: Whether showing figures closes none, so that tests can look at them.
    """

    def __init__(self) -> None:
        self.images: list[bytes] = []
        self.seen = weakref.WeakSet[Any]()
        self.last: Any = None
        self.keeps = self.stay_open = False
        self._managers: list[Any] = []

    def draw(self, figure: Any) -> None:
        """Draw a figure, unless it is empty."""
        if len(self.images) < MAX_SHOWN and (figure.axes or figure.texts or figure.images):
            target = io.BytesIO()
            figure.savefig(target, format="png")
            self.images.append(target.getvalue())
        self.seen.add(figure)
        self.last = figure

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

    def take(self) -> list[bytes]:
        """Return the images, which are forgotten."""
        images, self.images = self.images, []
        return images


SHOWN = Shown()


class Finder:
    """Changes a module as soon as a program imports it."""

    def __init__(self, module: str, change: Callable[[Any], None]) -> None:
        self.module, self.change = module, change

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return how the module is loaded; None for all else."""
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_change(module: Any) -> None:
                load(module)
                self.change(module)

            spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


def on_import(module: str, change: Callable[[Any], None]) -> None:
    """Change a module, now or when it is imported."""
    if module in sys.modules:
        change(sys.modules[module])
    elif not any(getattr(finder, "module", None) == module for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder(module, change))


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
        SHOWN.seen.add(self.figure)
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
    """Return whether a value is a figure."""
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def all_images(names: Iterable[Any]) -> list[bytes]:
    """Return the figures that were shown, and draw those that pyplot has open or that variables hold, each once.

    Raises:
        Exception: A figure cannot be drawn.
    """
    pyplot = sys.modules.get(PYPLOT)
    if "matplotlib" not in sys.modules:
        return []
    opened = open_figures()
    SHOWN.draw_unseen([*opened, *filter(is_figure, list(names))])
    if pyplot is not None and opened:
        SHOWN.keep(opened)
        pyplot.close("all")
    return SHOWN.take()
