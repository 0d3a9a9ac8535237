"""Detect the language of a question."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, cast

from code_chains.errors import ConfigurationError

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
"""Supported languages: ISO 639-1 code and English name."""
UNKNOWN = "und"
"""Any other language, as ISO 639-2 writes it: models answer in it, messages of the library are in English."""

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


_FOREIGN_SIGNS = re.compile(
    r"[æøőűģķļņėųāēīľĺŕ]|[ђјљњћџѓќѕәғқңөұүһў]|[ٹڈڑےںھہێۆڵڕښږځڅډړۍ]|ळ|\b(?:е|колко|колико|aký|aká|aké|ktor[ýáé]|riadk\w*"
    r"|брой|редове|общ[ао]|средн[ао](?:та|то)?|просечна|вкупно|колку|एकूण|सरासरी|किती|आहे|कति"
    r"|hvilke[nt]|hvor|hvad|hva|gennemsnit\w*|gjennomsnitt\w*|antall|ilan|magkano|ang)\b",
    re.IGNORECASE,
)
"""Letters and words of other languages than those supported, in the scripts of these."""
_FOREIGN = {
    "LATIN": ["ca", "da", "no", "nn", "fi", "et", "hu", "hr", "sl", "sk", "lt", "lv", "sw", "eu", "sq", "is"],
    "CYRILLIC": ["bg", "sr", "mk", "be", "kk", "mn"],
    "DEVANAGARI": ["mr", "ne"],
}
"""Other languages that are told from those supported, by script."""


class _Pair(NamedTuple):
    """Two languages of one script: letters that only one of them has, and words that only the second has."""

    first: str
    second: str
    letters: re.Pattern[str]
    others: re.Pattern[str]
    words: re.Pattern[str]


_PAIRS = (
    _Pair(
        "ru",
        "uk",
        re.compile("[ыэъё]", re.IGNORECASE),
        re.compile("[іїєґ]", re.IGNORECASE),
        re.compile(
            r"\b(?:як|яка|яке|який|сума|суму|суми|порахуй|посортуй|обчисл\w*|знайди|що|це|таблиця|середнє|медіана|намалюй"
            r"|добуток|кожного|чи|або|продаж[іу]|рядок|стовпець|просте|всього|зараз|тепер)\b",
            re.IGNORECASE,
        ),
    ),
    _Pair(
        "ar",
        "fa",
        re.compile("[ةىأإيك]|\\bال"),
        re.compile("[پچژگکی]"),
        re.compile(r"\b(?:اعداد|عدد|است|را|از|تا|ها|فروش|نمودار|کن|چند)\b"),
    ),
    _Pair(
        "zh",
        "ja",
        re.compile(
            "[价总计值么对这为个额图销时问请让说读写转换过还从单龄颜统线应该没样经给结组级编语词识认记设证试详误连运进远选间际难页项预频风们优传亿两业书产仅的你找總數個這們與對圖銷吗呢到是哪]"
        ),
        re.compile("[売図値価検対総単変戻込択発経県実処両応続絵読転録験毎覧観画円枠歳何]"),
        re.compile("合計|平均|計算|表示|件数|中央値|割合|一覧|月別"),
    ),
)
_A_WORD_IN_SIGNS = 3
"""How many Latin letters say as much as one Chinese, Japanese or Korean sign."""
_SCRIPT_SHARE = 1 / 3
_SURE, _SURE_OF_FEW = 0.5, 0.9
_SHORT = 3
"""Up to how many words a question is short."""
_OF_MANY = frozenset(
    re.findall(r"\w+", "as van la le el il lo les las los die das un una do da de en is in dan den per os")
)
"""Words that stand in names and in other languages as well."""

_FEW = 8
"""Up to how many words the words below tell more than the model."""
_WORDS = {
    code: frozenset(words.split())
    for code, words in {
        "cs": "součet průměr medián seznam graf seřaď spočítej kolik jaký jaká jaké je od do čísel čísla slova prvočíslo"
        " prvočísla tabulka řádek sloupec počet nakresli najdi tržby prodej měsíc",
        "de": "summe mittelwert durchschnitt median liste diagramm sortiere berechne zeige zeichne zähle wie was ist sind"
        " die der das von bis und in zahlen zahl wörter prim primzahl primzahlen gerade ungerade tabelle zeile spalte"
        " umsatz verkäufe monat jahr fläche kreis radius jetzt",
        "en": "a sum mean median average sort count area circle radius prime primes number numbers integer integers even odd"
        " below above rows columns table word words file files who what which how many is are in the of and from to by"
        " show find draw each month year sales values chart reverse string squares factors list solve for print loop over"
        " squared write return implement using roots equation",
        "es": "suma media promedio mediana lista gráfico gráfica ordena calcula muestra dibuja cuenta cuántos cuál es de la"
        " las los el un una del y a números número palabras primo primos pares impares tabla fila columna ventas mes año"
        " área círculo radio ahora",
        "fr": "somme moyenne médiane liste graphique trie calcule montre dessine compte combien quel quelle est de la le les"
        " du des à et un une nombres nombre mots premier premiers pairs impairs tableau ligne colonne ventes mois année"
        " aire cercle rayon maintenant",
        "id": "jumlah rata median daftar grafik urutkan hitung tampilkan gambar berapa apa adalah dari sampai dan"
        " bilangan angka kata prima genap ganjil tabel baris kolom penjualan bulan tahun luas lingkaran sekarang",
        "it": "somma media mediana lista elenco grafico ordina calcola mostra disegna conta quanti qual quale è da di della"
        " delle dei del il lo la le un una e a numeri numero parole primo primi pari dispari tabella riga colonna vendite"
        " mese anno area cerchio raggio adesso ora",
        "nl": "som gemiddelde mediaan lijst grafiek sorteer bereken toon teken tel hoeveel wat welke is zijn de het van tot"
        " en een getallen getal woorden priemgetal even oneven tabel rij kolom verkopen omzet maand jaar cirkel straal nu",
        "pl": "suma średnia mediana lista wykres posortuj oblicz pokaż narysuj policz ile jaka jaki jest od do i liczb"
        " liczba słowa pierwsza parzyste nieparzyste tabela wiersz kolumna sprzedaż miesiąc rok pole koła promień teraz",
        "pt": "soma média mediana lista gráfico ordene ordena calcule calcula mostre desenhe conte quantos qual é de a o as"
        " os da das do dos um uma e números número palavras primo primos pares ímpares tabela linha coluna vendas mês ano"
        " área círculo raio agora",
        "ro": "suma media mediana lista grafic sortează calculează arată desenează numără câte care este de la din și un o"
        " numere numerelor numărul cuvinte prim prime pare impare tabel rând coloană vânzări vânzărilor luna anul acum",
        "sv": "summa summan medelvärde medelvärdet median lista diagram sortera beräkna visa rita räkna hur vad är av från"
        " till och tal ord primtal jämna udda tabell rad kolumn försäljning månad år area cirkel radie nu",
        "tr": "toplam toplamı ortalama ortalaması medyan liste grafik sırala hesapla göster çiz say kaç nedir ne mi ve ile"
        " sayı sayılar sayıların kelime asal çift tek tablo satır sütun satış satışlar ay yıl alan daire şimdi",
        "vi": "tổng trung bình vị danh sách biểu đồ sắp xếp tính hiển thị vẽ đếm bao nhiêu là từ đến và các số nguyên tố"
        " bảng hàng cột doanh tháng năm diện tích",
    }.items()
}
"""A few words of mathematics, data and grammar, for questions too short for the model.

