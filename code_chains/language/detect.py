"""Detect the language of a question."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, cast

from code_chains.errors import ConfigurationError
from code_chains.language.vocabulary import pattern, read_data

_DATA = read_data("detection.json")
LANGUAGES: dict[str, str] = {code: entry["name"] for code, entry in _DATA["languages"].items()}
"""Supported languages: ISO 639-1 code and English name."""
UNKNOWN = "und"
"""Any other language, as ISO 639-2 writes it: models answer in it, messages of the library are in English."""

_SCRIPT_NAMES = "ARABIC CJK CYRILLIC DEVANAGARI GREEK HANGUL HEBREW HIRAGANA KATAKANA THAI".split()
_SCRIPTS = dict(zip(_SCRIPT_NAMES, "ar zh ru hi el ko he ja ja th".split(), strict=True))
_OTHER_SIGNS = pattern(_DATA["other_signs"])
"""Letters, signs and phrases of other languages than those supported, in the scripts of these."""
_IDENTIFIED = {
    "LATIN": "cs de en es fr id it nl pl pt ro sv tr vi ca da no nn fi et hu hr sl sk lt lv sw eu sq is".split(),
    "CYRILLIC": "ru uk bg sr mk be kk ky mn tg".split(),
    "DEVANAGARI": "hi mr ne sa".split(),
}
"""Languages that the model tells, by script: the supported ones, and others."""


class _Pair(NamedTuple):
    """Two languages of one script: letters that only one of them has, and words of the second."""

    first: str
    second: str
    letters: re.Pattern[str]
    others: re.Pattern[str]
    words: re.Pattern[str] = re.compile("(?!)")


_PAIRS = (
    _Pair("ru", "uk", re.compile("[ыэъё]"), re.compile("[іїєґ]")),
    _Pair("ar", "fa", re.compile("[ةىأإيك]|\\bال"), re.compile("[پچژگکی]")),
    _Pair(
        *("zh", "ja"),
        re.compile(
            "[价总计值么对这为个额图销时问请让说读写转换过还从单龄颜统线应该没样经给结组级编语词识认记设证试详误连运进远选间际难页项预频风们优传亿两业书产仅的你找總數個這們與對圖銷吗呢到是哪如请谁谢显删画]"
        ),
        re.compile(
            "[売図値価検対総単変戻込択発経県実処両応続絵読転録験毎覧観円枠歳気駅広関歴暦従満労営楽済亜圧囲拡帰拠挙軽険圏顕効鉱雑焼乗専戦捜増帯遅鉄伝闘脳廃髪抜浜払辺訳緑齢]"
        ),
        re.compile("何[人日個件行回歳本枚年月]|合計|名前|件数|中央値|割合|一覧|月別"),
    ),
)
_A_WORD_IN_SIGNS = 3
"""How many Latin letters say as much as one Chinese, Japanese or Korean sign."""
_SCRIPT_SHARE = 1 / 3
_A_GUESS, _SURE, _SURE_OF_FEW = 0.25, 0.5, 0.9
_OF_MANY = frozenset(_DATA["shared"].split())
"""Words that stand in names and in other languages, often in English, as well: less than a word."""
_LESS, _A_SIGN, _OTHERS = 0.4, 2, 0.3
"""How many words one of many languages counts; how many words of other languages one of their signs counts; and how
many words of other languages outweigh one of a supported language."""
_SHORT, _SOME, _FEW = 3, 4, 8
"""Up to how many words a question is short, a model alone is not asked, and the words below tell more than it."""
_TYPICAL: dict[str, str] = _DATA["letters"]
"""Letters that confirm a language of which the model is sure."""


def _unaccented(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.translate(str.maketrans("łıđ", "lid")))
    return "".join(character for character in plain if not unicodedata.combining(character))


_WORDS = {
    code: frozenset(
        words.split() if code == "vi" or words > "ʯ" else [*words.split(), *map(_unaccented, words.split())]
    )
    for code, words in ((code, entry["words"]) for code, entry in _DATA["languages"].items())
}
"""Words of mathematics, data and grammar of the supported languages, for questions too short for the model. Some are of
several languages; those with accents are known without them, too."""
_LATIN = tuple(code for code in _IDENTIFIED["LATIN"] if code in LANGUAGES)
_OTHER_WORDS = frozenset(_DATA["others"].split()).difference(*_WORDS.values())
"""Words of other languages, by family and script; those of a supported language as well do not count."""
_WORD = re.compile(
    r"[^\W\d_](?:[^\W\d_]|['’-](?=[^\W\d_])|[\u0300-\u036f\u05b0-\u05c2\u064b-\u0655\u0900-\u0903\u093a-\u094f])*"
)
_ENGLISH = re.compile(
    r"\b(?:what|which|who|whose|where|when|how|many|much|the|of|and|does|from|with|are|were|each|every|between|find|show"
    r"|write|give|make|calculate|compute|convert|count|sort|plot|draw|please|should|would|number|numbers|to|for|solve"
    r"|print|loop|squared|using|return|function|implement|versus|vs)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"```.*?(?:```|\Z)"  # fences
    r"|`[^`\n]*`"  # code spans
    r"|https?://\S+"
    r"""|(?<![^\W\d_])(["'])(?:(?!\1).){1,400}?\1(?![^\W\d_])"""  # quoted text, but not an apostrophe
    r"|«[^»\n]{1,400}»|„[^“”\n]{1,400}[“”]|“[^”\n]{1,400}”|「[^」\n]{1,400}」"
    r"|\b\w+(?:[./\\]\w+)+\b"  # file names, paths, attributes
    r"|\b\w*[_\d]\w*\b"  # identifiers and numbers
    r"|\b[a-z]+[A-Z]\w*\b|\b[A-Z]{2,}\b|\b[A-Z][a-z]+[A-Z]\w*\b",
    re.DOTALL,
)
_CALL = re.compile(r"\b\w+\([^()\n]{0,80}\)|\b\w+\(")
_NAMES = {name.lower(): code for code, name in LANGUAGES.items()}


def detect_language(text: str, *, default: str = "en") -> str:
    """Detect the language of a question, as a code of `LANGUAGES`; `UNKNOWN` if it is in another one.

    Code, quoted text, file names, numbers and identifiers are ignored. Some scripts identify their language; of the others,
    known words decide in a short question, and else py3langid. In doubt, the result is `default`.

    Args:
        text: The question. Nothing in it raises.
        default: Returned in case of doubt; in a conversation, pass its language so far.

    Example:
        >>> detect_language("¿Cuál es la suma de los números del 1 al 5?")
        'es'
        >>> detect_language("计算 `the mean of x` 的平均值")
        'zh'
    """
    text = _CALL.sub(" ", unicodedata.normalize("NFC", text[:2000]))
    words = _CODE.sub(" ", text)
    letters = _letters(words)
    if not letters:  # All of it was code or quoted: better that than nothing.
        words = text
        letters = _letters(words)
    total, foreign = letters.total(), sum(letters[script] for script in _SCRIPTS)
    if foreign and foreign >= _SCRIPT_SHARE * total and not _is_english_about(words, letters):
        return _of_script(letters, words, default)
    if total > 2 * letters["LATIN"]:
        return UNKNOWN
    return _latin(words, default) if letters["LATIN"] else default


def check_language(language: object) -> str:
    """Return the code of a language of `LANGUAGES`, or `auto`; accept `"es-MX"`, `"ES"` and `"Spanish"`, too.

    Raises:
        ConfigurationError: It is none of these.
    """
    name = language.strip().lower() if isinstance(language, str) else ""
    code = _NAMES.get(name) or re.split("[-_]", name)[0]
    if code in ("auto", UNKNOWN) or code in LANGUAGES:
        return code
    raise ConfigurationError("language", language, f'"auto" or one of {", ".join(LANGUAGES)}')


def _letters(text: str) -> Counter[str]:
    """Count the letters of a text by script."""
    if text.isascii():
        return Counter("LATIN" for character in text if character.isalpha())
    scripts: Counter[str] = Counter()
    for character in text:
        if character.isalpha():
            script = unicodedata.name(character, "?").partition(" ")[0]
            scripts[script] += _A_WORD_IN_SIGNS if script in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else 1
    return scripts


def _is_english_about(words: str, letters: Counter[str]) -> bool:
    """Return whether it is an English question about a word in another script."""
    signs = sum(character.isalpha() and not character.isascii() for character in words)
    return letters["LATIN"] > 2 * signs and _is_english(words, re.findall(r"[A-Za-z]+", words))


def _of_script(letters: Counter[str], words: str, default: str) -> str:
    if letters["HIRAGANA"] + letters["KATAKANA"] and not letters["HANGUL"]:
        return "ja"  # Japanese is written with Chinese signs, too; Chinese without kana.
    script = max((script for script in letters if script in _SCRIPTS), key=letters.__getitem__)
    if _OTHER_SIGNS.search(words):
        return UNKNOWN
    pair = next((pair for pair in _PAIRS if pair.first == _SCRIPTS[script]), None)
    codes = (pair.first, pair.second) if pair else (_SCRIPTS[script],)
    if language := _of_words(_WORD.findall(words.lower()), (), default, codes):
        return language
    likely = default if default in codes else codes[bool(pair and pair.words.search(words))]
    if script in _IDENTIFIED:
        language, sure = _classify(script, words.lower())
        if sure >= _SURE and language not in codes:
            return UNKNOWN
        if default not in codes:
            least_of_one = _SURE if len(words.split()) > _SHORT else _SURE_OF_FEW
            if language not in codes or sure < (_A_GUESS if pair else least_of_one):
                likely = UNKNOWN
            elif sure >= _SURE:
                likely = language
    return _of_pair(pair, words.lower(), likely) if pair else likely


def _of_pair(pair: _Pair, words: str, likely: str) -> str:
    if pair.others.search(words):
        return pair.second
    return pair.first if pair.letters.search(words) else likely


def _latin(words: str, default: str) -> str:
    everything = _WORD.findall(words)
    # Single letters are names, as in "solve for y", though "y" is a word of Spanish: they only break ties.
    candidates = [word for word in everything if len(word) > 1 or not word.isascii()]
    letters = {word.lower() for word in everything} - {word.lower() for word in candidates}
    spanish = re.search("[¿¡]", words)
    if not candidates:
        return "es" if spanish else default
    if _is_english(words, candidates):
        return "en"  # Nearly all questions in English are seen at once, without loading a model.
    candidates = [word.lower() for word in candidates]
    signs = _OTHER_SIGNS.search(words)
    language = _of_words(candidates, letters, default, _LATIN, _A_SIGN if signs else 0)
    if spanish and language != UNKNOWN:
        return "es"
    if language is None and signs:
        return UNKNOWN
    if not language and (len(candidates) > 1 or not candidates[0].isascii()):
        language = _of_model(candidates, in_doubt=language == "")
    return language or default


def _of_model(candidates: Sequence[str], *, in_doubt: bool) -> str | None:
    """Return the language that the model is sure of; a word or letter of a short or doubtful question must be of it, too."""
    language, sure = _classify("LATIN", " ".join(candidates))
    if sure < (_SURE_OF_FEW if len(candidates) <= _FEW else _SURE):
        return None
    if language not in LANGUAGES:
        return None if in_doubt else UNKNOWN
    known = sum(word in _WORDS[language] for word in candidates)
    if in_doubt:
        return language if 2 * known >= len(candidates) else None
    typical = set(_TYPICAL.get(language, "")).intersection("".join(candidates))
    return language if known or typical or len(candidates) > _SOME else None


def _is_english(words: str, candidates: Sequence[str]) -> bool:
    """Return whether enough of it is English, and the rest may be; names may have any letters."""
    english = len(_ENGLISH.findall(words))
    return (
        english >= 2
        and 3 * english >= len(candidates)
        and all((word.isascii() or word[0].isupper()) and word not in _OTHER_WORDS for word in candidates)
    )


def _of_words(
    candidates: Sequence[str], letters: Collection[str], default: str, codes: Sequence[str], others: int = 0
) -> str | None:
    """Return the language of most of a few words, or of the letters among them.

    It is "" if the words that are known do not decide: several languages have as many of them, or they are less than
    words. It is None if they say nothing: none is known, too few are, or there are too many words.
    """
    if len(candidates) > _FEW:
        return None
    weights = [(word, _LESS if word in _OF_MANY else 1.0) for word in candidates]
    counts = {code: sum(weight for word, weight in weights if word in _WORDS[code]) for code in codes}
    most = max(counts.values())
    others += sum(word in _OTHER_WORDS for word in candidates)
    if others and others >= _OTHERS * most:
        return UNKNOWN
    best = [code for code in codes if counts[code] == most > 0]
    if default in best and (len(candidates) <= 2 or len(best) == 1):
        return default
    if len(best) > 1:
        shared = max(len(_WORDS[code].intersection(letters)) for code in best)
        best = [code for code in best if len(_WORDS[code].intersection(letters)) == shared > 0]
    if len(best) == 1 and 4 * most >= len(candidates) and _is_enough(best[0], most, len(candidates)):
        return best[0]
    return "" if len(best) > 1 or (most < 1 and best and len(candidates) <= _SHORT) else None


def _is_enough(language: str, most: float, of: int) -> bool:
    """Terms are English in many languages, and one word of a few may be a name."""
    return most > 1 or (most == 1 == of and language != "en") or (language not in _LATIN and 1 in (most, of))


class _Identifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


def _classify(script: str, text: str) -> tuple[str, float]:
    """Return the most likely language of a script, and how likely it is among those of the script."""
    try:
        ranked = dict(_identifier().rank(text))
    except OSError:  # Its model is unpacked in a temporary folder, which some containers lack.
        return UNKNOWN, 0.0
    likely = {language: ranked[language] for language in _IDENTIFIED[script]}
    best = max(likely, key=likely.__getitem__)
    return best, likely[best] / (sum(likely.values()) or 1.0)


@functools.lru_cache(maxsize=1)
def _identifier() -> _Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return cast("_Identifier", LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))


def language_name(code: str) -> str:
    """Return what a model is told of a language: its name in English, or how to find it."""
    return "the language of the question" if code == UNKNOWN else LANGUAGES.get(code, code)
