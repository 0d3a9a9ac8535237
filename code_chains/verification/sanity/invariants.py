"""Invariants of kinds of questions: a count is not negative, a mean lies between the extremes. No model is asked.

The idea is that of metamorphic and property-based testing: what must hold of an answer can be checked without knowing it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from code_chains.verification.numbers import NUMBER, Number, values_in

_MAX_CHARS = 4000
_MIN_LISTED = 3
_COUNT = re.compile(
    r"\bhow (?:many|much time|long|old|far)\b|\bnumber of\b|\bwie (?:viele|lange|alt|weit)\b|\banzahl\b|\bcombien\b"
    r"|\bcu[áa]nt[oa]s\b|\bquant[ei]\b|\bquant[oa]s\b|\bсколько\b|多少(?:个|天|次|人)|几(?:个|天|次)|いくつ|何(?:日|個|回|人)|몇|كم|कितने|\bkaç\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:left|remain\w*|mov\w*|chang\w*|gain\w*|los[et]\w*|differ\w*|net|balance|grow\w*|degrees?|points?|profit|übrig|bleib\w*"
    r"|differenz|verlust|gewinn|reste\w*|quedan?|rimang\w*|остал\w*)\b|剩|残り",
    re.IGNORECASE,
)
"""With these words a number may be negative: a debt, a fall."""
_CHANCE = re.compile(
    r"\b(?:probability|chance|likelihood|wahrscheinlichkeit|probabilit[éàa]|probabilidade?|вероятност\w*|olasılı\w*)\b|概率|確率|확률|احتمال|प्रायिकता",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(
    r"\b(?:(?:what|which) (?:weekday|day of the week)|wochentag|jour de la semaine|d[ií]a de la semana"
    r"|giorno della settimana|dia da semana|день недели|haftanın hangi günü)\b|星期几|周几|何曜日|무슨 요일",
    re.IGNORECASE,
)
_MEAN = re.compile(
    r"\b(?:mean|average|median|mittelwert|durchschnitt|moyenne|m[ée]diane?|promedio|media|mediana|média|среднее|медиан\w*|ortalama\w*)\b"
    r"|平均|中位数|中央値|평균|중앙값|متوسط|औसत|माध्यिका",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"\W*(?:(?:of|from|for|is|are|these|those|the|this|following|numbers?|values?|list|data|von|der|den|dieser|zahlen|werte|de|des|los"
    r"|las|les|números|nombres|valeurs|di|dei|numeri|dos)\W+)*",
    re.IGNORECASE,
)
"""What may stand between the word for a mean and the list that it is of."""
_SORT = re.compile(
    r"^\W*(?:please )?(?:sort|order|arrange|put)\b|\bsortier\w*\b"
    r"|\b(?:trie[rz]?|classe[rz]?|ordena\w*|ordina\w*|отсортируй\w*|sırala\w*)\b|排序|並べ替え|정렬",
    re.IGNORECASE,
)
_SOME = re.compile(
    r"\b(?:unique|distinct|without duplicates|first|last|top|only|greater|less|more|than|doppelte|sans doublons|by)\b",
    re.I,
)
_PER = re.compile(
    r"\b(?:per|(?:for|of|in) (?:each|every)|by|pro|je|für jede[nrs]?|par|pour chaque|por|(?:por|para) cada|per ogni"
    r"|на каждого|по)\s",
    re.IGNORECASE,
)
_UNGROUPED = re.compile(
    r"(?:^|\W)0\s+[-\d.]+\n1\s+[-\d.]+\n(?:\d+\s+[-\d.]+\n)*(?:Name: [^\n]*, )?dtype: \w+\s*$"
)
"""A pandas Series of numbers whose index numbers the rows."""
_TOTAL = re.compile(
    r"\b(?:total|altogether|in all|sum of all|insgesamt|gesamt\w*|in tutto|totale|en tout|au total|en total|no total|łącznie"
    r"|всего|итого|toplam\w*)\b|合計|总共|一共|합계",
    re.IGNORECASE,
)
_EACH = re.compile(r"\b(?:each|every|jede\w*|chaque|cada|ogni|кажд\w*)\b", re.IGNORECASE)
_JOINED = re.compile(
    r"(?<![\d:])(?:\d{1,2}:\d{2}){3,}(?![\d:])|(?:\d+[.,]\d{2}\s?[€$£%]){2,}|(?:[€$£]\d+[.,]\d{2}){2,}"
)
"""What adding up texts makes of times and prices."""
_LIST = re.compile(
    rf"(?:{NUMBER.pattern})(?:(?:,\s*|;\s*|\s+(?:and|und|et|y|e)\s+|\s+)(?:{NUMBER.pattern}))+"
)


def broken_invariant(query: str, output: str) -> str:
    """Return what cannot be right about an output, as a sentence; empty unless that is certain from question and output.

    Example:
        >>> broken_invariant("How many days are there from 3 March to 27 April?", "Days: -55")
        'A count or a length of time cannot be negative, but the output says -55.'
        >>> broken_invariant("What is the mean of 2, 4 and 9?", "5")
        ''
    """
    if len(output) > _MAX_CHARS or not output.strip():
        return ""
    for check in _CHECKS:
        if problem := check(query, output):
            return problem
    return ""


def only_number(output: str) -> Number | None:
    """Return the number of an output, if it has just one."""
    found = NUMBER.findall(output.replace("\u2212", "-"))
    return Number(found[0]) if len(found) == 1 else None


def _negative_count(query: str, output: str) -> str:
    number = only_number(output)
    if number is None or number.value >= 0 or not _COUNT.search(query) or _CHANGE.search(query):
        return ""
    return f"A count or a length of time cannot be negative, but the output says {number.text}."


def _impossible_chance(query: str, output: str) -> str:
    number = only_number(output)
    if number is None or not _CHANCE.search(query) or 0 <= number.value <= 100:
        return ""
    return f"A probability lies between 0 and 1, but the output says {number.text}."


def _nameless_weekday(query: str, output: str) -> str:
    if not _WEEKDAY.search(query) or any(map(str.isalpha, output)):
        return ""
    return "The question asks for the name of a weekday, but the output has no words."


def _joined_texts(query: str, output: str) -> str:
    joined = _JOINED.search(output)
    if joined is None:
        return ""
    return f"The program joins texts where it should add numbers: {joined[0]}. Convert them first."


def _mean_outside(query: str, output: str) -> str:
    number, listed = only_number(output), _listed(query)
    if number is None or len(listed) < _MIN_LISTED or not _is_mean_of_list(query):
        return ""
    if min(listed) - 0.01 <= number.value <= max(listed) + 0.01:
        return ""
    return f"A mean or a median lies between {min(listed):g} and {max(listed):g}, but the output says {number.text}."


def _is_mean_of_list(query: str) -> bool:
    """Return whether a question asks for the mean of its list: nothing but small words stand between both."""
    mean, listed = _MEAN.search(query), _LIST.search(query)
    if mean is None or listed is None or _COUNT.search(query):
        return False
    return bool(_BETWEEN.fullmatch(query[mean.end() : listed.start()]))


def _lost_in_sorting(query: str, output: str) -> str:
    listed = _listed(query)
    shown = values_in(output)
    if len(listed) < _MIN_LISTED or not _SORT.search(query) or _SOME.search(query):
        return ""
    if len(shown) < _MIN_LISTED or Counter(listed) == Counter(shown):
        return ""
    return "The sorted numbers are not those of the question."


def _unnamed_groups(query: str, output: str) -> str:
    if not _PER.search(query) or not _UNGROUPED.search(output):
        return ""
    return "The question asks for a value per group, but the output has one per row, without the names of groups."


def _rows_for_total(query: str, output: str) -> str:
    if not _TOTAL.search(query) or _EACH.search(query) or _PER.search(query) or not _UNGROUPED.search(output):
        return ""
    return "The question asks for a total, but the output has one value per row."


def _listed(query: str) -> list[float]:
    """Return the numbers of the only list in a question."""
    lists = _LIST.findall(query)
    if len(lists) != 1 or re.search(r"\d,\d", lists[0]):
        return []
    return values_in(lists[0])


_CHECKS: tuple[Callable[[str, str], str], ...] = (
    _negative_count,
    _impossible_chance,
    _nameless_weekday,
    _joined_texts,
    _mean_outside,
    _lost_in_sorting,
    _unnamed_groups,
    _rows_for_total,
)
