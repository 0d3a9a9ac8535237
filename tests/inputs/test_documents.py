"""Documents, markup and archives: the suggested lines read what is in them, and why something is not read is said."""

from __future__ import annotations

import gc
import io
import json
import pickle
import tarfile
import wave
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from code_chains.profiles.inside.program import profile_file
from code_chains.profiles.report import notes_of, render_profile

pytest.importorskip("pandas")
# The suggested lines leave closing to the end of the program, as people write them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PEOPLE = "name;n\nAnn;1,5\nBob;2,5\n"
NOT_INSTALLED = {"PDF document": "pdfplumber", "Word document": "docx", "HTML": "lxml"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    gc.collect()  # Files that are closed now warn no other test.


def profiled(name: str, content: str | bytes) -> Any:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return profile_file(name)


def rows_of(profile: Any) -> list[list[Any]]:
    """Return the rows of the first table that the suggested lines read."""
    names: dict[str, Any] = {}
    exec("\n".join((profile.get("parts") or [profile])[0]["read"]), names)
    frame = names["df"]
    return [list(map(str, frame.columns)), *frame.astype(object).where(frame.notna(), None).values.tolist()]


def zipped(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    return buffer.getvalue()


def pdf(*pages: list[list[str]]) -> bytes:
    """Return a PDF with a ruled table on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    numbers = [4 + 2 * index for index in range(len(pages))]
    kids = " ".join(map("{} 0 R".format, numbers))
    objects.append(f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] /MediaBox [0 0 600 800] >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, rows in zip(numbers, pages, strict=True):
        drawn = [
            f"{50 + 90 * x} {700 - 20 * y} 90 20 re S BT /F 9 Tf {54 + 90 * x} {706 - 20 * y} Td ({cell}) Tj ET"
            for y, row in enumerate(rows)
            for x, cell in enumerate(row)
        ]
        stream = "\n".join(drawn).encode()
        fonts = f"/Resources << /Font << /F 3 0 R >> >> /Contents {number + 1} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {fonts} >>".encode())
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = "".join(map("{:010d} 00000 n \n".format, places))
    end = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(places) + 1} /Root 1 0 R >>"
    return body + f"{end}\nstartxref\n{len(body)}\n%%EOF".encode()


def word(*tables: list[list[str]]) -> bytes:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Sales", 1)
    for rows in tables:
        table = document.add_table(len(rows), len(rows[0]))
        for y, row in enumerate(rows):
            for x, cell in enumerate(row):
                table.cell(y, x).text = cell
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


HEAD = [["City", "People"], ["Bonn", "1,234"]]
ROWS = [["City", "People"], ["Bonn", 1234], ["New York", 5678]]
READ: dict[str, Any] = {
    "a PDF": ("pdfplumber", lambda: pdf([*HEAD, ["New York", "5,678"]]), ROWS),
    "a PDF below empty lines": ("pdfplumber", lambda: b"\n\n" + pdf([*HEAD, ["New York", "5,678"]]), ROWS),
    "a table that goes on with its header": ("pdfplumber", lambda: pdf(HEAD, [HEAD[0], ["New York", "5,678"]]), ROWS),
    "a table that goes on without its header": ("pdfplumber", lambda: pdf(HEAD, [["New York", "5,678"]]), ROWS),
    "a table of values alone": ("pdfplumber", lambda: pdf([["a", "1"], ["b", "2"]]), [["0", "1"], ["a", 1], ["b", 2]]),
    "a table of Word": ("docx", lambda: word([*HEAD, ["New York", "5,678"]]), ROWS),
    "HTML": ("lxml", lambda: "<html><table><tr><th>x<th>zip<tr><td>1.234,5<td>007<tr><td>2.234,75<td>008</table>",
             [["x", "zip"], [1234.5, "007"], [2234.75, "008"]]),
    "HTML without names": ("lxml", lambda: "<table><tr><td>a<td>n<tr><td>x<td>1</table>", [["a", "n"], ["x", 1]]),
    "merged cells of HTML": ("lxml", lambda: "<table><tr><th>a<th>b<tr><td rowspan=2>1<td>2<tr><td>3</table>",
                             [["a", "b"], [1, 2], [1, 3]]),
    "XML": ("", lambda: "<r><e id='1'><t>x</t></e><e id='2'><t>y</t></e></r>", [["id", "t"], [1, "x"], [2, "y"]]),
    "XML with a namespace": ("", lambda: "<r xmlns='a:b'><e><t>1</t></e><e><t>2</t></e></r>", [["t"], [1], [2]]),
    "XML in UTF-16": ("", lambda: "<?xml version='1.0' encoding='utf-16'?><r><e a='1'/><e a='2'/></r>".encode("utf-16"),
                      [["a"], [1], [2]]),
    "YAML": ("yaml", lambda: "x: 1\nrows:\n  - a: 1\n    b: x\n  - a: 2\n    b: y\n", [["a", "b"], [1, "x"], [2, "y"]]),
    "TOML": ("", lambda: "[[rows]]\na = 1\n[[rows]]\na = 2\n", [["a"], [1], [2]]),
    "psql": ("", lambda: " id | name  | n\n----+-------+-------\n  1 | Ann B | 1,234\n  2 |       |    56\n(2 rows)\n",
             [["id", "name", "n"], [1, "Ann B", 1234], [2, None, 56]]),
    "mysql": ("", lambda: "+----+------+\n| id | name |\n+----+------+\n|  1 | A B  |\n|  2 | NULL |\n+----+------+\n",
              [["id", "name"], [1, "A B"], [2, None]]),
    "Markdown": ("", lambda: "# Title\n\n| City | n |\n|:--|--:|\n| Bonn | 1 |\n| Ulm | 22 |\n\nText.\n",
                 [["City", "n"], ["Bonn", 1], ["Ulm", 22]]),
    "a grid": ("", lambda: "+---+---+\n| a | b |\n+===+===+\n| x | 1 |\n+---+---+\n| y | 2 |\n+---+---+\n",
               [["a", "b"], ["x", 1], ["y", 2]]),
    "fixed width": ("", lambda: "Name         City of birth   Amount\nAnn Smith    New York         12.50\n"
                    "Bob          Ulm             100.00\nCy Young     San Jose          7.25\n",
                    [["Name", "City of birth", "Amount"], ["Ann Smith", "New York", 12.5], ["Bob", "Ulm", 100],
                     ["Cy Young", "San Jose", 7.25]]),
    "fixed width below a title, with a rule": (
        "", lambda: "Report\nName      Units sold\n----      ----------\n"
        "Ann Lee           12\nBob              100\nCy                 7\n",
        [["Name", "Units sold"], ["Ann Lee", 12], ["Bob", 100], ["Cy", 7]]),
    "fixed width whose columns touch": (
        "", lambda: "ID   NAME      AGE CITY    \n0001 SMITH JOHN 34 LONDON  \n0002 JONES MARY 29 PARIS   \n"
        "0003 BROWN ANNE 41 BERLIN  \n",
        [["ID", "NAME", "AGE", "CITY"], ["0001", "SMITH JOHN", 34, "LONDON"], ["0002", "JONES MARY", 29, "PARIS"],
         ["0003", "BROWN ANNE", 41, "BERLIN"]]),
    "fixed width within a letter": (
        "", lambda: "Dear all,\n\nplease find them:\n\nName       Jan   Feb\nAnn         10    12\nBo           7     8\n"
        "Cy           3     5\n\nBest regards,\nDi\n",
        [["Name", "Jan", "Feb"], ["Ann", 10, 12], ["Bo", 7, 8], ["Cy", 3, 5]]),
    "fixed width with units and a gap": (
        "", lambda: "Date        Temp  Wind\n            degC  m/s\n2024-01-01   3.2   4.1\n2024-01-02   1.0   7.5\n",
        [["Date", "Temp", "Wind"], [datetime(2024, 1, 1), 3.2, 4.1], [datetime(2024, 1, 2), 1, 7.5]]),
    "fixed width on two pages": (
        "", lambda: "Name     Points\nAnn          10\nBo           20\n\f\nName     Points\nCy           30\n",
        [["Name", "Points"], ["Ann", 10], ["Bo", 20], ["Cy", 30]]),
    "fixed width without a name of the first column": (
        "", lambda: "      name  points\n0    Ann L      93\n1       Bo      71\n2       Cy      88\n",
        [["Unnamed: 0", "name", "points"], [0, "Ann L", 93], [1, "Bo", 71], [2, "Cy", 88]]),
    "a list of processes": (
        "", lambda: "USER  PID    VSZ   RSS COMMAND\nroot    1 168140 11340 /sbin/init splash\n"
        "anna 1822 3923400 331200 firefox -new-window\nanna 2290  11788  5460 bash\n",
        [["USER", "PID", "VSZ", "RSS", "COMMAND"], ["root", 1, 168140, 11340, "/sbin/init splash"],
         ["anna", 1822, 3923400, 331200, "firefox -new-window"], ["anna", 2290, 11788, 5460, "bash"]]),
    "a list with lines of dashes": (
        "", lambda: "Report\n------------\n| a | n     |\n------------\n| x | 1,5   |\n| y | 2,25  |\n------------\n",
        [["a", "n"], ["x", 1.5], ["y", 2.25]]),
    "rows of JSON": ("", lambda: '[["city", "n"], ["Oslo", 3], ["Rome", 5]]', [["city", "n"], ["Oslo", 3], ["Rome", 5]]),
    "objects of JSON in several lines": (
        "", lambda: '{\n "a": "}{",\n "n": 1\n}\n{\n "a": "y",\n "n": 2\n}\n', [["a", "n"], ["}{", 1], ["y", 2]]),
    "a dump of SQL": (
        "", lambda: "CREATE TABLE t (a INT, b TEXT);\nINSERT INTO t VALUES (1, 'x'), (2, 'y');\n",
        [["a", "b"], [1, "x"], [2, "y"]]),
    "a CSV in a ZIP": ("", lambda: zipped({"in.csv": PEOPLE}), [["name", "n"], ["Ann", 1.5], ["Bob", 2.5]]),
    "one of two files in a ZIP": ("", lambda: zipped({"a b.csv": PEOPLE, "x.txt": "hi"}),
                                  [["name", "n"], ["Ann", 1.5], ["Bob", 2.5]]),
    "JSON in a ZIP": ("", lambda: zipped({"a.json": '[{"a": 1}]', "b.txt": ""}), [["a"], [1]]),
    "a ZIP with a path out of the folder": ("", lambda: zipped({"../../a\n.csv": PEOPLE}),
                                            [["name", "n"], ["Ann", 1.5], ["Bob", 2.5]]),
    "a TAR": ("", lambda: tarred({"a.csv": PEOPLE, "d/b.csv": PEOPLE}), [["name", "n"], ["Ann", 1.5], ["Bob", 2.5]]),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
@pytest.mark.parametrize("name", ["a.txt", "it's.zip"])
def test_the_first_table_is_read(case: str, name: str) -> None:
    library, content, rows = READ[case]
    if library:
        pytest.importorskip(library)
    if case.startswith("YAML") and name == "it's.zip":
        pytest.skip("without a suffix")
    assert rows_of(profiled(name, content())) == rows


SAID: dict[str, Any] = {
    "a broken PDF": ("pdfplumber", lambda: pdf(HEAD)[:200], "it cannot be read"),
    "a scan": ("pdfplumber", lambda: pdf([]), "no text, as if it were scanned"),
    "entities": ("", lambda: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "it declares entities"),
    "aliases": ("yaml", lambda: "a: &a [x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    ), "its aliases expand"),
    "Norway": ("yaml", lambda: "- country: NO\n  zip: 010\n- country: SE\n  zip: 77\n", "reads NO as False, 010 as 8"),
    "times in YAML": ("yaml", lambda: "start: 12:30\nend: x\n", "reads 12:30 as 750"),
    "a pickle": ("", lambda: pickle.dumps([1]), "it may run code"),
    "a password": ("", lambda: zipped({"a.csv": PEOPLE}).replace(
        b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"), "it has a password"),
    "a large file in a ZIP": ("", lambda: zipped({"a.csv": b"0" * (21 << 20)}), "a.csv (22,020,096 bytes)"),
    "a ZIP in a ZIP": ("", lambda: zipped({"b.zip": zipped({"a.csv": PEOPLE})}), "b.zip ("),
    "text around a table": ("", lambda: "Title\n\n|a|b|\n|-|-|\n|x|1|\n|y|2|\n", "1 line of text left out"),
    "repeated elements": ("", lambda: "<r><e><a>1</a><a>2</a></e><e><a>3</a></e></r>", "the last one is read"),
    "GeoJSON": ("", lambda: json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": 1}}]}),
        "`geometry.type` (text: Point), `geometry.coordinates` (list), `properties.n`"),
    "keys that stand twice": ("", lambda: '[{"a": 1, "a": 3}, {"a": 4}]', 'such as "a", the last one is read'),
    "a total of HTML": ("lxml", lambda: "<table><tr><th>i<th>n<tr><td>a<td>1<tr><td>b<td>2<tfoot><tr><td>Total<td>3</table>",
                        "1 row is a total among details"),
    "a notebook": ("", lambda: '{"cells": [{"cell_type": "code"}], "nbformat": 4}', "notebook), encoding utf-8, 1 record"),
    "a calendar": ("", lambda: "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n", "calendar, 1 event"),
    "mail": ("", lambda: "From: a@b.c\nTo: d@e.f\nSubject: Hello\n\nBody\n", "Subject: Hello"),
    "a dump": ("", lambda: "-- a dump\nCREATE TABLE t (a INT, b TEXT);\nINSERT INTO t VALUES (1, 'x');\n",
               "SQL dump, 1 table or view"),
    "a dump of MySQL": ("", lambda: "-- a dump\nCREATE TABLE t (a INT, KEY (a)) ENGINE=InnoDB;\n",
                        "it cannot be read (OperationalError)"),
    "the beginning of a dump": ("", lambda: "-- a\nCREATE TABLE t (a INT, KEY (a)) ENGINE=X;\n", "    CREATE TABLE t"),
    "few rows of columns without names": (
        "", lambda: "2024-01-05 INFO  main - Started\n2024-01-06 ERROR db - Refused\n2024-01-07 INFO  main - Done\n",
        "where its columns begin is not certain"),
    "the words of a list of processes": (
        "", lambda: "PID  RSS CMD\n1 168140 init x\n22 9 sh\n33 7 a b\n", "what is beyond 2 words"),
    "a cell that spans millions": ("lxml", lambda: "<table><tr><td colspan=100000000>a</table>", "are too long"),
    "HTML without tables": ("", lambda: "<html><title>Page</title><p>Some &amp; text</html>", "Some & text"),
    "slides": ("", lambda: zipped({"ppt/presentation.xml": "", **{f"ppt/slides/slide{n}.xml": (
        f'<a:p xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">S{n}</a:p>') for n in (1, 10, 2)}}),
        "3 slides"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_in_a_file_or_why_it_is_not_read_is_said(case: str) -> None:
    library, content, said = SAID[case]
    if library:
        pytest.importorskip(library)
    assert said in str(render_profile("", profiled("a.bin", content()), schema_only=False, max_chars=2500))


TEXTS = {
    "questions": "Q: one\nA: two\nQ: three\nA: four\n",
    "prose": "The quick brown fox\njumps over the lazy dog\nand then it was 5 o'clock\nin the evening.\n",
    "bars": "|" * 1_000_000 + "x\n" + "-" * 1_000_000,
    "empty lines": "\n" * 20_000 + "x y z",
    "names that are hardly arrays": "PK\n" + ".npy" * 4000 + "x",
    "a program": "import os\n\ndef f(x):\n    return x + 1\n",
    "settings without sections": "key=value\nother=2\n",
    "cut off XML": "<a><b x='1'/>",
    "deep YAML": "a: " + "[" * 20_000,
    "a call in YAML": "a: !!python/object/apply:os.system ['true']\n",
}


@pytest.mark.parametrize("case", TEXTS)
def test_what_is_nothing_else_is_text(case: str) -> None:
    assert profiled("a.txt", TEXTS[case])["format"] == "text"


@pytest.mark.parametrize(
    "word", ["ID3", "OggS", "Rar!", "PK", "BM", "CDF", "From: x", "$FL2", "create table"]
)
def test_a_table_whose_header_begins_like_another_kind_is_a_table(word: str) -> None:
    assert rows_of(profiled("a.csv", f"{word},b\n1,2\n3,4\n")) == [[word, "b"], [1, 2], [3, 4]]


SECRETS: dict[str, str] = {
    "YAML": "secret:\n  name: secret\n  also: secret\n",
    "XML": "<r><e secret='1'/><e secret='2'/></r>",
    "mail": "From: secret@b.c\nSubject: secret\n\nsecret\n",
    "HTML": "<html><title>secret</title><table><tr><td>secret<td>x<tr><td>secret<td>y</table>",
}


@pytest.mark.parametrize("case", SECRETS)
def test_a_schema_holds_nothing_of_a_document(case: str) -> None:
    profile = profiled("a.bin", SECRETS[case])
    assert profile["format"] == case
    assert "secret" not in str(render_profile("", profile, schema_only=True, max_chars=2500))


def test_a_schema_of_an_archive_holds_no_values() -> None:
    profile = profiled(
        "a.zip",
        zipped({"a.json": '[{"secret": 1}]', "b.csv": "secret 1,secret 2\nx,y\n", "secret.bin": b"\0"}),
    )
    assert "secret" not in str(render_profile("", profile, schema_only=True, max_chars=2500)).replace(
        "`secret 1` (text), `secret 2`", ""
    )


@pytest.mark.parametrize("kind", NOT_INSTALLED)
def test_what_is_not_installed_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contents: dict[str, str | bytes] = {
        "PDF document": pdf(HEAD),
        "Word document": zipped({"word/document.xml": ""}),
        "HTML": "<table><tr><td>a</table>",
    }
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert NOT_INSTALLED[kind] in notes_of("a", profiled("a", contents[kind]))[0]


def test_sound_is_named_with_its_length() -> None:
    with wave.open("a.wav", "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"\0\0" * 16_000)
    assert profile_file("a.wav")["facts"] == ["2.0 seconds"]  # type: ignore[index]


def test_arrays_are_named_with_their_shape_and_objects_are_not_opened() -> None:
    numpy = pytest.importorskip("numpy")
    numpy.save("a.npy", numpy.zeros((3, 4)))
    numpy.save("b.npy", numpy.array([{}]), allow_pickle=True)
    assert profile_file("a.npy")["facts"] == ["shape (3, 4)", "type float64"]  # type: ignore[index]
    assert "may run code" in notes_of("b.npy", profile_file("b.npy"))[0]
