"""Kinds of files that a library opens: the lines that read them, and what these lines say of a file."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .cells import profile_tables
from .columns import literal
from .database import describe_database
from .documents import frame_profile, missing_packages
from .frames import Json, plural
from .source import Source

MAX_BYTES, MAX_HEAD_BYTES, MAX_SHOWN = 50 << 20, 20_000, 12
MAX_PAGES, PAGE_SECONDS = 20, 0.4
"""Pages of which texts and tables are looked at, and the processor time for them."""
RUNS_CODE = "it may run code when it is opened"
REASONS = {"Password": "it has a password", "Python objects": RUNS_CODE}
"""Why a library does not open a file, by a word of its error."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        begins: How it begins; of an archive the names in it, one a line below `PK`.
        name: What it is called.
        lines: The lines that read it; in them NAME is its name, and TEXT what opens it as text. They leave a frame as
            `df`, or, in the last line, rows of texts as `tables`.
        packages: What the lines need.
        facts: The expressions of how much is in it, and nothing of that itself.
        shown: The expression of what it begins with.
        note: Why it is named and no more.
    """

    begins: bytes
    name: str
    lines: str = ""
    packages: str = ""
    facts: str = ""
    shown: str = "[]"
    note: str = ""


PDF = """
import pdfplumber
pdf = pdfplumber.open(NAME)
pages = [page.extract_text() or "" for page in pdf.pages]
tables = [table for page in pdf.pages for table in page.extract_tables()]
"""
PDF_FACTS = 'plural(len(pdf.pages), "page"), "" if any(pages) else "no text, as if it were scanned"'
PDF_SHOWN = (
    'filter(None, [str((pdf.metadata or {}).get("Title") or ""), *"\\n".join(pages[:2]).splitlines()])'
)
WORD = """
import docx
document = docx.Document(NAME)
paragraphs = [paragraph.text for paragraph in document.paragraphs]
tables = [[[cell.text for cell in row.cells] for row in table.rows] for table in document.tables]
"""
WORD_SHOWN = 'filter(str.strip, (f"{p.style.name}: {p.text}" for p in document.paragraphs))'
SLIDES = """
import zipfile, xml.etree.ElementTree as ET
archive = zipfile.ZipFile(NAME)
names = sorted((n for n in archive.namelist() if n.startswith("ppt/slides/slide")), key=lambda n: (len(n), n))
tag = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
slides = [["".join(p.itertext()) for p in ET.fromstring(archive.read(name)).iter(tag)] for name in names]
"""
OPEN_DOCUMENT = """
import zipfile, xml.etree.ElementTree as ET
root = ET.fromstring(zipfile.ZipFile(NAME).read("content.xml"))
paragraphs = ["".join(p.itertext()) for p in root.iter("{urn:oasis:names:tc:opendocument:xmlns:text:1.0}p")]
"""
H5 = 'import h5py\nfile = h5py.File(NAME, "r")\nnames = []\nfile.visit(names.append)'
H5_SHOWN = "(f\"{name}: {getattr(file[name], 'shape', 'group')}\" for name in names)"
NETCDF = "from scipy.io import netcdf_file\nfile = netcdf_file(NAME, mmap=False)"
MAIL = "import email, email.policy\nmessage = email.message_from_file(TEXT, policy=email.policy.default)"
SQL = """
import sqlite3
text = TEXT.read()
database = sqlite3.connect(":memory:")
database.executescript(text)
"""
SAS = 'import pandas as pd\ndf = pd.read_sas(NAME, format="{}", encoding="latin-1")'
KINDS = (
    Kind(rb".{0,1000}%PDF-", "PDF document", PDF, "pdfplumber", PDF_FACTS, PDF_SHOWN),
    Kind(
        rb"PK\n.*^word/document\.xml$",
        "Word document",
        WORD,
        "docx",
        'plural(len(paragraphs), "paragraph")',
        WORD_SHOWN,
    ),
    Kind(
        *(rb"PK\n.*^ppt/presentation\.xml$", "PowerPoint presentation", SLIDES, ""),
        *('plural(len(slides), "slide")', '(" / ".join(filter(None, slide)) for slide in slides)'),
    ),
    Kind(
        *(rb"PK\nmimetype\n.*^content\.xml$", "OpenDocument file", OPEN_DOCUMENT, ""),
        *('plural(len(paragraphs), "paragraph")', "filter(None, paragraphs)"),
    ),
    Kind(
        *(
            rb"PK\n(?:[^\n]+\.npy(?:\n|\Z))+\Z",
            "NumPy archive",
            "import numpy as np\narrays = np.load(NAME)",
            "numpy",
        ),
        *('plural(len(arrays), "array")', "arrays.files"),
    ),
    Kind(
        *(rb"\x93NUMPY", "NumPy array", 'import numpy as np\narray = np.load(NAME, mmap_mode="r")', "numpy"),
        'f"shape {array.shape}", f"type {array.dtype.type.__name__}"',
    ),
    Kind(rb"\x89HDF", "HDF5 or NetCDF file", H5, "h5py", 'plural(len(names), "group or data set")', H5_SHOWN),
    Kind(
        *(rb"CDF[\x01\x02]", "NetCDF file", NETCDF, "scipy", 'plural(len(file.variables), "variable")'),
        '(f"{name}: {each.shape}" for name, each in file.variables.items())',
    ),
    Kind(
        *(
            rb"<stata_dta>|[\x71-\x73][\x01\x02]\x01\0",
            "Stata file",
            "import pandas as pd\ndf = pd.read_stata(NAME)",
        ),
        "pandas",
    ),
    Kind(rb"\0{12}\xc2\xea\x81\x60", "SAS file", SAS.format("sas7bdat"), "pandas"),
    Kind(rb"HEADER RECORD\*+LIB", "SAS transport file", SAS.format("xport"), "pandas"),
    Kind(
        *(rb"RIFF....WAVE", "WAV audio", "import wave\nsound = wave.open(NAME)", ""),
        'f"{sound.getnframes() / sound.getframerate():.1f} seconds"',
    ),
    Kind(
        *(rb"(?i)(?=.{0,5000}^from: )(?=.{0,5000}^(?:subject|message-id): )[\w-]+: ", "mail", MAIL, "", ""),
        '(f"{key}: {message[key]}" for key in ("From", "Date", "Subject"))',
    ),
    Kind(
        *(
            rb"\s*BEGIN:VCALENDAR",
            "calendar",
            "text = TEXT.read()",
            "",
            'plural(text.count("BEGIN:VEVENT"), "event")',
        ),
        "text.splitlines()",
    ),
    Kind(
        rb"(?i)\s*(?:--|/\*|(?:set|pragma|begin|drop|use|create)\b)(?=.{0,9000}^(?:create table|insert into) )",
        *("SQL dump", SQL, "", 'plural(text.upper().count("CREATE TABLE"), "table")'),
        '(line for line in text.splitlines() if line.upper().startswith(("CREATE TABLE", "INSERT INTO")))',
    ),
    Kind(rb"\xd0\xcf\x11\xe0", "old Excel or Word file"),
    Kind(rb"\x7fELF", "program"),
    Kind(
        rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07",
        "7-Zip or RAR archive",
        note="the standard library does not open it",
    ),
    Kind(rb"\$FL[23]@\(#\)", "SPSS file", note="it needs pyreadstat"),
    Kind(rb"RD[XAB]\d\n|[XAB]\n\0\0\0", "R file", note="it needs pyreadr"),
    Kind(rb"\x80[\x02-\x05]", "pickle", note=RUNS_CODE),
    Kind(rb"II\*\0|MM\0\*", "TIFF image"),
    Kind(rb"....ftyp(?:avi[fs]|he[iv]|mi[fa])", "HEIC or AVIF image"),
    Kind(rb"....ftypM4A|ID3[\x02-\x04]|\xff[\xfa\xfb\xf3\xf2\xf1\xf9]|OggS\0|fLaC\0", "audio"),
    Kind(rb"....ftyp|\x1aE\xdf\xa3|RIFF....AVI ", "video"),
)


def profile_kind(source: Source, encoding: str, head: bytes = b"") -> Json | None:
    """Describe a file of a kind that is known by how it begins; None if it is of none.

    Args:
        source: The file.
        encoding: The encoding of its text.
        head: What it begins with, if that is not what is in it.
    """
    head = head or source.data[:MAX_HEAD_BYTES]
    for kind in KINDS:
        if re.match(kind.begins, head, re.DOTALL | re.MULTILINE):
            return _profile(source, encoding, kind)
    return None


def _profile(source: Source, encoding: str, kind: Kind) -> Json:
    profile: Json = {"format": kind.name, "facts": [], "read": []}
    notes = [*filter(None, [kind.note]), *missing_packages(*kind.packages.split())]
    if kind.lines and source.size > MAX_BYTES:
        notes.append(f"it is longer than {MAX_BYTES:,} bytes, so it was not looked at")
    if notes or not kind.lines:
        return profile | {"notes": notes}
    lines = kind.lines.strip().replace("NAME", literal(source.name)).replace("TEXT", source.opening(encoding))
    read = lines.splitlines()
    names: dict[str, Any] = {"plural": plural}
    try:
        _run(read, names)
        profile["facts"] = list(filter(None, eval(f"[{kind.facts}]", names)))  # noqa: S307
        shown = itertools.islice(eval(kind.shown, names), MAX_SHOWN)  # noqa: S307
        profile["first_rows"] = [str(line)[:200] for line in shown]
    except Exception as error:  # Each library has errors of its own.
        said = f"{error!r} {error}"
        why = next(
            (why for word, why in REASONS.items() if word in said),
            f"it cannot be read ({type(error).__name__})",
        )
        opened = [line for line in read if line.startswith("text = ")]
        begins = str(names.get("text", "")).splitlines()[:MAX_SHOWN]
        return profile | {"read": opened, "first_rows": begins, "notes": [f"it was not looked at, as {why}"]}
    if "database" in names:
        described = describe_database(names["database"], "database")
        for part in described["parts"]:
            part["read"] = [*read, *part.get("read", [])[1:]]
        return profile | described
    if "df" in names:
        return frame_profile(kind.name, names["df"], read[-1], len(names["df"]))
    if "limit" in names and names["limit"] < len(names["pdf"].pages):
        profile["notes"] = [f"only its first {plural(names['limit'], 'page')} were looked at for tables"]
    if "tables" not in names:
        return profile | {"read": read}
    return profile | {"read": read[:-1], "parts": profile_tables([*read[:-2], read[-1]], names)}


def _run(lines: Sequence[str], names: dict[str, Any]) -> None:
    """Run lines; those that go through the pages of a document look at its first ones."""
    for line in lines:
        if "pdf.pages" in line and "limit" not in names:
            names["limit"] = _count_pages(names["pdf"])
        exec(line.replace("pdf.pages", "pdf.pages[:limit]"), names)


def _count_pages(pdf: Any) -> int:
    """Return how many pages there is time for."""
    end = time.process_time() + PAGE_SECONDS
    for number, page in enumerate(pdf.pages[:MAX_PAGES]):
        if time.process_time() > end:
            return number
        page.extract_text()
    return min(len(pdf.pages), MAX_PAGES)
