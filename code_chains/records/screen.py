"""Text as a terminal would show it: what carriage returns and backspaces overwrite is gone, and colours are left out."""

from __future__ import annotations

import re
from itertools import islice

MAX_COLUMNS = 1000
"""Moves take the cursor no further to the right, as on a wide screen; what is written may be longer."""
MAX_CONTROLS = 100_000
"""After so many control sequences others do nothing."""
MAX_BLANKS = 200_000
"""So many characters, and four for each that was printed, may be blanks that the cursor left behind."""
_SPECIAL = re.compile(r"[\x1b\b\x07\x7f]")
_CONTROL = re.compile(
    r"\x1b\[(?P<arguments>[0-9;?]*)(?P<command>[ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?|\r+|[\b\n\x07\x7f]"
)
_MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0), "G": (0, 0)}
"""By how many rows and columns a control sequence moves the cursor."""


def as_shown(text: str) -> str:
    """Return what is on the screen once a program has written a text, in time that grows with its length."""
    if not _SPECIAL.search(text):
        return "\n".join(map(_last_frame, text.split("\n"))) if "\r" in text else text
    screen, position = _Screen(MAX_BLANKS + 4 * len(text)), 0
    for control in islice(_CONTROL.finditer(text), MAX_CONTROLS):
        screen.write(text[position : control.start()])
        screen.control(control[0], control["command"], control["arguments"] or "")
        position = control.end()
    screen.write(_CONTROL.sub(_only_lines, text[position:]))
    return screen.text()


def _only_lines(control: re.Match[str]) -> str:
    return control[0] if control[0] == "\n" else ""


def _last_frame(line: str) -> str:
    """Return what is left of frames that overwrite each other."""
    shown = ""
    for frame in reversed(line.split("\r")):
        shown += frame[len(shown) :]
    return shown


class _Screen:
    """Lines, and where the next character is written."""

    def __init__(self, blanks: int) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._blanks = blanks

    def write(self, text: str) -> None:
        line = self._lines[self._row]
        if text and (gap := self._column - len(line)) > 0:
            line += " " * self._affordable(gap)
            self._column = len(line)
        line[self._column : self._column + len(text)] = text
        self._column += len(text)

    def control(self, control: str, command: str | None, arguments: str) -> None:
        """Move the cursor, or erase; what only colours, or asks a terminal for something, does nothing."""
        if control[0] in "\n\r":
            self._move(control == "\n", -self._column)
        elif control == "\b":
            self._move(0, -1)
        elif command in _MOVES:
            rows, columns = _MOVES[command]
            count = _number(arguments)
            self._move(min(rows * count, len(self._lines) - 1 - self._row), columns * count)
            self._column = {"E": 0, "F": 0, "G": count - 1}.get(command, self._column)
        elif command == "K":
            self._erase(arguments)
        elif command == "J" and arguments in ("2", "3"):
            self._lines, self._row, self._column = [[]], 0, 0

    def _move(self, rows: int, columns: int) -> None:
        self._row = max(0, self._row + rows)
        self._column = max(0, min(self._column + columns, max(self._column, MAX_COLUMNS)))
        while self._row >= len(self._lines):
            self._lines.append([])

    def _erase(self, arguments: str) -> None:
        line = self._lines[self._row]
        if arguments in ("", "0"):
            del line[self._column :]
        elif arguments == "2":
            line.clear()
        else:
            count = min(self._column, len(line))
            line[:count] = " " * self._affordable(count)

    def _affordable(self, blanks: int) -> int:
        """Return how many of some blanks may still be made. Invariant: all of them are bounded by what was printed."""
        blanks = min(blanks, self._blanks)
        self._blanks -= blanks
        return blanks

    def text(self) -> str:
        return "\n".join(
            "".join(line).rstrip() if line[-1:] == [" "] else "".join(line) for line in self._lines
        )


def _number(arguments: str) -> int:
    """Return the first argument of a control sequence, which is 1 if it is left out."""
    digits = arguments.split(";")[0]
    return max(1, min(int(digits[:9]), MAX_COLUMNS)) if digits.isdecimal() else 1
