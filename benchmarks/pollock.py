"""CSV files of government and research portals: what the line of a profile reads, beside other readers.

The files are those of Pollock (Vitagliano et al., VLDB 2023), `HPI-Information-Systems/Pollock` on GitHub, of which a folder
is given here: `survey_sample` has real files with a clean version of each, `polluted_files` one file with one thing wrong.

    python -m benchmarks.pollock FOLDER [--losing] [--polluted]

Files whose name has an even SHA-1 were developed with; the others only measure. A cell is right if it has the text of the
clean version, or the number or day that this text means. `--polluted` prints Pollock's own simple score, computed by the
benchmark's own code in the folder (it needs chardet, joblib, multiset, numpy and price-parser).
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click
import pandas as pd

from benchmarks.answers import table
from code_chains.executors import SandboxExecutor
from code_chains.profiles import FileProfiler

METRICS = "pollock.metrics"
"""A module in the folder."""
Rows = list[list[Any]]
HEAD = ("reader", "files", "header right", "rows right", "all right", "cells", "no table")
NOTHING = {"", "nan", "nat", "none", "<na>"}
_AMOUNT = re.compile(r"\(?[-+£$€]*[-+ ]*(\d[\d, ]*(?:\.\d+)?|\.\d+)(e[-+]?\d+)?[ %€]*\)?-?", re.IGNORECASE)
_NUMBER = re.compile(r"(?:column|col_)?\d+")
_NUMBERED = re.compile(r"(.*)\.\d+")
_DATES = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%y",
    "%d-%b-%Y",
    "%b-%y",
    "%d/%m/%y",
    "%m/%d/%y",
)


def meaning(cell: Any) -> str:
    """What a cell says: a number, a day whatever the order of day and month, or a text."""
    return _meaning(" ".join(str(cell).split()))


@lru_cache(1 << 20)
def _meaning(text: str) -> str:
    if text.lower() in NOTHING:
        return ""
    if match := _AMOUNT.fullmatch(text):
        sign = -1 if "-" in text.partition(match[1])[0] + text[-1] or text.startswith("(") else 1
        return f"{sign * float(re.sub('[, ]', '', match[1]) + (match[2] or '')):.9g}"
    if text.count(":") or text[-1].isdigit():
        with contextlib.suppress(ValueError):
            return _day(_moment(text))
    return text.casefold()


def _moment(text: str) -> datetime:
    day, _, time = text.partition(" ") if ":" in text else (text, "", "")
    for form in _DATES:
        with contextlib.suppress(ValueError):
            return datetime.combine(datetime.strptime(day, form), _time(time))
    return datetime.fromisoformat(text)


def _time(text: str) -> Any:
    return (
        datetime.strptime(text, "%H:%M:%S" if text.count(":") == 2 else "%H:%M").time()
        if text
        else datetime.min.time()
    )


def _day(moment: datetime) -> str:
    first, second = sorted((moment.day, moment.month))
    return f"{moment.year}-{first}-{second} {moment:%H:%M:%S}"


def frame_rows(frame: pd.DataFrame) -> Rows:
    """The rows of a frame, with its names as the first one."""
    return [list(frame.columns), *frame.astype(object).values.tolist()]


class Line:
    """The line of a profile: run as it is, and as texts if `as_text`."""

    def __init__(self, *, as_text: bool = False) -> None:
        self._profiler = FileProfiler(SandboxExecutor())
        self._as_text = as_text
        self.text = ""

    def __call__(self, path: Path) -> Rows:
        """Return the rows of a file."""
        self.text = self._profiler.profile({path.name: path}).get(path.name, "")
        lines = _suggested(self.text)
        if not lines:
            raise ValueError("no line")
        names: dict[str, Any] = {}
        with contextlib.chdir(path.parent):
            program = "\n".join(lines)
            if self._as_text:
                program = program.replace("import pandas as pd", "")
                names["pd"] = _Texts()
            exec(program, names)
        return frame_rows(names["df"])


def _suggested(profile: str) -> list[str]:
    _, found, rest = profile.partition("read it with:\n")
    lines = []
    for line in rest.splitlines() if found else []:
        if not line.startswith("    "):
            break
        lines.append(line.removeprefix("    "))
    return lines


class _Frame(pd.DataFrame):
    """A frame whose values stay what they are."""

    def assign(self, **_: Any) -> Any:
        return self


class _Texts:
    """What a line finds in place of pandas: its tables hold the texts of the file."""

    TYPES = ("dtype", "na_values", "keep_default_na", "parse_dates", "date_format", "decimal", "thousands")

    def read_csv(self, *args: Any, **options: Any) -> pd.DataFrame:
        kept = {name: value for name, value in options.items() if name not in self.TYPES}
        return _Frame(pd.read_csv(*args, **kept, dtype=str, keep_default_na=False))

    def __getattr__(self, name: str) -> Any:
        return getattr(pd, name)


def read_clever(path: Path) -> Rows:
    """CleverCSV: its dialect, and the texts that it reads."""
    return list(import_module("clevercsv").read_table(str(path)))


def read_duckdb(path: Path) -> Rows:
    """DuckDB's sniffer, and the texts that it reads."""
    found = import_module("duckdb").read_csv(str(path), all_varchar=True)
    return [found.columns, *map(list, found.fetchall())]


