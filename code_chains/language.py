"""Which language a question is in."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from typing import Any, Protocol

from code_chains.errors import ConfigurationError

__all__ = ["LANGUAGES", "check_language", "detect_language"]

LANGUAGES = {
    "ar": "Arabic",
    "cs": "Czech",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fa": "Persian",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""The languages that are told apart: ISO 639-1 code and English name."""

_SCRIPTS = {
    "ARABIC": "ar",
    "CJK": "zh",
    "CYRILLIC": "ru",
    "DEVANAGARI": "hi",
    "GREEK": "el",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "THAI": "th",
}
_OTHERS = {"ru": ("uk", re.compile("[іїєґІЇЄҐ]")), "ar": ("fa", re.compile("[پچژگ]"))}
"""Languages that share a script, and the letters that only the second has."""
_LATIN = tuple(code for code in LANGUAGES if code not in {*_SCRIPTS.values(), "uk", "fa"})
_A_WORD_IN_SIGNS = 3
"""How many Latin letters say as much as one Chinese, Japanese or Korean sign."""
_SCRIPT_SHARE = 1 / 3
_SURE = 0.5

_ENGLISH = re.compile(
    r"\b(?:what|which|who|whose|where|when|how|many|much|the|of|and|does|from|with|are|were|each|every|between|find|show"
    r"|write|give|make|calculate|compute|convert|count|sort|plot|draw|please|should|would|number|numbers|to)\b",
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


def detect_language(text: str, *, default: str = "en") -> str:
    """The language of a question, as a code of `LANGUAGES`.

    Code, quoted text, file names, numbers and identifiers are left out, as they belong to no language. Other scripts than
    Latin tell themselves; among the languages of the Latin script py3langid decides, whose model is restricted to those
    that are known here. What is too short to be sure of is of the `default` language.

    Args:
        text: The question. Nothing in it raises.
        default: What to say where nothing can be told; in a conversation, the language so far.

    Example:
        >>> detect_language("¿Cuál es la suma de los números del 1 al 5?")
        'es'
        >>> detect_language("计算 `the mean of x` 的平均值")
        'zh'
    """
    words = _CODE.sub(" ", text[:2000])
    letters = _letters(words)
    if not letters:  # All of it was code or quoted: better that than nothing.
        words = text[:2000]
        letters = _letters(words)
    foreign = [(count, script) for script, count in letters.items() if script in _SCRIPTS]
    total = sum(letters.values())
    if foreign and sum(count for count, _ in foreign) >= _SCRIPT_SHARE * total:
        return _of_script(letters, words)
    return _latin(words, default) if letters["LATIN"] else default


def check_language(language: object) -> str:
    """A language of `LANGUAGES`, or `auto`.

    Raises:
        ConfigurationError: It is neither.
    """
    if language == "auto" or (isinstance(language, str) and language in LANGUAGES):
        return str(language)
    raise ConfigurationError("language", language, f'"auto" or one of {", ".join(LANGUAGES)}')


def _letters(text: str) -> Counter[str]:
    """How much of a text is in which script."""
    scripts: Counter[str] = Counter()
    for character in text:
        if character.isalpha():
            script = unicodedata.name(character, "?").partition(" ")[0]
            scripts[script] += _A_WORD_IN_SIGNS if script in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else 1
    return scripts


def _of_script(letters: Counter[str], words: str) -> str:
    if letters["HIRAGANA"] + letters["KATAKANA"] and not letters["HANGUL"]:
        return "ja"  # Japanese is written with Chinese signs, too; Chinese without kana.
    language = _SCRIPTS[max((script for script in letters if script in _SCRIPTS), key=letters.__getitem__)]
    other, only = _OTHERS.get(language, (language, None))
    return other if only and only.search(words) else language


def _latin(words: str, default: str) -> str:
    found = re.findall(r"[^\W\d_]+", words.lower())
    english = len(_ENGLISH.findall(words))
    if english >= 2 and 3 * english >= len(found) and words.isascii():
        return "en"  # Nearly all questions in English are seen at once, without loading a model.
    language, sure = _identifier().classify(" ".join(found))
    return language if sure >= _SURE else default


class _Identifier(Protocol):
    def classify(self, instance: str) -> tuple[str, float]: ...


@functools.lru_cache(maxsize=1)
def _identifier() -> _Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(_LATIN))
    return identifier  # type: ignore[no-any-return]
