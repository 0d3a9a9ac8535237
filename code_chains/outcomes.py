"""Whether two outputs say the same: numbers by tolerance, without labels and the words of the question."""

from __future__ import annotations

import bisect
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Outcome", "group", "ungrounded", "untold"]

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|\.\d)|(?<![\w.])[-+]?\.\d+(?!\w)"
)
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER.pattern})|(?P<word>(?<![\w.])-?[^\W\d]\w*(?:[.'-]\w+)*|\w[\w.'-]*\w|\w)"
    r"|(?P<sign>[^\w\s.,;:!?'\"()\[\]{}=|`_<>-]+)"
)
_BESIDE = re.compile(r"(?<=\d)(?=[^\W\d_A-Za-zÀ-ɏ])|(?<=[^\W\d_A-Za-zÀ-ɏ])(?=\d)")
_LABEL = re.compile(r"^[^:=\n]*?[:=]\s+(?=\S)")
_TOLD = re.compile(r"^.*\b(?:is|are|was|were|equals|ist|sind|es|son|est|sont)\b\s+(?=\S)", re.IGNORECASE)
_FILLER = frozenset(
    re.findall(r"\w+", "a an and are as at by for from has have in is it its of on that the there to was were with")
)
_TURNING = frozenset(
    re.findall(
        r"\w+",
        "no not never none neither nor without cannot false kein keine nicht nie falsch ni ne pas jamais faux falso "
        "hundred thousand million billion trillion percent",
    )
)
"""Words that make it another outcome, wherever they stand."""
_ITEM = re.compile(r"^\s*\d{1,2}[.)]\s", re.MULTILINE)
_COMMAS = str.maketrans(",.", ".,")
_FEW = 3
_MOST = 10_000


@dataclass(frozen=True)
class _Number:
    text: str

    @property
    def whole(self) -> int | None:
        """Its value, if it is written as a whole number."""
        plain = self.text.replace(",", "")
        return int(plain) if len(plain) < 4000 and re.fullmatch(r"[-+]?\d+", plain) else None

    @property
    def value(self) -> float:
        """Its value, as near as a float comes."""
        return float(self.text.replace(",", ""))

    @property
    def decimals(self) -> int:
        """How many decimals it is written with."""
        return len(self.text.lower().partition("e")[0].partition(".")[2])

    def near(self, other: _Number) -> bool:
        """Equal, but for rounding to two decimals or more."""
        if self.whole is not None and other.whole is not None:
            return self.whole == other.whole
        if float("inf") in (abs(self.value), abs(other.value)):
            return self.text == other.text
        difference = abs(self.value - other.value)
        if difference <= 1e-9 * max(abs(self.value), abs(other.value)):
            return True
        decimals = min(self.decimals, other.decimals)
        return decimals >= 2 and bool(self.value and other.value) and difference <= 0.5000001 * 10.0**-decimals


_Token = _Number | str


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text.replace("\u2212", "-")):
        word = match[0].casefold()
        yield _Number(match[0]) if match["number"] else "not" if word.endswith(("n't", "n\u2019t")) else word


@dataclass(frozen=True)
class Outcome:
    """An output, reduced to what it says.

    Attributes:
        text: All of it.
        tokens: Its numbers and words in order, without numbers of labels, filler and the words of the question.
    """

    text: str
    tokens: tuple[_Token, ...]

    @classmethod
    def of(cls, output: str, query: str = "") -> Outcome:
        """What an output says, beside what the question says itself."""
        known = {token for token in _tokens(query) if isinstance(token, str)} | _FILLER
        lines = output.strip().splitlines()[:_MOST]
        found = [token for line in lines for token in _told(line)][:_MOST]
        if len(lines) > 1:  # Then labels tell the lines apart, also where they stand in the question.
            known = set(_FILLER)
        telling = tuple(token for token in found if token not in known)
        return cls(output.strip(), telling or tuple(found))

    @property
    def numbers(self) -> list[_Number]:
        """Its numbers."""
        return [token for token in self.tokens if isinstance(token, _Number)]

    @property
    def words(self) -> list[str]:
        """Its words."""
        return [token for token in self.tokens if isinstance(token, str)]

    def agrees(self, other: Outcome, *, ordered: bool = True) -> bool:
        """Whether both say the same; one may say more words about it than the other, but for a no."""
        if self.text == other.text:
            return True
        if not self.tokens or not other.tokens or len(self.numbers) != len(other.numbers):
            return False
        if not self.numbers and len(self.tokens) != len(other.tokens):
            return False
        fewer, more = sorted((self, other), key=lambda outcome: len(outcome.tokens))
        if any(word in _TURNING or not any(map(str.isalnum, word)) for word in set(fewer.words) ^ set(more.words)):
            return False
        mine, theirs = (list(one.tokens) if ordered else _sorted(one.tokens) for one in (fewer, more))
        return _within(mine, theirs)


