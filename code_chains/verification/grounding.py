"""Grounding: whether an answer states the numbers of the output, and none of its own."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence

from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, pattern, vocabulary
from code_chains.verification.number_words import numbers_in_words, stated_in_words
from code_chains.verification.numbers import NUMBER, Number, normalized, readings, values_in
from code_chains.verification.values.rounding import asked_decimals

MAX_TOKENS = 10_000
_ITEM = re.compile(r"^[^\S\n]*\d{1,2}[.)]\s", re.MULTILINE)
_MAX_RESULTS = 3
_MAX_DOUBTFUL = 500
_GLUED = re.compile(r"(?<![A-Za-z_])(\d)(?=[^\W\d_])")
_VERSION = re.compile(r"(?<![\w.])(\d{1,9})\.(\d{1,9})(?:\.\d+)+(?![\w])")
_WORDS = vocabulary("grounding")
_PERCENT = pattern(_WORDS["percent"])
_PERCENT_BEFORE = pattern(_WORDS["percent_before"])
_MULTIPLIERS = {times: either(words) for times, words in _WORDS["multipliers"]}
"""Words that multiply the number before them."""
_MULTIPLES = [(times, re.compile(rf"\s*(?:{words})", re.IGNORECASE)) for times, words in _MULTIPLIERS.items()]
_ABOUT = pattern(_WORDS["about"])
_FALLING = pattern(_WORDS["falling"])
_AFTERNOON = re.compile(r"(?::\d\d){0,2}\s*p\.?\s?m\b", re.IGNORECASE)
_MIDNIGHT = re.compile(r"(?::\d\d){0,2}\s*a\.?\s?m\b", re.IGNORECASE)
_BELOW = re.compile(r"\s?[/⁄]\s?(\d{1,9})(?![\d.])")
_ABOVE = re.compile(r"(?<![\d.])(\d{1,9})\s?[/⁄]\s?$")
_BARE = re.compile(r"[\s\d.,;:()\[\]]*")
_CONTEXT_CHARS = 40
_MAX_COUNT = 20
_MAX_WORDS, _MAX_WORDS_CHARS = 4, 200
_TRANSLATED = frozenset(_WORDS["translated"].split())
_MIN_ROUNDED = 100


class _SourceNumbers:
    """The numbers in the sources of an answer, sorted for binary search."""

    def __init__(self, sources: Sequence[str]) -> None:
        self.values: list[float] = []
        for text in map(normalized, sources):
            self.values += values_in(text, MAX_TOKENS)
            for version in _VERSION.finditer(text):
                self.values += [float(version[1]), float(f"{version[1]}.{version[2]}")]
        self.values.sort()
        self.counts = _count_items(sources[0]) if sources else frozenset[int]()

    def has(self, value: float, half: float = 0.0) -> bool:
        """Return whether such a number exists, up to what it was rounded by."""
        start = bisect.bisect_left(self.values, value - half)
        return start < len(self.values) and self.values[start] <= value + half


def unsupported_numbers(answer: str, *sources: str) -> list[str]:
    """Return the numbers of an answer that occur in none of its sources, however they are read.

    They may be rounded, a percentage, in thousands or millions, a time of the afternoon, or the number of
    lines or items of the first source. Words such as "about" or "fell by" increase the tolerance.

    Example:
        >>> unsupported_numbers("It is 2.67, not 3.", "Mean: 2.6666666")
        ['3']
    """
    numbers = _SourceNumbers(sources)
    fewest: list[str] | None = None
    for reading in readings(_ITEM.sub("", answer)):
        unsupported = [text for text, is_supported in _check_numbers(reading, numbers) if not is_supported]
        if not unsupported:
            return []
        if fewest is None or len(unsupported) < len(fewest):
            fewest = unsupported
    return fewest or []


def multiplied_numbers(answer: str, *sources: str) -> list[str]:
    """Return what an answer multiplies by a word to a number that no source has.

    Example:
        >>> multiplied_numbers("15 million, or fifteen thousand.", "15"), multiplied_numbers("15 thousand", "15021")
        (['15 million', '15000'], [])
    """
    numbers, found = _SourceNumbers(sources), []
    for match in itertools.islice(NUMBER.finditer(answer), MAX_TOKENS):
        number, half = Number(match[0]), 0.5000001 * _last_unit(match[0])
        after = answer[match.end() : match.end() + _CONTEXT_CHARS]
        for times, words in _MULTIPLES:
            word = words.match(after)
            if word is not None and not numbers.has(number.value * times, half * times):
                found.append(f"{match[0]}{word[0]}")
    stated = max(stated_in_words(answer), default=0.0)
    if stated > _MAX_COUNT and not numbers.has(stated) and any(map(numbers.has, numbers_in_words(answer))):
        found.append(f"{stated:g}")
    return [text for text in found if not any(text in source for source in sources)]


def places_of_numbers(answer: str, output: str, limit: int) -> dict[str, int | None]:
    r"""Return the line of an output, from 1, that has each of the first numbers of an answer; None if none has it.

    Example:
        >>> places_of_numbers("15 of 33.3%", "150 rows\nshare 0.333", 9)
        {'15': None, '33.3': 2}
    """
    lines = [(place, _SourceNumbers([line])) for place, line in enumerate(output.splitlines(), 1)]
    lines = [(place, numbers) for place, numbers in lines if numbers.values]
    found: list[dict[str, int | None]] = []
    written = ""
    for place, reading in enumerate(readings(answer)):
        # Every second one is the one before with comma and point exchanged.
        written = written if place % 2 else reading
        matches = itertools.islice(NUMBER.finditer(reading), limit)
        found.append({written[slice(*match.span())]: _place_of(match, lines) for match in matches})
    return min(found, key=lambda places: list(places.values()).count(None))


def _place_of(match: re.Match[str], lines: Sequence[tuple[int, _SourceNumbers]]) -> int | None:
    number = Number(match[0])
    exact = (place for place, numbers in lines if numbers.has(number.value))
    meant = list(_meanings(match, number, loosely=False))
    near = (place for place, numbers in lines if any(numbers.has(*each) for each in meant))
    return next(itertools.chain(exact, near), None)


def omits_result(answer: str, output: str) -> bool:
    """Return whether an output has a few numbers, and an answer states none of them, not even in words.

    Example:
        >>> omits_result("What is the sum?", "Sum: 15")
        True
    """
    numbers = _SourceNumbers([output])
    if not 0 < len(set(numbers.values)) <= _MAX_RESULTS:
        return False
    if any(map(numbers.has, numbers_in_words(answer))):
        return False
    loose = _GLUED.sub(r"\1 ", answer)
    for reading in itertools.chain(readings(answer), readings(loose)):
        if any(is_supported for _, is_supported in _check_numbers(reading, numbers, loosely=True)):
            return False
    return True


def omits_words(answer: str, output: str, query: str) -> bool:
    """Return whether an output is a few words, and an answer has none of them that the question does not have, too.

    Truth values and names of days and months are left out, as an answer in another language translates them.

    Example:
        >>> omits_words("The longest word is falcon.", "Longest: kestrel", "Which word is the longest?")
        True
    """
    from code_chains.verification.comparison import Outcome

    outcome = Outcome.from_text(output[:_MAX_WORDS_CHARS], query)
    words = {folded(word) for word in outcome.words if len(word) > 1 or not word.isascii()}
    if outcome.numbers or not 0 < len(words) <= _MAX_WORDS or words & _TRANSLATED:
        return False
    return not any(map(folded(answer).__contains__, words))


def rounds_beyond(answer: str, output: str, query: str) -> bool:
    """Return whether an answer rounds more than its question asks for; False if that states no rounding in plain words.

    Whole numbers, and numbers that the output has as they are, are left out.

    Example:
        >>> rounds_beyond("It is 2.7.", "2.67", "What is the mean, rounded to two decimals?")
        True
    """
    asked = asked_decimals(query)
    if not asked:
        return False
    exact = _SourceNumbers([output, query])
    texts = itertools.chain.from_iterable(map(NUMBER.findall, readings(answer)))
    return any(_is_coarse(text, asked, exact) for text in texts)


def _is_coarse(text: str, asked: int, exact: _SourceNumbers) -> bool:
    """Return whether a number is that of the output with fewer decimals than asked for."""
    number, half = Number(text), 0.5000001 * _last_unit(text)
    is_shorter = 0 < number.decimals < asked and not exact.has(number.value)
    return is_shorter and exact.has(number.value, half)


def _count_items(output: str) -> frozenset[int]:
    """Count the lines of an output, and the items listed in them."""
    lines = list(filter(str.strip, output.splitlines()))
    return frozenset({len(lines), *(line.count(", ") + 1 for line in lines)} - {0, 1})


def _check_numbers(
    text: str, numbers: _SourceNumbers, *, loosely: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield each number of a text and whether it is numbers; numbers beyond a maximum are skipped."""
    doubtful = 0
    for match in itertools.islice(NUMBER.finditer(text), MAX_TOKENS):
        is_exact = numbers.has(Number(match[0]).value)
        doubtful += not is_exact
        if doubtful > _MAX_DOUBTFUL:
            return
        yield match[0], is_exact or _is_supported(match, numbers, loosely=loosely)


