"""Documentation as snippets: sections of prose with their headings, from Markdown, reStructuredText, HTML and text."""

from __future__ import annotations

import importlib.util
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from langchain_core.documents import Document

PROSE = "text"
"""The `kind` in the metadata of a section of prose."""
MAX_SECTION_CHARS = 1500
"""A longer section is cut between paragraphs."""
_MIN_PROSE_CHARS = 200
"""Prose beside code, besides what the code is about, that is a snippet of its own."""
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\. (?:code-block|code|sourcecode|highlight)::\s*(\S*)")
_OTHER_DIRECTIVE = re.compile(r"\.\. (?:[\w-]+::.*|_.*|\[.*)")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def is_prose(document: Document) -> bool:
    """Return whether a snippet is a section of documentation, instead of a program."""
    return document.metadata.get("kind") == PROSE


@dataclass
class Section:
    """The prose below a heading.

    Attributes:
        headings: The heading, after those above it.
        line: Its line.
        paragraphs: The prose.
        has_code: Whether code stands in it.
        told: Characters of the prose that its code is about.
    """

    headings: Sequence[str] = ()
    line: int = 1
    paragraphs: list[str] = field(default_factory=list)
    has_code: bool = False
    told: int = 0

    @property
    def is_snippet(self) -> bool:
        """Whether the prose says more than what its code is about."""
        size = sum(map(len, self.paragraphs))
        return size - self.told >= _MIN_PROSE_CHARS if self.has_code else size > 0

    def parts(self) -> Iterator[str]:
        """Yield the prose in parts, each below its headings."""
        head, part = " > ".join(self.headings), ""
        for paragraph in map(str.strip, self.paragraphs):
            if part and len(part) + len(paragraph) > MAX_SECTION_CHARS:
                yield _below(head, part)
                part = ""
            part = f"{part}\n\n{paragraph}" if part else paragraph
        if part:
            yield _below(head, part)


def _below(head: str, text: str) -> str:
    return f"{head}\n\n{text}" if head else text


def decode(data: bytes, suffix: str) -> str | None:
    """Return the text of a file in whichever encoding it is; None if it is binary."""
    if data.startswith(_UTF16):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode(_encoding(data, suffix), errors="replace")


def _encoding(data: bytes, suffix: str) -> str:
    """Return what Python's own line says, or what the letters suggest."""
    if suffix in (".py", ".pyi"):
        try:
            return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError:
            return "cp1252"
    if importlib.util.find_spec("chardet") is None:
        return "cp1252"
    import chardet

    return str(chardet.detect(data)["encoding"] or "cp1252")


# -- to Markdown -------------------------------------------------------------------------------------------------------


def markdown_of_rst(text: str) -> str:
    """Return reStructuredText as Markdown, as far as it is headings, code and prose."""
    lines, levels, result = text.splitlines(), dict[str, int](), list[str]()
    number = 0
    while number < len(lines):
        line = lines[number]
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.fullmatch(line) and below.strip() and number + 2 < len(lines):
            number += 1  # A line above a heading, which has one below as well.
            continue
        if line.strip() and not line.startswith(" ") and _UNDERLINE.fullmatch(below) and len(below) >= 3:
            level = levels.setdefault(below[0], len(levels) + 1)
            result += [f"{'#' * min(level, 6)} {line.strip()}", ""]
            number += 2
            continue
        directive = _DIRECTIVE.match(line.strip())
        if directive or (line.rstrip().endswith("::") and not line.startswith("..")):
            if not directive:
                result.append(line.rstrip()[:-1])
            block, number = _indented(lines, number + 1, line)
            result += [f"\n```{directive[1] if directive else 'python'}", *block, "```\n"]
            continue
        if not _OTHER_DIRECTIVE.match(line.strip()):
            result.append(line.strip())
        number += 1
    return "\n".join(result)


def _indented(lines: Sequence[str], number: int, above: str) -> tuple[list[str], int]:
    """Return the block that is indented below a line, without its options, and the number of the line after it."""
    margin = len(above) - len(above.lstrip())
    block = list[str]()
    while number < len(lines):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        block.append(line)
        number += 1
    while block and (not block[0].strip() or re.match(r"\s+:[\w-]+:", block[0])):
        del block[0]
    indent = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
    return [line[indent:] for line in block], number


def markdown_of_html(text: str) -> str:
    """Return HTML as Markdown, as far as it is headings, code and prose."""
    reader = _Reader()
    # Invariant: the parser sees whole tags alone, as it searches the rest of the text for the end of each that has none.
    reader.feed(_NO_TAG.sub("&lt;", _without_comments(text)))
    reader.close()
    return "".join(reader.parts)


_DECLARATION = re.compile(r"<![a-z\[][^<>]*+>|<\?[^<>]*+>", re.IGNORECASE)
_NO_TAG = re.compile(r"<(?!/?+[a-z][a-z0-9:-]*+(?:[^<>\"']++|\"[^\"<>]*+\"|'[^'<>]*+')*+>)", re.IGNORECASE)
"""What opens no tag, or one that does not end."""


def _without_comments(text: str) -> str:
    """Return HTML without comments and declarations; nothing of what follows a comment that does not end."""
    first, *others = text.split("<!--")
    parts = [first, *(other.partition("-->")[2] for other in others)]
    return _DECLARATION.sub("", "".join(parts))


class _Reader(HTMLParser):
    """Collects the text of a page: no navigation, scripts or styles."""

    SKIPPED = ("title", "script", "style", "nav", "head", "footer", "template", "noscript", "svg")
    BLOCKS = ("p", "div", "li", "tr", "table", "section", "article", "ul", "ol", "dt", "dd", "blockquote")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._skipped: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a heading, a block, code, or what is left out."""
        if tag in self.SKIPPED:
            self._skipped.append(tag)
        elif tag == "pre":
            self._is_code = True
            self.parts.append(f"\n\n```{_language_of(attrs)}\n")
        elif tag == "code" and self._is_code and self.parts[-1] == "\n\n```\n":
            self.parts[-1] = f"\n\n```{_language_of(attrs)}\n"
        elif re.fullmatch("h[1-6]", tag):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in self.BLOCKS or tag == "br":
            self.parts.append("\n\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """End what was begun."""
        if tag in self._skipped:
            del self._skipped[self._skipped.index(tag) :]
        elif tag == "pre":
            self._is_code = False
            self.parts.append("\n```\n\n")
        elif tag in self.BLOCKS or re.fullmatch("h[1-6]", tag):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Add text."""
        if self._skipped:
            return
        self.parts.append(data if self._is_code else re.sub(r"\s+", " ", data))


def _language_of(attrs: list[tuple[str, str | None]]) -> str:
    """Return the language that the class of an element names."""
    classes = next((value or "" for name, value in attrs if name == "class"), "")
    match = re.search(r"(?:language|lang|highlight|source)-([\w+#-]+)", classes)
    return match[1] if match else ""


def paragraphs(text: str) -> Iterable[str]:
    """Return the paragraphs of a text."""
    return filter(str.strip, re.split(r"\n\s*\n", text))