def readers() -> dict[str, Callable[[Path], Rows]]:
    """The contenders that are installed."""
    found: dict[str, Callable[[Path], Rows]] = {"suggested line": Line()}
    found |= {
        name: read for name, read in (("clevercsv", read_clever), ("duckdb", read_duckdb)) if find_spec(name)
    }
    found["pandas sep=None"] = lambda path: frame_rows(pd.read_csv(path, sep=None, engine="python"))
    found["pandas"] = lambda path: frame_rows(pd.read_csv(path))
    return found


class Score(NamedTuple):
    """How one file was read."""

    header: bool
    rows: bool
    cells: float
    is_read: bool = True

    @property
    def all(self) -> bool:
        """Whether header and all cells are right."""
        return self.header and self.rows and self.cells == 1


def score(clean: Rows, read: Rows, *, has_header: bool) -> Score:
    """Compare what was read with the clean version; of a file without a header the names of columns do not count."""
    expected, found = _counted(clean[1:]), _counted(read[1:])
    common = sum((expected & found).values())
    share = 2 * common / max(sum(expected.values()) + sum(found.values()), 1)
    rows = [row for row in clean[1:] if any(map(meaning, row))]
    filled = [row for row in read[1:] if any(map(meaning, row))]
    is_empty = not expected and not found
    is_right = _same_names(clean[0], read[0]) or (
        not has_header and all(map(_NUMBER.fullmatch, map(str, read[0])))
    )
    return Score(is_right, len(rows) == len(filled), 1.0 if is_empty else share)


def _counted(rows: Rows) -> Counter[str]:
    return Counter(text for row in rows for text in map(meaning, row) if text)


def _same_names(clean: Sequence[Any], read: Sequence[Any]) -> bool:
    return _names(clean) == _names(read)


def _names(names: Iterable[Any]) -> list[str]:
    """Names without what readers add: numbers of repeated ones, and names of nameless ones."""
    found = [" ".join(str(name).split()) for name in names]
    plain = [
        match[1] if (match := _NUMBERED.fullmatch(name)) and match[1] in found else name for name in found
    ]
    return [name.casefold() for name in plain if name and name != "nan" and not name.startswith("Unnamed: ")]


def read_clean(path: Path) -> Rows:
    """The rows of a clean version."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    return rows or [[]]


def measured(read: Callable[[Path], Rows], path: Path, clean: Rows, *, has_header: bool) -> Score:
    """Return the score of a reader."""
    if not any(clean):  # Of an empty file nothing can be read.
        return Score(True, True, 1.0)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return score(clean, read(path), has_header=has_header)
        except Exception:  # A reader that reads nothing is measured as well.
            return Score(False, False, 0.0, is_read=False)


def is_developed_with(name: str) -> bool:
    """Whether a file was looked at."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).digest()[-1] % 2 == 0