def _told(line: str) -> Iterator[_Token]:
    """The tokens of a line; of a label before a number only the words."""
    rest = _TOLD.sub("", _LABEL.sub("", line))
    if not _NUMBER.search(rest):
        rest = line
    label = line[: len(line) - len(rest)]
    yield from (token for token in _tokens(label) if isinstance(token, str))
    yield from _tokens(rest)


def _sorted(tokens: Sequence[_Token]) -> list[_Token]:
    numbers = sorted((token for token in tokens if isinstance(token, _Number)), key=lambda number: number.value)
    return [*sorted(token for token in tokens if isinstance(token, str)), *numbers]


def _within(fewer: Sequence[_Token], more: Sequence[_Token]) -> bool:
    """Whether the one is the other with some more words in between."""
    remaining = iter(more)
    for token in fewer:
        for other in remaining:
            if isinstance(token, _Number) and isinstance(other, _Number):
                if not token.near(other):
                    return False
                break
            if token == other:
                break
            if isinstance(other, _Number):
                return False
        else:
            return False
    return True


def group(outputs: Sequence[str], query: str = "", *, ordered: bool = True) -> list[list[int]]:
    """Positions of outputs that say the same, largest group first, among equals the one that came first.

    Example:
        >>> group(["Sum: 15", "15.0", "The sum is 14"], "What is the sum?")
        [[0, 1], [2]]
    """
    outcomes = [Outcome.of(output, query) for output in outputs]
    groups: list[list[int]] = []
    for position, outcome in enumerate(outcomes):
        home = next((one for one in groups if outcomes[one[0]].agrees(outcome, ordered=ordered)), None)
        if home is None:
            groups.append([position])
        else:
            home.append(position)
    return sorted(groups, key=len, reverse=True)


_GROUPED = re.compile(r"(?<=\d)[\u00a0\u202f\u2009'’_](?=\d{3}(?!\d))")
_LAKH = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
_SPACES = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_GLUED = re.compile(r"(?<![A-Za-z_])(\d)(?=[^\W\d_])")
_POWER = re.compile(r"(?:(\d)\s*(?:[×x*·⋅]|\\times)\s*)?\b10(?:(?:\^|\*\*)\{?([-+]?\d{1,4})\}?|([⁻⁺]?[⁰¹²³⁴-⁹]{1,4}))")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_VERSION = re.compile(r"(?<![\w.])(\d{1,9})\.(\d{1,9})(?:\.\d+)+(?![\w])")
_PERCENT = re.compile(
    r"\s*(?:[%٪％]|per\s?cent|pro[cz]ent\w*|por ?ciento|pour ?cent|per ?cento|por ?cento|percent\w*|パーセント|퍼센트|프로"
    r"|процент\w*|відсот\w*|بالم|في الم|درصد|אחוז|प्रतिशत|τοις εκατό|persen|phần trăm|la sută|เปอร์เซ็นต์)",
    re.IGNORECASE,
)
_PERCENT_BEFORE = re.compile(r"(?:[%٪％]|yüzde|百分之|ร้อยละ)\s*[-+]?$", re.IGNORECASE)
_TIMES = {
    1e9: r"mil millones|mil milhões|billions?|milliard\w*|miliard\w*|miljard\w*|мил+иард\w*|мільярд\w*"
    r"|млрд|miliar|tỷ|milyar|مليار|bn",
    1e6: r"mill?i[oó]n\w*|millones|mil[hj]\w*|milione?\w*|mio|миллион\w*|мільйон\w*|млн|مليون|میلیون|juta|triệu|milyon\w*"
    r"|εκατομμύρι\w*|ล้าน|백만|百万|百萬|(?-i:M)(?!\w)",
    1e3: r"thousand|tausend|mille|mila|mil\b|duizend|tusen|tysi\w+|tisíc\w*|тыс\w*|тис\w*"
    r"|ألف|آلاف|هزار|हज़ार|हजार|ribu|nghìn|bin\b|千|천|k\b",
    1e4: "[万萬만]|หมื่น",
    1e8: "[亿億억]",
    1e12: r"[兆조]|trillion\w*|billionen|billones",
    1e5: r"lakhs?\b|लाख",
    1e7: r"crores?\b|करोड़",
}
"""What multiplies the number before it."""
_MULTIPLES = [(times, re.compile(rf"\s*(?:{words})", re.IGNORECASE)) for times, words in _TIMES.items()]
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|some|circa|ca\.?|ungefähr|etwa|rund|fast|knapp|unos|unas"
    r"|aproximadamente|casi|cerca|alrededor|environ|presque|près|quase|quasi|около|примерно|почти|приблизно|близько|حوالي"
    r"|تقريبا|حدود|תقریبا|בערך|लगभग|περίπου|ongeveer|bijna|ungefär|omkring|około|asi|přibližně|yaklaşık|khoảng|sekitar"
    r"|aproximativ)|[~≈约約약]|およそ|ほぼ|대략|ประมาณ)\W*(?:\w{1,4}\W+)?$",
    re.IGNORECASE,
)
_FALLING = re.compile(
    r"\b(?:fell|fall|decreas|drop|declin|loss|lost|lose|minus|negative|down|lower|reduc|shrank|deficit|gesunken|fiel|sank|verl"
    r"|gefallen|rückgang|cay|baj|disminu|pérdid|menos|descen|baiss|diminu|perte|recul|moins|chut|cal[oa]|perdit|meno|sces|caiu"
    r"|queda|perda|prejuízo|упал|снизил|убыт|минус|впа|знизи|збит|мінус)|下降|[减減]少|[亏虧]|负|跌|下落|損失|マイナス|감소|하락|손실",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"(?::\d\d){0,2}\s*p\.?\s?m\b", re.IGNORECASE)
