"""HTML, XML, YAML, TOML and INI."""

from __future__ import annotations

import html
import importlib.util
import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from .cells import MAX_TABLES, has_header, profile_cells
from .columns import literal
from .documents import missing_packages, profile_value
from .encoding import Text
from .frames import Json, plural
from .source import Source

MAX_CHARS = 1_500_000
MAX_SETTINGS_CHARS, MAX_ITEMS = 400_000, 300_000
MAX_TAGS, MAX_NAMESPACE_CHARS = 30, 200
MAX_CHANGED = 3
ENTITIES = "it declares entities, which can expand without end, so it was not looked at"
ALIASES = "its aliases expand to very much, so it was not looked at"
TOML = "import tomllib\ndata = tomllib.loads(TEXT.read())"
INI = """
import configparser
config = configparser.ConfigParser(interpolation=None, strict=False)
config.read_string(TEXT.read())
data = {name: dict(config[name]) for name in config.sections()}
"""
YAML = "import yaml\ndata = yaml.load(TEXT, Loader=yaml.CSafeLoader)"
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*|<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body|table|div|meta|p|h\d)\b",
    re.I | re.S,
)
_WIDE_CELL = re.compile(r"(?:col|row)span\s*=\s*[\"']?\s*\+?0*[1-9]\d{3}", re.I)
"""A cell that spans thousands of columns or rows, each of which would be made."""
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.I)
_INI = re.compile(r"(?:[ \t]*(?:[#;].*)?\n)*(?:\[{1,2}[^\[\]\n]+\]{1,2}\s*(?:[#;].*)?\n|[\w.\"-]+\s*=)")
_YAML_LINE = re.compile(
    r"\s*(?:#.*|---.*|\.\.\.|%YAML.*|- .*|-|[\]\[{}|>&*].*"
    r"|(?:[^\s:#,;|{}\[\]\"'][^:,;|{}\[\]\"]{0,60}|\"[^\"]*\"):(?:\s.*)?)?"
)
_YAML_KEY = re.compile(r"^[^\s:#-][^:\n]{0,60}:(?=\s)", re.M)


def profile_html(source: Source, text: Text) -> Json | None:
    """Describe the tables of a page; None if it is none."""
    if not _HTML.match(text.text[:10_000]):
        return None
    opened = f"html = {source.opening(text.encoding, text.errors)}.read()"
    title = _TITLE.search(text.text[:100_000])
    shown = re.sub(r"(?s)<(script|style|title).*?</\1>|<[^>]{0,500}>", " ", text.text[:20_000])
    first = [f"title: {title[1].strip()}"] if title else []
    profile: Json = {"format": "HTML", "facts": [f"encoding {text.encoding}"], "read": [opened]}
    profile["first_rows"] = [*first, " ".join(html.unescape(shown).split())[:400]]
    if "<table" not in text.text.lower():
        return profile | {"facts": ["no tables", *profile["facts"]]}
    if notes := missing_packages("pandas", "lxml"):
        return profile | {"notes": notes}
    if len(text.text) > MAX_CHARS or not source.is_complete or _WIDE_CELL.search(text.text):
        return profile | {"notes": ["it or its cells are too long for its tables to be looked at"]}
    return profile | _html_tables(text, opened)


def _html_tables(text: Text, opened: str) -> Json:
    setup = [
        "import io, lxml.html",
        "import pandas as pd",
        opened,
        'tables = lxml.html.fromstring(html).xpath("//table")',
    ]
    names: dict[str, Any] = {}
    exec("\n".join(setup), names)
    parts = []
    for index, table in enumerate(names["tables"][:MAX_TABLES]):
        opened = f'io.StringIO(lxml.html.tostring(tables[{index}], encoding="unicode"))'
        call = f"pd.read_html({opened}, thousands=None, keep_default_na=False"
        try:
            width = eval(f"{call})[0].shape[1]", names)  # noqa: S307
            # Invariant: each cell is read as text, as this reader takes 1,5 for 15 and 007 for 7.
            call += f", converters=dict.fromkeys(range({width}), str)"
            header = bool(table.xpath(".//th")) or has_header(eval(f"{call}, header=0)[0]", names))  # noqa: S307
        except (ValueError, ImportError):  # It is empty, so that other parsers are asked for.
            continue
        call += ")[0]" if table.xpath(".//th") or not header else ", header=0)[0]"
        part = profile_cells(setup, call, names)
        parts.append(part | {"name": f"table {index + 1}", "may_lack_header": not header})
    facts = [plural(len(names["tables"]), "table"), f"encoding {text.encoding}"]
    return {"facts": facts, "parts": parts, "read": [] if parts else [opened]}


def profile_xml(source: Source, text: Text) -> Json | None:
    """Describe XML by its repeated elements; None if it is none."""
    if not re.match(r"\s*<[?!\w]", text.text):
        return None
    profile: Json = {"format": "XML", "facts": [f"encoding {text.encoding}"], "read": []}
    if "<!ENTITY" in text.text:
        return profile | {"notes": [ENTITIES]}
    parser: Any = ET.XMLPullParser(["start"])
    is_all = source.is_complete and len(text.text) <= MAX_CHARS
    try:
        parser.feed(text.text.lstrip()[:MAX_CHARS])
        if is_all:
            parser.close()
        root = next(parser.read_events())[1]
    except (ET.ParseError, StopIteration):
        return None
    if root.tag.rpartition("}")[2] == "svg":
        return {"format": "SVG image", "facts": [], "read": []}
    read = [
        "import xml.etree.ElementTree as ET",
        f"root = ET.fromstring({source.opening(text.encoding, text.errors)}.read())",
    ]
    tags = Counter(element.tag.rpartition("}")[2][:60] for element in root.iter()).most_common(MAX_TAGS)
    profile["structure"] = ", ".join(f"<{tag}> ({count:,})" for tag, count in tags)
    profile["hints"] = [] if is_all else ["it is long: elements and columns are those of its beginning"]
    return {**profile, "read": read, **_xml_records(read, root, is_all=is_all)}


