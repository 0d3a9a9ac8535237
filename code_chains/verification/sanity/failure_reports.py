"""Outputs that report a failure, or hold nothing, where an answer was asked for. No model is asked."""

from __future__ import annotations

import re

_MAX_CHARS = 4000
_MAX_LINES = 6
"""Lines of an output that may as a whole be the report of a failure."""
_FAILURE = re.compile(
    r"""
    (?:an?\s)?(?:\w+(?:Error|Exception)|error|fatal|fehler|erreur|errore|erro|fout|fel|błąd|hata|lỗi|ошибка|помилка|خطأ|त्रुटि
        |错误|錯誤|エラー|오류)\s*(?:[:!：—-]|(?:has\s)?occurred\b|while\b|reading\b|opening\b|in\sprogram\b)
    | traceback\s\(most\srecent\scall\slast\)
    | usage:\s | use:\s\S+\.py\b
    | please\s(?:enter|provide|specify|install|upload|make\ssure|check\sthat|replace|supply|set)\b
    | (?:invalid|unknown|unsupported|missing)\s(?:input|option|command|argument|format|file|data|choice|column|operation)\b
    | (?:could|can|was|were|is|are|does|do|did)\s?(?:not|n't|n’t)\s(?:be\s)?(?:open|read|load|find|found|parse|convert|access
        |connect|import|retrieve|determine|comput|calculat|process|able\sto)\w*
    | cannot\s(?:be\s)?(?:open|read|load|find|parse|convert|access|connect|import|determine|comput|calculat|process)\w*
    | (?:failed|unable)\sto\s\w+
    | no\sfiles?\s(?:[^\n]{0,40}\s)?(?:found|attached|given|provided|available|in\sthe\s\w+)
    | no\s(?:such\sfile|data\s(?:found|available|provided)|input\s(?:given|provided)|module\snamed)\b
    | (?:the\s)?(?:file|path|directory|column|table|sheet|key|url|resource|module|dataset|data)\b[^\n]{0,80}?\s
        (?:(?:was|is|were|are|does|do|could|has)?\s?(?:not\s(?:found|exist|available|present|there|in\s(?:the\s)?(?:file|data))
            |missing[.!]?$) | (?:\w+n['’]t)\s(?:exist|found))
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""How a line begins that reports a failure of a program."""
_PLACEHOLDER = re.compile(
    r"(?:path/to|your_?(?:file|api|key|data|value|input)\w*|<(?:your|insert|the|enter)\b[^<>\n]{0,40}>|\[(?:your|insert|enter)\b[^\]\n]{0,40}\]"
    r"|\b(?:TODO|FIXME|TBD|lorem ipsum|to be (?:implemented|determined|calculated))\b|\bplaceholder\b)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:[^\W\d][\w ()'’./:-]{0,60}[:=]\s*)?"
    r"(?:None|nan|NaN|NaT|<NA>|inf|-inf|null|undefined|\[\]|\{\}|\(\)|set\(\)|Series\(\[\].*\)"
    r"|Empty DataFrame\s+Columns:.*Index: \[\]|<[\w. ]+ at 0x[0-9a-f]+>|<(?:function|class|module|generator)\b.*>)\.?",
    re.DOTALL,
)
"""Outputs that hold no value, with a word about what they are or without."""
_LABELLED_NAN = re.compile(r"[^\W\d][\w ()'’./-]{0,60}[:=]\s*(?:nan|NaN|NaT|<NA>|Empty DataFrame)")
_FIGURE = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*")
_ZERO = re.compile(r"-?0[.,]0+")
_NAN = re.compile(r"(?:np\.)?(?:float(?:64)?\(['\"]?)?(?:nan|NaN|NaT|<NA>)(?:['\"]?\))?")
_ABOUT_FAILURE = re.compile(
    r"\b(?:error|exception|traceback|fail\w*|invalid|valid|raises?|crash\w*|bug|log|logs|message|warning|not found|exist\w*"
    r"|missing|usage|todo|fixme|placeholder|status|debug|wrong|output of|prints?|undefined|fehler\w*|meldung\w*|gültig"
    r"|erreur\w*|valide|errores|válid[oa]|errori|valid[oa]|ошибк\w*)\b|错误|錯誤|エラー|报错|異常|异常|有效|오류|خطأ|त्रुटि",
    re.IGNORECASE,
)
"""Questions about failures, whose answers may look like one."""
_NOT_FOUND = re.compile(
    r"(?:sorry, )?(?:there (?:is|are|was|were) )?no (?:[^.]{1,80} )?(?:found|match(?:es|ing)?)\b.{0,80}"
    r"|[^\n.]{1,80} (?:was |were |is |are )?not found\b.{0,80}"
    r"|kein\w* [^\n.]{0,80}gefunden\b.{0,80}|[^\n.]{1,80} nicht gefunden\b.{0,80}"
    r"|(?:aucune?|pas de) [^\n.]{0,80}trouvée?s?\b.{0,80}|no se (?:encontr|hall)\w+ .{0,80}"
    r"|ningun[oa]? [^\n.]{0,80}encontrad\w+.{0,80}"
    r"|nessun\w* [^\n.]{0,80}trovat\w+.{0,80}|nenhum\w* [^\n.]{0,80}encontrad\w+.{0,80}"
    r"|.{0,40}(?:未找到|没有找到|找不到|見つかりません).{0,40}|.{0,40}не найден\w*.{0,80}",
    re.IGNORECASE,
)
"""Outputs that say that nothing was found, in one sentence."""
_ABOUT_NOTHING = re.compile(
    r"\b(?:none|null|nan|empty|any|undefined|infinit\w*|nothing|if there (?:is|are) no|leer\w*|nichts|vide|vac[ií]\w*)\b",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    r"\b(?:is|are|was|were|whether) there\b|\bif there (?:is|are) (?:an?|any|some|one)\b|\b(?:find|look for|search)\b"
    r"|\bnot found\b|\bexist\w*|\bmissing\b|^\W*(?:is|are|was|were|do|does|did|has|have|can|could)\b"
    r"|\bgibt es\b|^\W*(?:ist|sind|hat|haben|war)\b|\bob\b|\bhay\b|\by a-t-il\b|\best-ce\b|\bc'è\b|\bhá\b"
    r"|有没有|是否|есть ли",
    re.IGNORECASE,
)
"""Questions that ask whether something is there, in several languages."""


def reported_failure(query: str, output: str) -> str:
    """Return the line in which an output reports a failure of the program; empty if it does not.

    Only short outputs are looked at that end with the report, or consist of it. If the question itself is about errors or
    messages, nothing is found.

    Example:
        >>> reported_failure("How many rows has data.csv?", "Error: the file does not exist")
        'Error: the file does not exist'
        >>> reported_failure("Which error does 1/0 raise?", "ZeroDivisionError: division by zero")
        ''
    """
    lines = list(filter(None, map(str.strip, output[:_MAX_CHARS].splitlines())))
    if not lines or len(lines) > _MAX_LINES or _ABOUT_FAILURE.search(query):
        return ""
    is_traceback = lines[0].startswith("Traceback (most recent call last)")
    if is_traceback or _FAILURE.match(lines[-1]) or all(map(_FAILURE.match, lines)):
        return lines[-1]
    return "" if _PLACEHOLDER.search(query) else next(filter(_PLACEHOLDER.search, lines), "")


def empty_output(query: str, output: str) -> bool:
    """Return whether an output holds no value, such as `None`, NaN or an empty frame, and the question mentions none.

    Example:
        >>> empty_output("What is the mean price?", "Mean price: nan")
        True
    """
    text = output.strip()
    is_short = 0 < len(text) <= _MAX_CHARS
    is_nothing = is_short and (bool(_NOTHING.fullmatch(text)) or _holds_only_nan(text) or _ends_without(text))
    return is_nothing and not _ABOUT_NOTHING.search(query)


def found_nothing(query: str, output: str) -> bool:
    """Return whether an output says no more than that nothing was found, which the question does not ask about.

    Example:
        >>> found_nothing("When did the University of Essex gain its status?", "No row found for location 'Essex'")
        True
        >>> found_nothing("Is there an order of Okoye?", "No order of Okoye was found.")
        False
    """
    is_asked = _ABOUT_NOTHING.search(query) or _WHETHER.search(query)
    return not is_asked and says_not_found(output)


def sums_nothing(query: str, output: str) -> bool:
    """Return whether an output has no other figure than 0.0, as the sum of no rows has; a count is 0 without decimals.

    Example:
        >>> sums_nothing("What did I spend in April?", "Spent: 0.0")
        True
    """
    known = set(_FIGURE.findall(query))
    figures = [figure for figure in _FIGURE.findall(output[:_MAX_CHARS]) if figure not in known]
    return bool(figures) and all(map(_ZERO.fullmatch, figures)) and not _ABOUT_NOTHING.search(query)


def says_not_found(output: str) -> bool:
    """Return whether an output says no more than that nothing was found."""
    return _NOT_FOUND.fullmatch(output.strip()) is not None


def _ends_without(text: str) -> bool:
    """Return whether one of a few lines has a label and no value."""
    lines = text.splitlines()
    return len(lines) <= _MAX_LINES and any(map(_LABELLED_NAN.fullmatch, map(str.strip, lines)))


def _holds_only_nan(text: str) -> bool:
    """Return whether a list, a dictionary or a series has no other values than NaN."""
    if text[0] in "[({" and text[-1] in "])}":
        items = [item.rpartition(":")[2].strip() for item in text[1:-1].split(",") if item.strip()]
    else:
        *rows, last = text.splitlines()
        if "dtype: " not in last:
            return False
        items = [row.rpartition(" ")[2] for row in rows]
    return bool(items) and all(map(_NAN.fullmatch, items))
