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

_SCRIPT_NAMES = "ARABIC CJK CYRILLIC DEVANAGARI GREEK HANGUL HEBREW HIRAGANA KATAKANA THAI".split()
_SCRIPTS = dict(zip(_SCRIPT_NAMES, "ar zh ru hi el ko he ja ja th".split(), strict=True))
_OTHER_SIGNS = re.compile(
    r"[æøőűģķļņėųāēīľĺŕəðþħġẁŵŷṣ]|[ђјљњћџѓќѕәғқңөұүһўҳҷӣӯӈҡ]|[ٹڈڑےںھہێۆڵڕښږځڅډړۍەۈۇۋڭېڪڏٻڄڃڇڍڻٽٿڀڙڳڱڦ]|اؤ\b|ळ"
    r"|\bוו(?:י|יפל|אס|ער|ען|ו)\b|[\u05f0-\u05f2]|\u05d0[\u05b7\u05b8]|l·l|(?<!\w)['’]n\b(?!['’])|\A[^и]*(?:і[^и]*[ыэё]|[ыэё][^и]*і)[^и]*\Z"
    r"|\b(?:mis on|cuál ye|wat is die|wat is it|qual es|summen av|is daar|dies ha)\b",
    re.IGNORECASE,
)
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
_OF_MANY = frozenset(
    "as van la le el il lo los las les des die un una do da de di del der das den du en is in dan per os say was"
    " von tal rita mean ne mi on no so to for visa pie tell total media man hat list mach dis sur si sin con e par"
    " come mare ve dos tot para conta data ja it of by area radius care cine cat face hay rand plus trace pour font"
    " pairs fait encore dove sans hoe toon stad wat tack bort sag kim gun var yap sil aya ay cum mai bao tong wer"
    " का ke solo sum nu ile bar all im na od co je ta tel bos harga pris sa comment male pro premier parole chi din"
    " luna bara este nas nos primo grande fila numero som summa jumlah сума сумма цена योग औसत के जोड़ कुल संख्या"
    " दिन साल को таблица".split()
)
"""Words that stand in names and in other languages, often in English, as well: less than a word."""
_LESS, _A_SIGN, _OTHERS = 0.4, 2, 0.3
"""How many words one of many languages counts; how many words of other languages one of their signs counts; and how
many words of other languages outweigh one of a supported language."""
_SHORT, _SOME, _FEW = 3, 4, 8
"""Up to how many words a question is short, a model alone is not asked, and the words below tell more than it."""
_TYPICAL = {"de": "äöüß", "es": "ñ", "pt": "ãõ", "pl": "łąęż", "cs": "řěů", "tr": "şğı", "ro": "ățș"}
"""Letters that confirm a language of which the model is sure."""
_TABLES = {
    "cs": "krát součet průměr průměrný medián seznam graf seřaď spočítej kolik jaký jaká jaké jak jsou od do čísel čísla"
    " číslo slova tabulku řádek řádky řádků sloupec počet nakresli najdi ukaž zobraz smaž prodej měsíc měsíců rok roku dní"
    " co kdo kde kdy proč který která které pouze jen muži ženy cena cen nejvyšší děkuji udělej věk teď ahoj první má soubor"
    " ze hodnoty",
    "de": "nach auf gewonnen dies ja viel große großer im löse summe mittelwert durchschnitt median liste diagramm sortiere"
    " berechne zeige zeichne zähle zaehle wie was ist sind die der das von bis und in zahlen zahl wörter woerter prim"
    " primzahl primzahlen tabelle zeile zeilen spalte umsatz monat jahr jetzt warum weshalb nur männer frauen sag lösche"
    " loesche leere welche welcher wer wo wann viele hat haben gibt es mach mache male anzahl je pro preis preise größte"
    " groesste höchste danke bitte hallo den ein eine einen mit ohne für datei tage wort werte kunden kostet kosten kommt"
    " wieviel teuer oft fehlt rechne teile durch noch einmal sortiert groß gesamt fläche eines steuer euro prozent mal"
    " wurzel fakultät primfaktoren quadratzahlen",
    "en": "hello hi yes a sum mean median average sort count area circle radius prime number numbers integer even odd rows"
    " columns table word words file files who what which how many is are in the of and from to by show find draw each month"
    " year sales values chart list solve for print over say tell please thanks why only men women age ages was were it its"
    " did can largest highest longest biggest top five first last price cost total per days day names name make give delete"
    " remove open all more now same on if not than between without my you row column data plot graph line bar",
    "es": "estas alta yo resuelve suma media promedio mediana lista gráfico gráfica ordena calcula muestra dibuja cuenta"
    " cuántos cuántas cuánto cuál es de la las los el un una del y a números número palabras primo primos tabla fila filas"
    " columna ventas mes año años área ahora qué quién cómo dónde cuándo por para solo hombres mujeres precio precios más"
    " alto grande hay tiene elimina borra haz dime hola gracias días edad datos primeros otra vez con sin en entre cada"
    " archivo resultados valores mi totales mensuales clientes",
    "fr": "ordre ont courbe résous somme moyenne médiane liste graphique trie calcule montre affiche dessine trace compte"
    " combien quel quelle quels quelles est de la le les du des à et un une nombres nombre mots premier premiers pairs"
    " tableau ligne lignes colonne ventes mois année maintenant pourquoi qui que où quand comment seulement hommes femmes"
    " supprime font fait fais dis bonjour merci prix plus âge âges jours dans fichier par pour sur avec sans données encore"
    " y entre sont valeurs ville totales totaux clients",
    "id": "tambah jumlah rata median daftar grafik urutkan hitung tampilkan gambar berapa apa apakah adalah dari sampai dan"
    " bilangan angka kata tabel baris kolom penjualan bulan tahun sekarang kenapa mengapa hanya pria wanita harga hapus"
    " kosong mana yang terbaik siapa di ke hari dalam setahun buat buatkan kasih terima tertinggi terbesar pelanggan pertama"
    " tolong cari setiap untuk dengan ini itu",
    "it": "alta prima linee perchè tutto risolvi somma media mediana lista elenco grafico ordina calcola mostra disegna"
    " conta quanti quante quanto qual quale quali è da di della delle dei del dal il lo la le i un una e a numeri numero"
    " parole primo primi tabella riga righe colonna vendite mese anno area ora fa perché che chi dove quando come solo"
    " uomini donne prezzo prezzi più alto elimina dimmi ciao grazie giorni sono ci età fai ancora volta con senza nel nella"
    " per ogni tra nomi città adesso valori totali clienti radice quadrata",
    "nl": "ja gewonnen los som gemiddelde mediaan lijst grafiek sorteer bereken toon teken tel hoeveel wat welke is zijn de"
    " het van tot en een getallen woorden even tabel rij rijen kolom verkopen omzet maand jaar nu waarom wie waar wanneer"
    " hoe alleen mannen vrouwen verwijder lege zeg hallo prijs prijzen hoogste grootste keer dagen heeft hebben bestand"
    " bedankt maak eerste klanten stad per met zonder voor uit waarden",
    "pl": "nie ja rozwiąż suma sumę średnia średnią średni mediana lista wykres posortuj oblicz pokaż narysuj policz ile ilu"
    " jaka jaki jest są od do i w z na liczb liczba słowa słów pierwsza pierwszą tabela tabelę wiersz wiersze kolumna"
    " sprzedaż sprzedaży miesiąc rok roku teraz dlaczego czemu kto co gdzie kiedy który która które tylko mężczyźni kobiety"
    " cena cen cenę usuń puste powiedz cześć dziękuję najwyższa największa razy dni ma był plik pliku zrób wiek wartości",
    "pt": "estas alta ordene resolva soma média mediana lista gráfico ordena calcule calcula mostre mostra desenhe desenha"
    " conte quantos quantas quanto qual quais é de a o as os da das do dos um uma e números número palavras primo primos"
    " tabela linha linhas coluna vendas mês ano área agora porque por que quem como quando apenas só homens mulheres preço"
    " preços mais alto remove apague vezes dias tem há não idade diga olá obrigado faça faz nomes cidade primeiras são com"
    " sem no na nos nas em para entre dados arquivo valores totais clientes",
    "ro": "rândurile prima rezolvă suma media mediana lista grafic sortează calculează arată desenează numără câte câți cât"
    " care este sunt de la din și un o numere numărul număr cuvinte prime pare tabel rând rânduri coloană vânzări vânzărilor"
    " lună anul acum ce cine unde când cum doar bărbați preț face ori șterge cel mai mare bună zile are fișierul mulțumesc"
    " fă vârsta medie pe cu fără pentru valori",
    "sv": "antal tabellen skriv ny lös summa summan medelvärde medelvärdet median lista diagram sortera beräkna visa rita"
    " räkna hur vad är av från till och tal ord primtal tabell rad rader kolumn försäljning månad år året area nu varför vem"
    " vilken vilket vilka var när många mycket bara män kvinnor ta bort tomma säg hej priser priserna priset pris högsta"
    " största gånger dagar har finns det en ett graf tack gör för med utan på ar den värden",
    "tr": "satışların satırları çöz toplam toplamı ortalama ortalaması medyan liste grafik sırala hesapla göster çiz say kaç"
    " nedir ne neden mi mı mu ve ile sayı sayılar sayıların sayısı tablo satır satırlar sütun satış satışlar ay aya aylara"
    " yıl şimdi sadece erkekler kadınlar fiyat fiyatı fiyatların sil boş yaş yaşı gün hangi kim nerede en büyük yüksek iyi"
    " var yap için göre merhaba teşekkürler teşekkür değerler kadar",
    "vi": "hai tổng trung bình vị danh sách biểu đồ sắp xếp tính hiển thị vẽ đếm bao nhiêu là từ đến và các số nguyên tố"
    " bảng hàng cột doanh tháng năm có tại sao vì chỉ nam giới nữ giá cao nhất xin chào cảm ơn tuổi khách thu theo của nhieu"
    " bieu đầu gì ai thắng những mấy ngày không cho tôi một xóa tệp tinh tong binh khach",
    "ru": "строка не есть сумма сумму суммы сколько среднее средний средняя медиана таблицу нарисуй найди посчитай построй"
    " что как кто почему где когда какой какая какое только мужчины женщины дней году строк строки файле файл удали сделай"
    " продажи продаж месяцам месяц возраст цена цены привет спасибо открой числа чисел число слова теперь сейчас это или"
    " больше самая самый самое первые первых скажи будет каждый для напиши отсортируй слов значения графиком график таблица",
    "uk": "як яка яке який які сума суму суми порахуй посортуй обчисли знайди що це таблиця таблицю середнє середній середня"
    " медіана намалюй кожного чи або продажу продажі рядок рядки рядків стовпець просте всього зараз тепер зроби чому хто де"
    " скільки тільки лише чоловіки жінки видали файлі дані графік днів року найвища найбільше дякую привіт перші виграв"
    " скажи слова слів число числа ціна вік побудуй значення",
    "ar": "ما كم من هو هي هل لماذا كيف أين متى ارسم احسب رسما عدد عمر العمر متوسط مجموع رجال نساء شكرا سعر في على إلى كل"
    " اعلى أعلى فاز ايام أيام الايام قائمة جدول رتب اكبر اسم مرحبا مبيعات و او ثم نعم لا قيمة رسم بياني",
    "fa": "اعداد عدد است را از تا ها های هم فروش نمودار کن چند چقدر مجموع مردان زنان چرا چه کی کیست سن میانگین رسم روز روزها"
    " تعداد سطر سطرها ستون بالاترین قیمت حذف خالی نشان بده متشکرم ممنون سلام جدول هر برای با در بزرگترین ماه سال بله متوسط",
    "hi": "क्या क्यों कौन कितना कितनी कितने है हैं की के को में से और पर तक औसत योग कुल निकालो बनाओ बताओ दिखाओ केवल सिर्फ"
    " पुरुष महिला बिक्री कीमत ग्राफ धन्यवाद नमस्ते सबसे ज्यादा अधिक पंक्ति पंक्तियाँ पहली दिन साल संख्या अब सूची करो करें"
    " जोड़ नाम लोग हाँ",
}
"""Words of mathematics, data and grammar of the supported languages, for questions too short for the model. Some are of
several languages; those with accents are known without them, too."""
_OTHER_TABLE = (
    "ye d'os prexi watter dankie ouderdom збир د només dae reëls lêer prys hoekom wys hvilke hvilken hvilket hvor hvad hva"
    " hver hvat hvem hvorfor hvornår gennemsnit gennemsnittet gjennomsnitt gjennomsnittet antall tegn teksten menn beregn"
    " beregne lav vis takk hent vinn kven kvifor eg ikkje ikke mange måned fordi vann sýndu línur margir og summuna wéi"
    " wéivill wéivil deeg firwat huet zomm d'zomm präis täg mitjana quin quina quins quines és dels amb què més dones preu"
    " preus llista fes gràcies taula vendes primeres quants quantes té els cantos canto cal unha prezo prezos máis dúas"
    " onde jorns mòstra primièras perqué díes quál quantu hè sò chì cumu kiom kio kiu kiuj kial kiam kie quot kakšna kakšen"
    " kakšno vsota vsote povprečje zakaj nariši koliko prikaži najvišja hvala koliki zbroj zbir nacrtaj zašto samo tko"
    " najviša cijena prosjek gdje gde koji koja koje šta što redova izračunaj brojeva broj riadkov prečo súčet priemer aký"
    " aká aké ktorý ktorá ktoré ďakujem čo sú prvé súbor mikä mitkä missä milloin miksi kuka kuinka montako monta paljonko"
    " laske piirrä kaavio rivi riviä rivit hinta näytä kiitos keskiarvo lukujen järjestä päivää mitu kui palju kes kus miks"
    " arvuta joonista graafik rida failis näita ridu kõrgeim hind aitäh keskmine arvude päeva ainult kiek kokia koks pirmas"
    " eilutes cik rindu kik hány hol mikor miért mennyi melyik összeg összege átlag átlaga rajzolj az egy csak férfiak"
    " számold rendezd számok është pse cila cili kush më zergatik zenbat zein nork batuketa egun daude pwy swm yw'r cé"
    " mhéad tsuim líne x'inhi inhi s-somma nece qrafik hansı kimdir günü hesabla çi çend kî roj hene çima nechta nima uchun"
    " necha qancha narx qaysi o'rtacha chiz bor näçe näme ýeňdi berapakah lukis kira purata tunjukkan jadual paling nawa"
    " jimlar jimla lissafa nuna ya menene nani ngapi kwa nini siku jumla onyesha chora bakit ilan ilang ang mga sino araw"
    " magkano kabuuan presyo какъв каква какво какви колко брой редове реда ред общ обща общо средна средно средната защо"
    " кой коя кое начертай благодаря първите най е са намери изчисли сортирай само мъже жени числата сумата колики колика"
    " зашто редова има просечна просек прикажи хвала зошто колку вкупно графикон први першыя чаму колькі дзён якая якое"
    " якія пакажы дзякуй толькі мужчыны табліцу дзе калі сярэдняе чанд кадом сатр миёна миёнаро кун каш чаро кист нарх"
    " нархи баландтарин эмне канча ким кайсы тарт неге кім салу сал орташа кем яагаад хэд хэн хэдэн вэ бэ зур юу нийлбэр"
    " дундаж किती काय आहे आहेत एकूण सरासरी काढा कोण कधी कुठे सर्वात जास्त किंमत आलेख दाखवा कति कसले हो किन छ छन् योगफल कतना"
    " कवन बा बाटे बताईं काहे कः अस्ति किम् योगः रउआ कोन अछि کتنی کتنا کیا کون گراف اوسط نکالو کرو جیتا کا کل ده دی کىم بار"
    " פארוואס איז דער דאס און האט פון מיט טעג פרייז סומע"
)
"""Words of other languages, by family and script; those of a supported language as well do not count."""


def _unaccented(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.translate(str.maketrans("łıđ", "lid")))
    return "".join(character for character in plain if not unicodedata.combining(character))


_WORDS = {
    code: frozenset(
        words.split() if code == "vi" or words > "ʯ" else [*words.split(), *map(_unaccented, words.split())]
    )
    for code, words in {**dict.fromkeys(LANGUAGES, ""), **_TABLES}.items()
}
_LATIN = tuple(code for code in _IDENTIFIED["LATIN"] if code in LANGUAGES)
_OTHER_WORDS = frozenset(_OTHER_TABLE.split()).difference(*_WORDS.values())
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
