"""Bytes -> text: which encoding a file is in, and whether that is certain."""

from __future__ import annotations

import codecs
import importlib.util
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Marks at the beginning; UTF-32 before UTF-16, whose mark is the beginning of its own."""
SEVEN_BIT = (
    ("iso2022_jp_2", re.compile(rb"\x1b\$"), True),
    ("iso2022_kr", re.compile(rb"\x1b\$\)C"), True),
    ("hz", re.compile(rb"~\{(?:[!-}][!-~]){1,99}~\}"), False),
    ("utf-7", re.compile(rb"\+[A-Za-z0-9/]{3,99}-"), False),
)
"""Encodings of ASCII characters, with what they all have, and whether no other text has it."""
ENCODINGS = (
    *("latin-1", "cp1252", "iso8859-15", "cp1250", "iso8859-2", "cp1251", "cp1253", "iso8859-7", "cp1254"),
    *("cp1255", "iso8859-8", "cp1256", "iso8859-6", "cp1257", "iso8859-13", "cp1258", "cp874", "cp932"),
    *("euc_jis_2004", "gb18030", "big5hkscs", "cp949", "koi8-r", "koi8-u", "cp866", "iso8859-5"),
    *("mac-cyrillic", "cp850", "cp437", "cp852", "cp857", "cp737", "cp862", "cp775", "cp865", "cp860"),
    "mac-roman",
)
"""Legacy encodings; of those that read a text in the same way the first is named."""
WESTERN = ENCODINGS[:2]
SEPARATORS = re.compile(rb"[^0-9@-\xff]+")
"""Bytes that are no part of a character of several bytes in any encoding."""
SYMBOLS = re.compile(
    r"(?:[\x00-\x7f]|(?<![A-Za-z])[\xa0§©«®°±²³µ·»¼½¾×£€™•–—](?![A-Za-z])|°[CF]\b|µ[mgl]\b|(?<=m)[²³]\b)*"
)
"""Text with usual symbols and no letters beyond ASCII, in the encodings of Western Europe."""
C1, OF_WINDOWS = (
    re.compile(r"[\x80-\x9f]"),
    {n: bytes([n]).decode("cp1252", "ignore") for n in range(128, 160)},
)
CONTROLS = re.compile(r"[\x00\x02-\x08\x0e-\x19\x1c-\x1e]")
"""What binary files have; U+0001 and U+001F separate fields in some tables."""
LETTER, LATIN, LOWER = r"[^\W\d_]", "A-Za-z\u00c0-\u024f\u1e00-\u1eff", "a-z\u00df-\u00ff"
ODD = re.compile(
    "[\x80-\x9f\u2500-\u25ff\ue000-\uf8ff\ufb00-\ufb06\ufffd]"
    rf"|[¢-ª¬®¯±-´¶¸-º¼-¾]{LETTER}"
    rf"|{LETTER}[^\w\x00-\x7f\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0e31-\u0e4e’·‐]{LETTER}"
    rf"|[\u0370-\u1dff][{LATIN}]|[{LOWER}][\u2e80-\uffdf]|[\u2e80-\uffdf][{LOWER}]|[A-Z][\u2e80-\uffdf][A-Z]"
    "|[a-zß-ÿά-ώа-џ][À-ÞΑ-ΩЀ-Я]|[A-ZÀ-Þ][À-Þ][a-zß-ÿ]|[\u00c0-\u024f]{4}"
)
"""What words hardly have: controls, boxes, symbols before or between letters, two scripts, capitals within, only accents."""
ALPHABETS = (
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüœß áäčďéěíľňóôřšťúůýž ąćęłńóśźż áéíóöőúüű áæéíðóöúýþ âîăşţșț ćčđšž âçîöûüğış\u0307 "
    "ąčėęįšūųž āčēģīķļņšūž äõöüšž àáâèéêìíòóôùúýăđơư\u0300\u0301\u0303\u0309\u0323 абвгдежзийклмнопрстуфхцчшщъыьэюяё "
    "абвгдежзийклмнопрстуфхцчшщьюяєіїґ αβγδεζηθικλμνξοπρςστυφχψωϊϋόύώάέήίΐΰ"
)
"""Letters beyond ASCII of Western Europe, where names travel, and of other languages whose letters share places."""
ODD_POWER, DOUBT, ENOUGH_WORDS = 8, 0.5, 6
"""How much odd words count; which part of the best score makes another reading a doubt, less for fewer words."""
MAX_ALTERNATIVES, MAX_SHOWN_CHARS = 3, 16
SAMPLED_BYTES, WINDOWS, WINDOW_BYTES, OVERLAP, MAX_WORDS = 1 << 18, 64, 1 << 12, 64, 4000
MAX_BROKEN_SHARES = (1 / 3, 0.05)
"""Which share of characters may be broken in UTF-8: where some words are not, and where all words are."""
MAX_CONTROLS, MAX_CONTROL_SHARE, MIN_CONFIDENCE = 3, 0.01, 0.002


@dataclass(frozen=True)
class Text:
    """Decoded text.

    Attributes:
        text: The text, without a byte order mark.
        encoding: Name of the encoding, for `open`.
        errors: How undecodable bytes are treated, for `open`.
        alternatives: Encodings that it may be in as well, which read it otherwise.
        notes: What is not certain or not right about it.
        is_mended: Whether characters of Windows that another program took for control characters are what they were.
    """

    text: str
    encoding: str
    errors: str = "strict"
    alternatives: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_mended: bool = False


class Reading(NamedTuple):
    """How words can be read."""

    score: float
    encoding: str
    text: str


def decode(data: bytes, *, is_complete: bool = True) -> Text | None:
    """Decode the beginning of a file, or all of it; None if it is binary."""
    if not is_complete:
        data = data[: max(map(data.rfind, (b"\n", b",", b" "))) + 1 or len(data)]
    text = _marked(data) or _utf8(data) or _by_words(data)
    beginning = text.text[:100_000].rstrip("\0")  # Logs are padded with it.
    if len(CONTROLS.findall(beginning)) > max(MAX_CONTROLS, MAX_CONTROL_SHARE * len(beginning)):
        return None
    notes = [f"NUL characters in it: {count:,}"] if (count := text.text.count("\0")) else []
    return _mended(replace(text, notes=(*text.notes, *notes)))


def _mended(text: Text) -> Text:
    """Return text in which quotes and dashes of Windows are no control characters, as which some programs write them."""
    may_be = text.encoding.startswith("utf") and not text.text.isascii()
    found = C1.findall(text.text) if may_be else []
    if not found:
        return text
    number = ord(found[0])
    note = f"{len(found):,} control characters such as U+{number:04X} are read as {OF_WINDOWS[number]!r}, as in Windows"
    return replace(text, text=text.text.translate(OF_WINDOWS), notes=(*text.notes, note), is_mended=True)


def _marked(data: bytes) -> Text | None:
    """Decode what a mark or its zeros show."""
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return _text(data, encoding)
    wide = _wide(data[:4096])
    return _text(data, wide) if wide else None


def _text(data: bytes, encoding: str, notes: Iterable[str] = (), alternatives: Iterable[str] = ()) -> Text:
    """Decode data; what is broken in it becomes a note."""
    try:
        text, errors = _decoded(data, encoding), "strict"
    except UnicodeDecodeError as error:
        text, errors = _decoded(data, encoding, "replace"), "replace"
        broken = text.count("\ufffd") - _decoded(data, encoding, "ignore").count("\ufffd")
        line = data.count(b"\n", 0, error.start) + 1
        notes = [
            f"characters that are not {encoding} become \ufffd: {broken:,}, first in line {line}",
            *notes,
        ]
    return Text(text.removeprefix("\ufeff"), encoding, errors, tuple(alternatives), tuple(notes))


def _decoded(data: bytes, encoding: str, errors: str = "strict") -> str:
    """Decode data, which may end within a character of UTF-16 or UTF-32."""
    final = not encoding.startswith(("utf-16", "utf-32"))
    return codecs.getincrementaldecoder(encoding)(errors).decode(data, final)


def _reads(data: bytes, encoding: str) -> str | None:
    """Return text; None if data is not in an encoding."""
    try:
        return _decoded(data, encoding)
    except UnicodeError:
        return None


def _wide(data: bytes) -> str | None:
    """Return the byte order of UTF-16 or UTF-32 without a mark, which has zeros at the same places."""
    counts = [data[place::4].count(0) for place in range(4)]
    for encoding, zeros, others in (
        ("utf-32-le", (2, 3), (0,)),
        ("utf-32-be", (0, 1), (3,)),
        ("utf-16-le", (1, 3), (0, 2)),
        ("utf-16-be", (0, 2), (1, 3)),
    ):
        found = min(counts[place] for place in zeros)
        if found > len(data) / 40 and max(counts[place] for place in others) < found / 10:
            text = _reads(data, encoding)
            if text and all(map(str.isprintable, "".join(text.split()))):
                return encoding
    return None


def _utf8(data: bytes) -> Text | None:
    """Decode UTF-8, of which ASCII is a part, and encodings that are made of ASCII; None if it is something else."""
    if not _is_utf8(data):
        return None
    for encoding, pattern, is_sure in SEVEN_BIT if data.isascii() else ():
        found = pattern.search(data, 0, SAMPLED_BYTES) and _reads(data, encoding)
        if found and not found.isascii():
            note = f"encoding {encoding} is not certain: the file may be plain ASCII"
            return _text(data, encoding) if is_sure else _text(data, encoding, [note], ["utf-8"])
    return _text(data, "utf-8")


def _by_words(data: bytes) -> Text:
    """Decode UTF-8 that is broken in places, or a legacy encoding."""
    words = _words(data)
    distinct = list(itertools.islice(dict.fromkeys(words), MAX_WORDS))
    legacy = list(itertools.filterfalse(_is_utf8, distinct))
    text = _decoded(b"\n".join(words), "utf-8", "replace")
    broken = text.count("\ufffd") / max(len(text) - len(text.encode("ascii", "ignore")), 1)
    if broken > MAX_BROKEN_SHARES[legacy == distinct]:
        mixed = ["some words are in utf-8, the others are not"] if len(legacy) < 0.9 * len(distinct) else []
        return _legacy(data, _readings(legacy), len(legacy), mixed)
    notes = []
    if len(legacy) > 1:
        best = _readings(legacy)[0]
        notes = [f'some words seem to be in {best.encoding}, such as "{_shown(best.text)}"']
    return _text(data, "utf-8", notes)


def _is_utf8(word: bytes) -> bool:
    return _reads(word, "utf-8") is not None


def _words(data: bytes) -> list[bytes]:
    """Return words beyond ASCII: all, or those of windows from all over the data."""
    if len(data) <= SAMPLED_BYTES:
        parts = SEPARATORS.split(data)
    else:
        windows = range(0, len(data), WINDOW_BYTES)
        starts = [start for start in windows if not data[start : start + WINDOW_BYTES].isascii()]
        parts = []
        for start in starts[:: len(starts) // WINDOWS + 1]:
            window = data[max(start - OVERLAP, 0) : start + WINDOW_BYTES + OVERLAP]
            parts += SEPARATORS.split(window)[1:-1] or [window]
    return list(itertools.filterfalse(bytes.isascii, parts))


def _legacy(data: bytes, readings: list[Reading], words: int, notes: list[str]) -> Text:
    """Decode data in the encoding that reads its words best; others that do nearly as well are a doubt."""
    best, *others = readings
    enough = best.score * DOUBT * min(words / ENOUGH_WORDS, 1)
    doubts = [other for other in others[:MAX_ALTERNATIVES] if other.score >= enough]
    if doubts:
        differences = "; ".join(map(partial(_difference, best), doubts))
        notes = [f"encoding {best.encoding} is not certain: {differences}", *notes]
    return _text(data, best.encoding, notes, map(attrgetter("encoding"), doubts))


def _readings(words: list[bytes]) -> list[Reading]:
    """Return how words can be read, best first."""
    joined, readings = b"\n".join(words), dict[str, Reading]()
    for encoding, confidence in _confidences(joined).items():
        text = _reads(joined, encoding)
        if text is None:
            continue
        texts = text.split("\n")
        if encoding in WESTERN and all(map(SYMBOLS.fullmatch, texts)):
            confidence = 1.0
        usual = (1 - sum(map(bool, map(ODD.search, texts))) / len(texts)) * _share_of_one_language(text)
        score = confidence * usual**ODD_POWER
        same = readings.setdefault(text, Reading(score, encoding, text))
        readings[text] = same._replace(score=max(same.score, score))
    return sorted(readings.values(), key=attrgetter("score"), reverse=True)


def _share_of_one_language(text: str) -> float:
    """Return which share of the letters of European scripts beyond ASCII the best alphabet has."""
    counts = Counter(re.findall("[\u00c0-\u058f]", text.lower()))
    shares = (sum(map(counts.__getitem__, alphabet)) for alphabet in ALPHABETS.split())
    return max(shares) / counts.total() if counts else 1.0


def _confidences(words: bytes) -> dict[str, float]:
    """Return how well encodings fit what is known of languages; all the same if chardet is not installed."""
    if importlib.util.find_spec("chardet") is None:
        return dict.fromkeys(ENCODINGS, 1.0)
    import chardet

    names = {codecs.lookup(encoding).name: encoding for encoding in ENCODINGS}
    found = chardet.detect_all(words, ignore_threshold=True, compat_names=False, include_encodings=names)
    known = {names.get(item["encoding"] or "", ""): item["confidence"] for item in found}
    return {encoding: max(known.get(encoding, 0.0), MIN_CONFIDENCE) for encoding in ENCODINGS}


def _difference(best: Reading, other: Reading) -> str:
    """Return the first word that another encoding would read otherwise."""
    pairs = zip(best.text.split("\n"), other.text.split("\n"), strict=True)
    word, reading = next(pair for pair in pairs if pair[0] != pair[1])
    places = (index for index, letter in enumerate(word) if not reading.startswith(letter, index))
    start = max(next(places, 0) - MAX_SHOWN_CHARS // 2, 0)
    return f'{other.encoding} would read "{_shown(reading[start:])}" instead of "{_shown(word[start:])}"'


def _shown(word: str) -> str:
    """Return the beginning of a word, without what cannot be printed."""
    return "".join(filter(str.isprintable, word.partition("\n")[0][:MAX_SHOWN_CHARS]))