Some are of several languages.
"""
_LATIN = tuple(_WORDS)

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

    Code, quoted text, file names, numbers and identifiers are ignored. Some scripts identify their language; among the
    languages of the others py3langid decides. If the text is too short to be sure, the result is `default`.

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
    foreign = [(count, script) for script, count in letters.items() if script in _SCRIPTS]
    total = sum(letters.values())
    if (
        foreign
        and sum(count for count, _ in foreign) >= _SCRIPT_SHARE * total
        and not _is_english_about(words, letters)
    ):
        return _of_script(letters, words, default)
    if _FOREIGN_SIGNS.search(words) or sum(letters.values()) > 2 * letters["LATIN"]:
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
    language = _SCRIPTS[script]
    if _FOREIGN_SIGNS.search(words) or _is_foreign(script, words):
        return UNKNOWN
    pair = next((pair for pair in _PAIRS if pair.first == language), None)
    return _of_pair(pair, words, default) if pair else language


def _of_pair(pair: _Pair, words: str, default: str) -> str:
    if pair.others.search(words):
        return pair.second
    if pair.letters.search(words):
        return pair.first
    if default in (pair.first, pair.second):
        return default
    return pair.second if pair.words.search(words) else pair.first


def _latin(words: str, default: str) -> str:
    if re.search("[¿¡]", words):
        return "es"
    # Single letters are names, as in "solve for y", though "y" is a word of Spanish: they only break ties.
    everything = re.findall(r"[^\W\d_]+", words)
    candidates = [word for word in everything if len(word) > 1 or not word.isascii()]
    letters = {word.lower() for word in everything} - {word.lower() for word in candidates}
    if not candidates:
        return default
    if _is_english(words, candidates):
        return "en"  # Nearly all questions in English are seen at once, without loading a model.
    candidates = [word.lower() for word in candidates]
    if language := _of_words(candidates, letters, default):
        return language
    if len(candidates) == 1 and candidates[0].isascii():
        return default
    language, sure = _classify("LATIN", " ".join(candidates))
    if sure < (_SURE_OF_FEW if len(candidates) <= _SHORT else _SURE):
        return default
    return language if language in LANGUAGES else UNKNOWN


def _is_foreign(script: str, words: str) -> bool:
    """Return whether a text is surely in another language than those supported of its script."""
    if script not in _FOREIGN or any(
        pair.letters.search(words) for pair in _PAIRS if pair.first == _SCRIPTS[script]
    ):
        return False
    language, sure = _classify(script, words.lower())
    return sure >= _SURE and language in _FOREIGN[script]


def _is_english(words: str, candidates: Sequence[str]) -> bool:
    """Return whether enough of it is English, and the rest may be; names may have any letters."""
    english = len(_ENGLISH.findall(words))
    return (
        english >= 2
        and 3 * english >= len(candidates)
        and all(word.isascii() or word[0].isupper() for word in candidates)
    )


def _of_words(candidates: Sequence[str], letters: Collection[str], default: str) -> str | None:
    """Return the language of most of a few words; None if no language has more of them, or of the letters among them."""
    if len(candidates) > _FEW:
        return None
    counts = {code: sum(word in vocabulary for word in candidates) for code, vocabulary in _WORDS.items()}
    best = [code for code, count in counts.items() if count and count == max(counts.values())]
    known = set(candidates).intersection(*(_WORDS[code] for code in best)) if best else set()
    if 1 < len(candidates) <= _SHORT and known and known <= _OF_MANY:
        return default
    if default in best and len(candidates) <= 2:
        return default
    if len(best) > 1:
        most = max(len(_WORDS[code].intersection(letters)) for code in best)
        best = [code for code in best if len(_WORDS[code].intersection(letters)) == most > 0]
    return best[0] if len(best) == 1 and 3 * counts[best[0]] >= len(candidates) else None


class _Identifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


def _classify(script: str, text: str) -> tuple[str, float]:
    """Return the most likely language of a script, and how likely it is among those of the script."""
    supported = {"LATIN": _LATIN, "CYRILLIC": ("ru", "uk"), "DEVANAGARI": ("hi",)}[script]
    try:
        ranked = dict(_identifier().rank(text))
    except OSError:  # Its model is unpacked in a temporary folder, which some containers lack.
        return UNKNOWN, 0.0
    likely = {language: ranked[language] for language in (*supported, *_FOREIGN[script])}
    best = max(likely, key=likely.__getitem__)
    return best, likely[best] / (sum(likely.values()) or 1.0)


@functools.lru_cache(maxsize=1)
def _identifier() -> _Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return cast("_Identifier", LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))


def language_name(code: str) -> str:
    """Return what a model is told of a language: its name in English, or how to find it."""
    return "the language of the question" if code == UNKNOWN else LANGUAGES.get(code, code)