def _xml_records(read: list[str], root: Any, *, is_all: bool) -> Json:
    """Describe the elements that are repeated most often beside each other; nothing if there are none."""
    tag, most = "", 1
    for parent in root.iter():
        if len(parent) > most:
            beside = Counter(child.tag for child in parent if len(child) or child.attrib)
            tag, most = max([(tag, most), *beside.items()], key=itemgetter(1))
    if not tag or importlib.util.find_spec("pandas") is None:
        return {}
    rows = f"rows = [{{**e.attrib, **{{c.tag.rpartition('}}')[2]: c.text for c in e}}}} for e in root.iter({literal(tag)})]"
    found = list(root.iter(tag))
    if not is_all:
        found.pop().tag = "cut off"
    names: dict[str, Any] = {"root": root}
    setup = ["import pandas as pd", rows]
    exec("\n".join(setup), names)
    part = profile_cells([*read, *setup], "pd.DataFrame(rows)", names)
    part["facts"][0] = part["facts"][0] if is_all else f"at least {part['facts'][0]}"
    notes = ["elements within the columns are left out"] if any(map(len, itertools.chain(*found))) else []
    if any(len({child.tag for child in element}) < len(element) for element in found):
        notes.append("of elements that stand several times in a row the last one is read")
    return part | {"notes": [*notes, *part["notes"]]}


def profile_settings(source: Source, text: Text) -> Json | None:
    """Describe TOML, INI or YAML; None if it is none of them."""
    if not source.is_complete or len(text.text) > MAX_SETTINGS_CHARS:
        return None
    readers = {"TOML": TOML, "INI": INI} if _INI.match(f"{text.text}\n") else {"YAML": YAML}
    if "YAML" in readers and not _is_yaml(source, text.text):
        return None
    for kind, lines in readers.items():
        read = lines.strip().replace("TEXT", source.opening(text.encoding, text.errors)).splitlines()
        names: dict[str, Any] = {"TEXT": io.StringIO(text.text)}
        try:
            exec(lines, names)
        except Exception as error:  # It is something else.
            del error
            continue
        if _is_endless(names["data"]):
            return {"format": kind, "facts": [], "read": [], "notes": [ALIASES]}
        is_whole = kind != "YAML" or len(names["data"]) >= len(_YAML_KEY.findall(text.text))
        if names["data"] and isinstance(names["data"], dict | list) and is_whole:
            profile = profile_value(kind, names["data"], read, [f"encoding {text.encoding}"])
            changed = _changed_scalars(names["data"], text.text) if kind == "YAML" else []
            return profile | {"notes": [*profile.get("notes", []), *changed]}
    return None


def _changed_scalars(value: Any, text: str) -> list[str]:
    """Return a note on what YAML takes for something else than it says: `NO`, `010`, `12:30`."""
    import yaml

    changed = []
    for written, read in _scalars(yaml.load(text, Loader=yaml.BaseLoader), value):  # noqa: S506 - it makes texts alone
        is_word = isinstance(read, bool) and written.lower() not in ("true", "false")
        if is_word or (type(read) in (int, float) and not _is_same_number(written, read)):
            changed.append(f"{written} as {read}")
    if not changed:
        return []
    shown = ", ".join(dict.fromkeys(changed[:MAX_CHANGED]))
    return [f"without quotes YAML reads {shown}: use Loader=yaml.BaseLoader if they are texts"]


def _scalars(written: Any, read: Any) -> Iterator[tuple[str, Any]]:
    """Pair scalars as they are written with what was read; what was merged into a mapping is left out."""
    pending = [(written, read)]
    while pending:
        text, value = pending.pop()
        if isinstance(text, str):
            yield text, value
        elif isinstance(text, list) and isinstance(value, list):
            pending += zip(reversed(text), reversed(value), strict=True)
        elif isinstance(text, dict) and isinstance(value, dict) and len(text) == len(value):
            for one, other in zip(reversed(text.items()), reversed(value.items()), strict=True):
                pending += reversed(list(zip(one, other, strict=True)))


def _is_same_number(written: str, read: float) -> bool:
    """Return whether a number is what anybody would read, and no code that loses its zeros."""
    try:
        is_code = len(written) > 1 and written[0] == "0" and written.isdecimal()
        return not is_code and (float(written) == read or read != read)
    except ValueError:
        return read in (float("inf"), float("-inf")) or written.startswith(("0x", "0o")) or read != read


def _is_yaml(source: Source, text: str) -> bool:
    if importlib.util.find_spec("yaml") is None or source.suffix in (".yaml", ".yml"):
        return importlib.util.find_spec("yaml") is not None
    lines = text.splitlines()
    return len(lines) > 1 and all(map(_YAML_LINE.fullmatch, lines[:2000])) and ":" in text


def _is_endless(value: Any) -> bool:
    """Return whether a value has very many items, as its parts stand in it again and again."""
    pending, count = [value], 0
    while pending and count <= MAX_ITEMS:
        item = pending.pop()
        count += 1
        if isinstance(item, dict | list):
            pending += item.values() if isinstance(item, dict) else item
    return count > MAX_ITEMS