_MIDNIGHT = re.compile(r"(?::\d\d){0,2}\s*a\.?\s?m\b", re.IGNORECASE)
_BELOW = re.compile(r"\s?[/⁄]\s?(\d{1,9})(?![\d.])")
_ABOVE = re.compile(r"(?<![\d.])(\d{1,9})\s?[/⁄]\s?$")
_BARE = re.compile(r"[\s\d.,;:()\[\]]*")
_NEAR = 40
_COUNTED = 20
_LARGE = 100
_NUMERALS = {
    word: value
    for several in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete"
        " dieciocho diecinueve veinte",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit"
        " dix-neuf vingt",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
        " achtzehn neunzehn zwanzig",
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici"
        " diciassette diciotto diciannove venti",
        "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete dezoito"
        " dezenove vinte",
    )
    for value, word in enumerate(several.split())
} | {"una": 1, "une": 1, "ein": 1, "eine": 1, "uma": 1, "duas": 2, "catorze": 14}
_SIGNS = "零一二三四五六七八九十"
_IN_SIGNS = re.compile("(二?)(十)([一二三四五六七八九]?)|([零一二三四五六七八九])")


class _Known:
    """Numbers that an answer may tell, in order, so that each is found at once."""

    def __init__(self, sources: Sequence[str]) -> None:
        texts = [_plain(source) for source in sources]
        found = [_Number(text).value for source in texts for text in _NUMBER.findall(source)[:_MOST]]
        for one in (one for source in texts for one in _VERSION.finditer(source)):
            found += [float(one[1]), float(f"{one[1]}.{one[2]}")]
        self.values = sorted(found)
        self.counts = _counts(sources[0]) if sources else frozenset[int]()

    def has(self, value: float, half: float) -> bool:
        """Whether there is such a number, but for what it was rounded by."""
        start = bisect.bisect_left(self.values, value - half)
        return start < len(self.values) and self.values[start] <= value + half


def ungrounded(answer: str, *sources: str) -> list[str]:
    """Numbers of an answer that stand in none of its sources, under no reading of theirs.

    They may be rounded, a percentage, in thousands or millions, a time of the afternoon, or how many lines or items the
    first of the sources has. Words such as "about" or "fell by" allow for more.

    Example:
        >>> ungrounded("It is 2.67, not 3.", "Mean: 2.6666666")
        ['3']
    """
    known = _Known(sources)
    fewest: list[str] | None = None
    for reading in _readings(_ITEM.sub("", answer)):
        unknown = _unknown(reading, known)
        if not unknown:
            return []
        fewest = unknown if fewest is None or len(unknown) < len(fewest) else fewest
    return fewest or []


