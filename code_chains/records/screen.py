"""Text as a terminal would show it: what carriage returns and backspaces overwrite is gone, and colours are left out."""

from __future__ import annotations

import re

MAX_COLUMNS = 100_000
"""The cursor goes no further to the right than this, as blanks would fill what is before it."""
_CONTROL = re.compile(
    r"\x1b\[(?P<arguments>[0-9;?]*)(?P<command>[ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?|[\r\b\n\x07\x7f]"
)
_MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0), "G": (0, 0)}
"""By how many rows and columns a control sequence moves the cursor."""


def as_shown(text: str) -> str:
    """Return what is on the screen once a program has written a text."""
    if not re.search(r"[\x1b\r\b\x07\x7f]", text):
        return text
    screen, position = _Screen(), 0
    for control in _CONTROL.finditer(text):
        screen.write(text[position : control.start()])
        screen.control(control[0], control["command"], control["arguments"] or "")
        position = control.end()
    screen.write(text[position:])
    return screen.text()


class _Screen:
    """Lines, and where the next character is written."""

    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0

    def write(self, text: str) -> None:
        line = self._lines[self._row]
        line += " " * (self._column - len(line) if text else 0)
        line[self._column : self._column + len(text)] = text
        self._column += len(text)

    def control(self, control: str, command: str | None, arguments: str) -> None:
        """Move the cursor, or erase; what only colours, or asks a terminal for something, does nothing."""
        if control in ("\n", "\r"):
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
        self._column = min(max(0, self._column + columns), MAX_COLUMNS)
        while self._row >= len(self._lines):
            self._lines.append([])

    def _erase(self, arguments: str) -> None:
        line = self._lines[self._row]
        if arguments in ("", "0"):
            del line[self._column :]
        elif arguments == "2":
            line.clear()
        else:
            line[: self._column] = " " * min(self._column, len(line))

    def text(self) -> str:
        return "\n".join(
            "".join(line).rstrip() if line[-1:] == [" "] else "".join(line) for line in self._lines
        )


def _number(arguments: str) -> int:
    """Return the first argument of a control sequence, which is 1 if it is left out."""
    digits = arguments.split(";")[0]
    return min(int(digits), MAX_COLUMNS) if digits.isdigit() and digits != "0" else 1