def _is_supported(match: re.Match[str], numbers: _SourceNumbers, *, loosely: bool) -> bool:
    number = Number(match[0])
    is_count = number.whole is not None and number.whole <= _MAX_COUNT and number.whole in numbers.counts
    if is_count and not loosely:
        return True
    return any(numbers.has(value, half) for value, half in _meanings(match, number, loosely=loosely))


def _meanings(match: re.Match[str], number: Number, *, loosely: bool) -> Iterator[tuple[float, float]]:
    """Yield what a number may mean where it stands, each with its tolerance."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[max(0, start - _CONTEXT_CHARS) : start], text[end : end + _CONTEXT_CHARS]
    if _BARE.fullmatch(before + after):  # A list of numbers has no words that could modify them.
        yield from _sizes(number, "", "", loosely=loosely)
        return
    signs = (1, -1) if _FALLING.search(before) or _FALLING.search(after) else (1,)
    for value, half in _sizes(number, before, after, loosely=loosely):
        for sign in signs:
            yield sign * value, half
    yield from _of_a_clock(number.value, after)
    yield from _fractions(number.value, before, after)


def _sizes(number: Number, before: str, after: str, *, loosely: bool) -> Iterator[tuple[float, float]]:
    value, half = number.value, 0.5000001 * _last_unit(number.text)
    yield value, half if number.whole is None or abs(value) >= _MIN_ROUNDED else 0.0
    if loosely or _PERCENT.match(after) or _PERCENT_BEFORE.search(before):
        yield value / 100, half / 100
    if _ABOUT.search(before) and abs(value) >= 1:
        yield value, max(half, _roundness(number))
    for times, words in _MULTIPLES:
        if words.match(after):
            yield value * times, half * times


def _last_unit(text: str) -> float:
    """Return the value of one unit of a number's last digit."""
    digits, _, power = text.lower().partition("e")
    return float(10.0 ** max(-300, min(300, int(power or 0) - len(digits.partition(".")[2]))))


def _roundness(number: Number) -> float:
    """Return the tolerance of a round number: half of its second digit."""
    digits = re.sub(r"\D", "", number.text)
    is_round = number.whole is not None and len(digits) < 300 and digits.endswith("0") and len(digits) > 1
    return 0.5 * 10.0 ** (len(digits) - 2) if is_round else 0.0


def _of_a_clock(value: float, after: str) -> Iterator[tuple[float, float]]:
    if _AFTERNOON.match(after) and value < 12:
        yield value + 12, 0.0
    if _MIDNIGHT.match(after) and value == 12:
        yield 0.0, 0.0


def _fractions(value: float, before: str, after: str) -> Iterator[tuple[float, float]]:
    below, above = _BELOW.match(after), _ABOVE.search(before)
    if below and int(below[1]):
        yield value / int(below[1]), 5e-4
    if above and value:
        yield int(above[1]) / value, 5e-4
