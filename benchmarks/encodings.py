"""Which encoding a text file is in: tables in 30 languages, in each of the encodings that these were written in.

The words are in `data/encodings.jsonl`, in two halves: one to develop with, one that only this report uses. What counts is
the decoded text, not the name of an encoding.

Usage: python -m benchmarks.encodings [development|report]
"""

from __future__ import annotations

import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.corpora import read_corpus
from code_chains.profiles.inside.encoding import decode

SIZES = {"2 foreign words in 12 rows": (12, 2), "40 rows, some": (40, 16), "200 rows, all": (200, 200)}
"""Kinds of tables: the rows, and in how many of them are words of the language."""
PLAIN = ["alpha", "beta", "delta", "kappa", "lambda", "omega", "sigma", "theta", "total", "unit"]
VERDICTS = ("right", "doubted, with the right one", "doubted, without it", "wrong and certain")


def tables(words: list[str]) -> Iterator[tuple[str, str]]:
    """The kinds of tables with their text."""
    chance = random.Random(words[0])
    beyond_ascii = [word for word in words if not word.isascii()]
    for kind, (rows, foreign) in SIZES.items():
        names = words[:4] if foreign > 2 else ["name", "place", "item", "amount"]
        lines = [";".join(names)]
        for row in range(rows):
            known = words if foreign > 2 else beyond_ascii
            texts = chance.sample(known if row < foreign else PLAIN, 3)
            if foreign == 2:
                texts[1:] = chance.sample(PLAIN, 2)
            amount = f"{chance.randint(1, 9999)},{chance.randint(0, 99):02}"
            lines.append(";".join([*texts, amount]))
        yield kind, "\n".join(lines) + "\n"


def encoded(text: str, encoding: str) -> bytes:
    """The bytes of a text; the tones of Vietnamese as characters of their own where the encoding wants them so."""
    if encoding == "cp1258":
        text = "".join(map(_with_tone, unicodedata.normalize("NFC", text)))
    return text.encode(encoding)


def fits(word: str, encoding: str) -> bool:
    """Whether an encoding has all letters of a word."""
    try:
        encoded(word, encoding)
    except UnicodeEncodeError:
        return False
    return True


def _with_tone(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter)
    tones = "".join(mark for mark in parts if mark in "\u0300\u0301\u0303\u0309\u0323")
    base = "".join(mark for mark in parts if mark not in tones)
    return unicodedata.normalize("NFC", base) + tones


def verdict(data: bytes, encoding: str) -> str:
    """How a table is read, against the encoding that it was written in."""
    found = decode(data)
    if found is None:
        return VERDICTS[3]
    readings = [found.text, *(data.decode(other, "replace") for other in found.alternatives)]
    is_right = data.decode(encoding) in readings
    if not found.alternatives:
        return VERDICTS[0] if is_right else VERDICTS[3]
    return VERDICTS[1] if is_right else VERDICTS[2]


def count(entries: list[dict[str, Any]], half: str) -> dict[str, Counter[str]]:
    """How many tables of each kind had which verdict; those that went wrong are named on the error stream."""
    counts = {kind: Counter[str]() for kind in SIZES}
    for entry in entries:
        for encoding in entry["encodings"]:
            for kind, text in tables([word for word in entry[half] if fits(word, encoding)]):
                found = verdict(encoded(text, encoding), encoding)
                counts[kind][found] += 1
                if found in VERDICTS[2:]:
                    print(f"{entry['language']} in {encoding}, {kind}: {found}", file=sys.stderr)
    return counts


def main(half: str) -> None:
    """Measure and print the table."""
    counts = count(read_corpus("encodings"), half)
    print(f"| tables | {' | '.join(VERDICTS)} |")
    print(f"|---|{'---|' * len(VERDICTS)}")
    for kind, found in counts.items():
        print(f"| {kind} | {' | '.join(str(found[name]) for name in VERDICTS)} |")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "report")