def untold(answer: str, output: str) -> bool:
    """Whether an output has a few numbers, and an answer tells none of them, also not in words.

    Example:
        >>> untold("What is the sum?", "Sum: 15")
        True
    """
    known = _Known([output])
    if not 0 < len(set(known.values)) <= _FEW:
        return False
    if any(known.has(value, 0) for value in _in_words(answer)):
        return False
    loose = _GLUED.sub(r"\1 ", answer)
    return not any(
        _stands(match, known, loosely=True)
        for reading in (*_readings(answer), *_readings(loose))
        for match in itertools.islice(_NUMBER.finditer(reading), _MOST)
    )


def _readings(text: str) -> Iterator[str]:
    """Ways to read an answer: what a comma is here, a point is there, and spaces may stand within numbers."""
    text = _plain(text)
    for reading in dict.fromkeys((text, _SPACES.sub("", text))):
        yield reading
        yield reading.translate(_COMMAS)


def _plain(text: str) -> str:
    """Text whose numbers are written as in English, apart from letters of scripts that put no space beside them."""
    if not text.isascii():
        digits = {ord(sign): str(unicodedata.decimal(sign)) for sign in set(text) if sign.isdecimal()}
        text = text.translate({**digits, ord("٫"): ".", ord("٬"): ",", ord("\u2212"): "-"})
    text = _LAKH.sub(lambda match: match[0].replace(",", ""), _GROUPED.sub("", text))
    return _BESIDE.sub(" ", _POWER.sub(_scientific, text))


def _scientific(match: re.Match[str]) -> str:
    return f"{match[1] or 1}e{match[2] or match[3].translate(_RAISED)}"


def _counts(output: str) -> frozenset[int]:
    """How many lines an output has, and how many items are listed in them."""
    lines = [line for line in output.splitlines() if line.strip()]
    return frozenset({len(lines), *(line.count(", ") + 1 for line in lines)} - {0, 1})


def _in_words(text: str) -> Iterator[int]:
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", text.lower()):
        if word in _NUMERALS:
            yield _NUMERALS[word]
    for tens, ten, ones, only in _IN_SIGNS.findall(text):
        yield _SIGNS.index(only) if only else (20 if tens else 10 * bool(ten)) + (_SIGNS.index(ones) if ones else 0)


def _unknown(answer: str, known: _Known) -> list[str]:
    return [match[0] for match in _NUMBER.finditer(answer) if not _stands(match, known)]


def _stands(match: re.Match[str], known: _Known, *, loosely: bool = False) -> bool:
    number = _Number(match[0])
    if known.has(number.value, 0):
        return True
    if number.whole is not None and number.whole <= _COUNTED and number.whole in known.counts and not loosely:
        return True
    return any(known.has(value, half) for value, half in _meant(match, number, loosely=loosely))


def _meant(match: re.Match[str], number: _Number, *, loosely: bool) -> Iterator[tuple[float, float]]:
    """What a number may mean where it stands, each with what it may be off by."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if _BARE.fullmatch(before + after):  # Within a list of numbers nothing is said about them.
        yield from _sizes(number, "", "", loosely=loosely)
        return
    signs = (1, -1) if _FALLING.search(before) or _FALLING.search(after) else (1,)
    for value, half in _sizes(number, before, after, loosely=loosely):
        yield from ((sign * value, half) for sign in signs)
    yield from _of_a_clock(number.value, after)
    yield from _fractions(number.value, before, after)


def _sizes(number: _Number, before: str, after: str, *, loosely: bool) -> Iterator[tuple[float, float]]:
    value, half = number.value, 0.5000001 * _step(number.text)
    yield value, half if number.whole is None or abs(value) >= _LARGE else 0.0
    if loosely or _PERCENT.match(after) or _PERCENT_BEFORE.search(before):
        yield value / 100, half / 100
    if _ABOUT.search(before) and abs(value) >= 1:
        yield value, max(half, _roundness(number))
    yield from ((value * times, half * times) for times, words in _MULTIPLES if words.match(after))


def _step(text: str) -> float:
    """What the last digit of a number stands for."""
    digits, _, power = text.lower().partition("e")
    return float(10.0 ** max(-300, min(300, int(power or 0) - len(digits.partition(".")[2]))))


def _roundness(number: _Number) -> float:
    """By how much a round number may be off: half of its second digit."""
    digits = re.sub(r"\D", "", number.text)
    plain = number.whole is not None and len(digits) < 300 and digits.endswith("0") and len(digits) > 1
    return 0.5 * 10.0 ** (len(digits) - 2) if plain else 0.0


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
