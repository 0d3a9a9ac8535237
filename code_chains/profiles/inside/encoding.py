"""Bytes -> text: which encoding a file is in."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Marks at the beginning; UTF-32 before UTF-16, whose mark is the beginning of its own."""
MULTIBYTE = (
    ("shift_jis", re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uff01-\uff5e\u3000-\u303f]")),
    ("gb18030", re.compile(r"[\u4e00-\u9fff\uff01-\uff5e\u3000-\u303f]")),
    ("euc_kr", re.compile(r"[\uac00-\ud7a3]")),
)
CYRILLIC = re.compile(r"[а-яА-ЯёЁ]")
C1_CONTROLS = re.compile(rb"[\x80-\x9f]")
NON_ASCII = re.compile(rb"[\x80-\xff]")
HIGH_WORD = re.compile(rb"[\x80-\xff]{4,}")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x19\x1c-\x1f]")
MAX_BROKEN_SHARE = 0.05
"""Up to this share of characters beyond ASCII may be broken in a text that still counts as UTF-8."""
MAX_CONTROL_SHARE = 0.01
MAX_ACCENT_SHARE = 0.2
"""No text of a language with Latin letters has more bytes beyond ASCII."""


@dataclass(frozen=True)
class Text:
    """Decoded text.

    Attributes:
        text: The text, without a byte order mark.
        encoding: Name of the encoding, for `open`.
        errors: How undecodable bytes are treated, for `open`.
    """

    text: str
    encoding: str
    errors: str = "strict"


def decode(data: bytes) -> Text | None:
    """Decode the beginning of a file, or all of it; None if it is binary."""
    encoding = _encoding(data)
    errors = "strict"
    if encoding == "utf-8" and "\ufffd" in _decoded(data, "utf-8", "replace"):
        errors = "replace"
    text = _decoded(data, encoding, "replace")
    if len(CONTROLS.findall(text[:100_000])) > MAX_CONTROL_SHARE * len(text[:100_000]):
        return None
    return Text(text.removeprefix("\ufeff"), encoding, errors)


def _decoded(data: bytes, encoding: str, errors: str) -> str:
    """Decode data that may end within a character."""
    return codecs.getincrementaldecoder(encoding)(errors).decode(data)


def _encoding(data: bytes) -> str:
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return encoding
    if utf16 := _utf16(data[:4096]):
        return utf16
    if _is_utf8(data):
        return "utf-8"
    return _eight_bit(data)


def _utf16(data: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark, in which every other byte of Western text is zero."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if len(data) >= 8 and odd > len(data) * 0.3 and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if len(data) >= 8 and even > len(data) * 0.3 and odd < even / 10 else None


def _is_utf8(data: bytes) -> bool:
    try:
        _decoded(data, "utf-8", "strict")
    except UnicodeDecodeError:
        text = _decoded(data, "utf-8", "replace")
        broken = text.count("\ufffd")
        others = _count_non_ascii(text[:1_000_000]) - broken
        return others > 0 and broken <= MAX_BROKEN_SHARE * others
    return True


def _eight_bit(data: bytes) -> str:
    """Return the legacy encoding that data is most likely in; in doubt that of Western Europe."""
    sample = data[:200_000]
    high = len(NON_ASCII.findall(sample))
    in_words = sum(map(len, HIGH_WORD.findall(sample)))
    # In Western European text bytes beyond ASCII stand alone; in other scripts whole words consist of them.
    if in_words > high * 0.5 or high > len(sample) * MAX_ACCENT_SHARE:
        for encoding, letters in MULTIBYTE:
            if _share(sample, encoding, letters) > 0.9:
                return encoding
        if _share(sample, "cp1251", CYRILLIC) > 0.9:
            return "cp1251"
    if C1_CONTROLS.search(sample):
        return "cp1252" if _is_valid(data, "cp1252") else "latin-1"
    return "latin-1"


def _share(sample: bytes, encoding: str, letters: re.Pattern[str]) -> float:
    """Return which share of the characters beyond ASCII are letters of a script."""
    try:
        text = _decoded(sample, encoding, "strict")
    except UnicodeDecodeError:
        return 0.0
    return len(letters.findall(text)) / max(_count_non_ascii(text), 1)


def _count_non_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _is_valid(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
