"""Lessons in a notebook: `%lesson loops.md`, then `%%lesson submit` and a program below it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from code_chains.apps.safe_html import plain, render_markdown
from code_chains.apps.terminal.learn import Learn, opened
from code_chains.callbacks.redaction import describe_error

_OF_CELLS = ("run", "check", "submit")
_WORDS = (*_OF_CELLS, "answer", "show", "hint", "next", "step", "undo", "restart", "forget")
_USAGE = "%lesson FILE opens a lesson; %%lesson run, check or submit with a program below it; %lesson hint"


@magics_class
class LessonMagics(Magics):
    """The magic `%%lesson`: one lesson at a time, with the same progress as at the terminal."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._open = ExitStack()
        self._learn: Learn | None = None
        self._is_program = False

    @line_cell_magic
    def lesson(self, line: str, cell: str | None = None) -> None:
        """Open the lesson in a file, or do what a word says: run, check, submit, hint, next; all else is a question."""
        words = line.split()
        try:
            if words and words[0].endswith(".md"):
                self._begin(words)
            else:
                self._do(line.strip(), cell)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(describe_error(error)) from error

    def _begin(self, words: list[str]) -> None:
        """Open a lesson; `-m MODEL` names a model."""
        self._open.close()
        self._learn, self._is_program = None, False
        model = words[2] if words[1:2] == ["-m"] and len(words) > 2 else None
        self._learn = self._open.enter_context(opened(Path(words[0]), model=model, say=self._show))
        self._learn.begin()

    def _do(self, line: str, cell: str | None) -> None:
        if self._learn is None or not line:
            raise UsageError(_USAGE)
        word = line.split()[0]
        self._is_program = word in _OF_CELLS
        if cell is not None and word not in _OF_CELLS:
            raise UsageError(f"Above a program write {', '.join(_OF_CELLS)}, not {word!r}.")
        if cell is not None:
            self._learn.write(cell)
        self._learn.handle(f"/{line}" if word in _WORDS else line)

    def _show(self, text: str) -> None:
        # What programs print is no Markdown.
        html = f"<pre>{plain(text)}</pre>" if self._is_program else render_markdown(text)
        display({"text/html": html, "text/plain": text}, raw=True)