def line_of(name: str, scores: Sequence[Score]) -> tuple[object, ...]:
    """A line of the table."""
    if not scores:
        return (name, 0)
    cells = f"{statistics.fmean(one.cells for one in scores):.1%}"
    right = (
        sum(one.header for one in scores),
        sum(one.rows for one in scores),
        sum(one.all for one in scores),
    )
    return name, len(scores), *right, cells, sum(not one.is_read for one in scores)


def survey(folder: Path, *, losing: bool, half: str) -> None:
    """Measure the readers with real files."""
    csv.field_size_limit(sys.maxsize)
    names = sorted(
        path.name for path in (folder / "csv").iterdir() if (folder / "clean" / path.name).exists()
    )
    if half:
        names = [name for name in names if is_developed_with(name) == (half == "even")]
    contenders = readers()
    if losing:
        contenders = {"suggested line": contenders["suggested line"]}
    scores: dict[str, dict[str, Score]] = {reader: {} for reader in contenders}
    for name in names:
        clean = read_clean(folder / "clean" / name)
        parameters = json.loads((folder / "parameters" / f"{name}_parameters.json").read_text())
        for reader, read in contenders.items():
            scores[reader][name] = measured(
                read, folder / "csv" / name, clean, has_header=parameters["header_lines"] != "0"
            )
    for title, wanted in (("All files", (True, False)), ("Developed with", (True,)), ("Held out", (False,))):
        print(f"\n{title}:\n")
        table(HEAD, [line_of(reader, _part(ones, wanted)) for reader, ones in scores.items()])
    for name, one in scores["suggested line"].items() if losing else ():
        if not one.all:
            print(f"- {name}: header {one.header}, rows {one.rows}, cells {one.cells:.2%}")


def _part(scores: dict[str, Score], wanted: tuple[bool, ...]) -> list[Score]:
    return [one for name, one in scores.items() if is_developed_with(name) in wanted]


def polluted(folder: Path, half: str) -> None:
    """Print Pollock's simple score of the suggested line."""
    sys.path.insert(0, str(folder))
    measure = import_module(METRICS).header_record_cell_measures_csv
    line = Line(as_text=True)
    totals, losing, files = (
        [0.0] * 10,
        list[tuple[float, str]](),
        sorted((folder / "polluted_files" / "csv").glob("*.csv")),
    )
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "loaded.csv")
        for path in files:
            if half and is_developed_with(path.name) != (half == "even"):
                continue
            clean, results = folder / "polluted_files" / "clean" / path.name, (0.0,) * 10
            with contextlib.suppress(Exception), target.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(line(path))
                file.flush()
                results = (1.0, *measure(clean, target))
            totals = [total + result for total, result in zip(totals, results, strict=True)]
            losing.append((sum(results), path.name))
    parts = [total / len(losing) for total in totals]
    names = (
        "success",
        *(
            f"{what} {kind}"
            for what in ("header", "record", "cell")
            for kind in ("precision", "recall", "F1")
        ),
    )
    shown = [f"- {name}: {part:.2f} of 10" for part, name in sorted(losing)[:40] if part < 9.99]
    rows = [(name, f"{part:.4f}") for name, part in zip(names, parts, strict=True)]
    table(("measure", "mean"), rows)
    print("\n".join([f"Simple score: {sum(parts):.3f} of 10", *shown]))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--losing", is_flag=True, help="Only the suggested line, with the files that it reads wrongly.")
@click.option("--half", default="", help="`even` or `odd`: only these files.")
@click.option("--polluted", "is_polluted", is_flag=True, help="The polluted files instead.")
def main(folder: Path, losing: bool, half: str, is_polluted: bool) -> None:
    """Print the scores of readers."""
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    if is_polluted:
        polluted(folder, half)
        return
    survey(folder / "survey_sample", losing=losing, half=half)


if __name__ == "__main__":
    main()
