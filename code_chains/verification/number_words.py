"""Numbers in words, in the languages of questions and answers."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

_LARGER = {
    10: "ten diez dix zehn dieci dez десять दस عشرة",
    20: "twenty veinte vingt zwanzig venti vinte двадцать yirmi बीस عشرون عشرين",
    30: "thirty treinta trente dreißig trenta trinta тридцать otuz तीस ثلاثون ثلاثين",
    40: "forty cuarenta quarante vierzig quaranta quarenta сорок kırk चालीस أربعون أربعين",
    50: "fifty cincuenta cinquante fünfzig cinquanta cinquenta пятьдесят elli पचास خمسون خمسين",
    60: "sixty sesenta soixante sechzig sessanta sessenta шестьдесят altmış साठ ستون ستين",
    70: "seventy setenta siebzig settanta семьдесят yetmiş सत्तर سبعون سبعين",
    80: "eighty ochenta achtzig ottanta oitenta восемьдесят seksen अस्सी ثمانون ثمانين",
    90: "ninety noventa neunzig novanta девяносто doksan नब्बे تسعون تسعين",
    100: "hundred hundreds cien ciento cent hundert cento cem сто yüz सौ مئة مائة 百",
    1000: "thousand thousands mil mille tausend mila тысяча тысячи тысяч हज़ार हजार ألف آلاف 千",
    12: "dozen dozens docena douzaine dutzend dozzina dúzia дюжина düzine दर्जन",
    24: "noon midday mediodía midi mittag mezzogiorno meio-dia полдень öğle",
    2: "twice double doubled doubles couple pair both doble dos double deux doppelt zwei doppio due dobro"
    " dois вдвое два две дважды iki çift दो दोगुना اثنان اثنين ضعف second",
    3: "triple thrice tripled triples tres trois drei tre três три трижды üç तीन ثلاثة ثلاث third tercio tiers drittel terzo"
    " terço треть",
    4: "quadruple quarter quarters cuatro quatre vier quattro quatro четыре dört चार أربعة أربع cuarto quart viertel quarto"
    " четверть çeyrek चौथाई ربع fourth",
    5: "quintuple cinco cinq fünf cinque пять beş पाँच पांच خمسة خمس fifth fifths quinto cinquième fünftel пятая",
    6: "seis six sechs sei шесть altı छह छः ستة ست sixth",
    7: "siete sept sieben sette sete семь yedi सात سبعة سبع seventh",
    8: "ocho huit acht otto oito восемь sekiz आठ ثمانية ثماني eighth eighths",
    9: "nueve neuf neun nove девять dokuz नौ تسعة تسع ninth",
    1.5: "anderthalb eineinhalb",
    0.5: "half halves halved mitad moitié demi hälfte halb halbe metà mezzo metade meio половина половину"
    " полтора yarım yarısı आधा आधे نصف 半",
}
"""Words for more than twenty, multiples and fractions, by their values: programs write a third as 3."""
_TENS = """
dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt sto
dvacet třicet čtyřicet padesát šedesát sedmdesát osmdesát devadesát sto
tjugo trettio fyrtio femtio sextio sjuttio åttio nittio hundra
twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd
douăzeci treizeci patruzeci cincizeci șaizeci șaptezeci optzeci nouăzeci sută
"""
"""Words for twenty to a hundred in further languages."""
_VALUES = {
    **{word: value for value, words in _LARGER.items() for word in words.split()},
    **{word: 10.0 * ten for line in _TENS.split("\n") for ten, word in enumerate(line.split(), 2)},
    **dict.fromkeys(("tysiąc", "tysiące", "tisíc", "tusen", "duizend", "mie", "ribu"), 1000.0),
    "puluh": 10.0,
    "ratus": 100.0,
}
_PART = re.compile(r"[^\W\d_]+")


def numerals(*languages: str) -> dict[str, int]:
    """Return the values of words, given in the order of their values from zero on, one text a language."""
    values: dict[str, int] = {}
    for words in languages:
        values.update(zip(words.split(), itertools.count(), strict=False))
    return values


_NUMERALS = numerals(
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
) | {"una": 1, "une": 1, "ein": 1, "eine": 1, "uma": 1, "duas": 2, "catorze": 14}
_FURTHER = numerals(
    "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście czternaście"
    " piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście",
    "nula jedna dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct třináct čtrnáct patnáct šestnáct sedmnáct"
    " osmnáct devatenáct",
    "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton",
    "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien"
    " negentien",
    "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas",
    "zero unu doi trei patru cinci șase șapte opt nouă zece unsprezece doisprezece treisprezece paisprezece cincisprezece",
)
_HUNDREDS_OF = {
    word: 100 * number
    for words in (
        "cien doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos",
        "cem duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
        "cento duecento trecento quattrocento cinquecento seicento settecento ottocento novecento",
    )
    for number, word in enumerate(words.split(), 1)
}
"""Numerals of further languages, which name what is given and nothing else, as some are words of another language, too."""
_OF_WORDS = {**_FURTHER, **_HUNDREDS_OF, **_NUMERALS, **_VALUES}
_AND = frozenset(["and", "und", "ën", "y", "e", "et", "och", "en", "dan"])
_MAX_COMPOUND = 60
_THOUSAND = 1000.0
_FACTORS = (10.0, 100.0, _THOUSAND)
"""What a smaller number before it multiplies: `dua puluh`, `zwei hundert`."""
_CHINESE_DIGITS = "零一二三四五六七八九十"
_CHINESE_VALUES = {"百": 100.0, "千": 1000.0, "万": 10_000.0, "半": 0.5, "两": 2.0, "兩": 2.0}
_OF_UNITS = re.compile(r"(?<!\d)(?:(?:\d++[百千万]){2,}\d*|\d++[百千万]\d++)")
_UNIT = re.compile(r"(\d+)([百千万]?)")
_CHINESE_NUMERAL = re.compile("(二?)十([一二三四五六七八九]?)|([零一二三四五六七八九])")


def numbers_in_words(text: str) -> Iterator[int]:
    """Yield the numbers that a text has in words, up to twenty."""
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", text.lower()):
        if word in _NUMERALS:
            yield _NUMERALS[word]
    for two, digit, only in _CHINESE_NUMERAL.findall(text):
        if only:
            yield _CHINESE_DIGITS.index(only)
        else:  # Ten or twenty, and perhaps more.
            yield (20 if two else 10) + _CHINESE_DIGITS.index(digit or "零")


def stated_in_words(text: str) -> Iterator[float]:
    """Yield the numbers that a text has in words, with the parts of those that are composed, multiples and fractions."""
    yield from map(float, numbers_in_words(text))
    words = list(itertools.chain.from_iterable(map(_numerals_of, _PART.findall(text.lower()))))
    yield from (float(_OF_WORDS[word]) for word in words if word in _OF_WORDS)
    yield from _composed(words)
    for sign in filter(_CHINESE_VALUES.__contains__, text):
        yield _CHINESE_VALUES[sign]
    for written in _OF_UNITS.findall(text):
        yield sum(float(digits) * _CHINESE_VALUES.get(unit, 1.0) for digits, unit in _UNIT.findall(written))


def _numerals_of(word: str) -> tuple[str, ...]:
    """Return the numerals that a word is made of, such as `zwei`, `hundert` and `fünfzig`; the word if it is none."""
    return _split(word[:_MAX_COMPOUND]) or (word,)


@functools.lru_cache(4096)
def _split(word: str) -> tuple[str, ...]:
    for end in range(len(word), 1, -1):
        if word[:end] in _OF_WORDS or word[:end] in _AND:
            if end == len(word):
                return (word,)
            if rest := _split(word[end:]):
                return (word[:end], *rest)
    return ()


def _composed(words: Iterable[str]) -> Iterator[float]:
    """Yield the numbers that several words in a row state together."""
    total, last, count = 0.0, 0.0, 0
    for word in itertools.chain(words, [""]):
        value = _OF_WORDS.get(word)
        if value is not None:
            # Ten and a hundred multiply the numeral before them, and a thousand all that is smaller.
            smaller = total if value == _THOUSAND else last
            factor = value if value in _FACTORS and 0 < smaller < value else 0.0
            last = smaller * factor or value
            total += last - (smaller if factor else 0.0)
            count += 1
        elif word not in _AND:
            if count > 1:
                yield total
            total, last, count = 0.0, 0.0, 0


_PARTS_OF_ONE = frozenset(
    "quarter quarters fifths eighths viertel drittel fünftel quart cuarto quarto tercio tiers terzo terço четверть треть"
    " çeyrek".split()
)
_HUNDREDS = (100.0, _THOUSAND)


def whole_numerals(text: str, factors: Mapping[str, float]) -> Iterator[float]:
    """Yield each number that a text has in words as a whole: twenty-one is 21, and neither 20 nor 1.

    Args:
        text: The text.
        factors: Words that multiply what stands before them, such as million.
    """
    total, below, is_open = 0.0, 0.0, False
    words = _PART.findall(text.lower().replace("quatre-vingt", "eighty "))
    for word in itertools.chain(itertools.chain.from_iterable(map(_numerals_of, words)), [""]):
        value = factors.get(word) or (None if word in _PARTS_OF_ONE else _OF_WORDS.get(word))
        if word in _AND:
            continue
        if is_open and (value is None or not (word in factors or _fits(below, value))):
            yield total + below
            total, below = 0.0, 0.0
        is_open = value is not None
        if value is None:
            continue
        if word in factors or value in _HUNDREDS:
            below = (below or 1.0) * value
        else:
            below += value
        if value >= _THOUSAND:
            total, below = total + below, 0.0


def _fits(below: float, value: float) -> bool:
    """Return whether a numeral continues a number below a thousand, as five does after twenty."""
    last = below % 100
    if not below or value in _HUNDREDS:
        return True
    if value < 10:
        return value == int(value) and (last % 10 == 0) and (last != 10 or value > 6)
    is_reversed = last < 10 and value % 10 == 0
    return last == 0 or is_reversed or (value < 20 and last in (60, 80))
