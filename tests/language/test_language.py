"""Which language a question is in."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError
from code_chains.language import LANGUAGES, UNKNOWN, check_language, detect_language
from code_chains.testing import ScriptedModel, asks_for_code

QUESTIONS = {
    "ar": ("ما هو مجموع الأعداد من 1 إلى 5؟", "احسب المتوسط في sales.csv باستخدام pandas"),
    "cs": ("Jaký je průměr čísel 3, 5 a 8?",),
    "de": (
        "Wie groß ist die Standardabweichung von 2, 4 und 9?",
        "Sortiere die Liste mit `sorted(items, key=what)`",
    ),
    "el": ("Ποιο είναι το άθροισμα των αριθμών από 1 έως 5;",),
    "en": (
        "Which day of the week was 14 July 1789?",
        'How often is "el" in "el perro y el gato"?',
        "Plot revenue by month",
    ),
    "es": (
        "¿Cuántos números primos hay menores que 100?",
        "y ahora un gráfico",
        "Calcula la media de la columna 销售额",
    ),
    "fa": ("مجموع اعداد چند است؟ گزینه را بگو",),
    "fr": (
        "Quelle est la moyenne des notes dans notes.csv ?",
        'Trie df.sort_values(by="price") et montre les 3 premiers',
    ),
    "he": ("מה סכום המספרים מ-1 עד 5?",),
    "hi": ("1 से 5 तक की संख्याओं का योग क्या है?", "pandas से sales.csv का औसत निकालो"),
    "id": ("Berapa jumlah bilangan prima di bawah 50?",),
    "it": ("Qual è la somma dei numeri da 1 a 100?",),
    "ja": ("1から5までの数の合計はいくつですか?", "sales.csv の amount の合計"),
    "ko": ("1부터 5까지의 합은 얼마인가요?",),
    "nl": ("Wat is het gemiddelde van deze getallen: 3, 5, 8?",),
    "pl": ("Jaka jest suma liczb od 1 do 50?",),
    "pt": ("Qual é o produto mais vendido no arquivo vendas.csv?",),
    "ro": ("Care este suma numerelor de la 1 la 10?",),
    "ru": ("Сколько простых чисел меньше 100?", "Построй график sales.csv с помощью matplotlib"),
    "sv": ("Hur många dagar är det mellan jul och påsk?",),
    "th": ("ผลรวมของตัวเลขตั้งแต่ 1 ถึง 5 คือเท่าไร",),
    "tr": ("1'den 100'e kadar olan sayıların toplamı nedir?",),
    "uk": ("Скільки простих чисел менше 100 є?",),
    "vi": ("Tổng các số từ 1 đến 10 là bao nhiêu?",),
    "zh": ("1到5的数字之和是多少?", "用 pandas 计算 DataFrame 的 mean"),
}


@pytest.mark.parametrize(
    ("language", "question"),
    [(code, question) for code, several in QUESTIONS.items() for question in several],
)
def test_a_question_is_in_its_language(language: str, question: str) -> None:
    assert detect_language(question) == language


def test_each_language_is_asked_in() -> None:
    assert QUESTIONS.keys() == LANGUAGES.keys()


SHORT = {
    "ar": ("مجموع الأعداد",),
    "cs": ("Součet od 1 do 10",),
    "de": (
        *("Ist 97 prim?", "Summe von 1 bis 10", "Was kostet das?", "Wieviel ist 3 mal 4?", "Wie teuer?"),
        *("Rechne 20 Prozent von 80", "Was kosten 3 Äpfel?", "Wie oft?", "Was fehlt?", "Teile 100 durch 7"),
        *("Mehrwertsteuer von 100 Euro", "Noch einmal", "Jetzt sortiert", "Fläche eines Kreises"),
    ),
    "en": (
        "Who is Jürgen Müller in customers.csv?",
        "the population of São Paulo and Zürich",
        "area circle radius 3",
        "list even integers below 20",
        "How many Chinese characters are in 我喜欢编程?",
        "sort words",
        *"Care home costs|Chi square test|Der Spiegel headlines|Des Moines rain|Di Maria goals".split("|"),
        *"Say hello|Say goodbye|Tal chess games|Von Neumann age|Was Monday a holiday|Rita age".split("|"),
        "Pole vault records",
        "Don Quijote de la Mancha words count",
    ),
    "es": ("Suma de 1 a 10", "¿Es 97 primo?", "¡Hola!", "Media de ventas", "Ventas totales"),
    "fa": ("مجموع اعداد", "میانگین فروش"),
    "fr": ("Somme de 1 à 10", "Trie les mots", "Ventes totales"),
    "hi": ("योग", "औसत"),
    "it": ("Somma da 1 a 10", "Vendite totali", "quanti clienti?"),
    "ja": ("何歳?", "合計", "平均値", "売上合計"),
    "pl": ("Suma od 1 do 10",),
    "pt": (
        "Soma de 1 a 10",
        "Me\N{COMBINING ACUTE ACCENT}dia de vendas",
        "Vendas totais",
        "quantos clientes?",
    ),
    "ru": ("Сумма продаж", "Какая сумма?", "Посчитай сумму чисел", "сумма", "График", "Таблица"),
    "tr": ("Ortalama nedir?",),
    "uk": ("Яка сума?", "Порахуй суму чисел", "Посортуй слова"),
    "zh": ("总和", "平均值", "计算 1 到 10", "100以内的素数", "平均年龄"),
}


@pytest.mark.parametrize(
    ("language", "question"), [(code, question) for code, several in SHORT.items() for question in several]
)
def test_a_few_words_are_enough(language: str, question: str) -> None:
    assert detect_language(question) == language


@pytest.mark.parametrize(
    ("text", "before", "language"),
    [
        ("слова", "uk", "uk"),
        ("числа", "ru", "ru"),
        ("сумы", "uk", "ru"),
        ("підсумок", "ru", "uk"),
        ("مجموع", "fa", "fa"),
        ("القيمة", "fa", "ar"),
        ("合計", "zh", "zh"),
        ("分布", "ja", "ja"),
        ("总和", "ja", "zh"),
        ("売上", "zh", "ja"),
        ("Suma", "pl", "pl"),
        ("Suma", "ro", "ro"),
    ],
)
def test_a_conversation_keeps_its_language_unless_a_letter_contradicts(
    text: str, before: str, language: str
) -> None:
    assert detect_language(text, default=before) == language


def test_a_call_is_of_no_language() -> None:
    assert detect_language("sum(3)", default="de") == "de"


@pytest.mark.parametrize(
    "text",
    [
        *("", "2 + 2", "fibonacci(20)", "gcd 12 18", "As a table", "A as b", "Total per van", "Sales La Paz"),
        *("Café revenue", "Nur Berlin", "the van costs?"),
    ],
)
def test_what_cannot_be_told_is_of_the_default(text: str) -> None:
    assert detect_language(text, default="pt") == "pt"


@pytest.mark.parametrize(
    "text",
    [
        "Средна цена",
        "Брой редове",
        "Обща сума",
        "Počet riadkov",
        "Hvilken by?",
        "Hva er summen?",
        "कुल किती आहे?",
    ],
)
def test_a_neighbour_of_a_supported_language_is_unknown(text: str) -> None:
    assert detect_language(text) == UNKNOWN


BRIEF = """\
ar|ما مجموع الأعداد؟
ar|كم المتوسط؟
bg|Каква е сумата на числата?
bg|Колко е средната цена?
bn|সংখ্যাগুলোর যোগফল কত?
bn|গড় কত?
ca|Quina és la suma dels nombres?
ca|Quants dies té l'any?
cs|Jaký je součet čísel?
cs|Kolik dní má rok?
da|Hvad er summen af tallene?
da|Hvor mange dage har året?
de|Wie hoch ist die Summe?
de|Summe berechnen
el|Ποιο είναι το άθροισμα;
el|Πόσες μέρες έχει ο χρόνος;
en|Total sales?
en|Average price per region
es|¿Suma de los números?
es|Precio medio
et|Mis on arvude summa?
et|Mitu päeva on aastas?
fa|مجموع اعداد چقدر است؟
fa|میانگین قیمت؟
fi|Mikä on lukujen summa?
fi|Kuinka monta päivää vuodessa on?
fr|Somme des nombres ?
fr|Prix moyen par région
he|מה סכום המספרים?
he|כמה ימים בשנה?
hi|संख्याओं का योग क्या है?
hi|औसत कीमत?
hr|Koliki je zbroj brojeva?
hr|Koliko dana ima godina?
hu|Mennyi a számok összege?
hu|Hány nap van egy évben?
id|Berapa jumlah angka?
id|Rata-rata harga
it|Qual è la somma?
it|Prezzo medio per regione
ja|合計はいくつですか
ja|平均を計算して
ko|합계는 얼마입니까?
ko|평균 가격
lt|Kokia yra skaičių suma?
lt|Kiek dienų yra metuose?
nb|Hva er summen av tallene?
nb|Hvor mange dager har året?
nl|Wat is de som?
nl|Gemiddelde prijs per regio
pl|Jaka jest suma liczb?
pl|Ile dni ma rok?
pt|Qual é a soma?
pt|Preço médio por região
ro|Care este suma numerelor?
ro|Câte zile are anul?
ru|Какова сумма чисел?
ru|Средняя цена
sk|Aký je súčet čísel?
sk|Koľko dní má rok?
sr|Колики је збир бројева?
sr|Колико дана има година?
sv|Vad är summan av talen?
sv|Hur många dagar har året?
sw|Jumla ya nambari ni ngapi?
sw|Mwaka una siku ngapi?
ta|எண்களின் கூட்டுத்தொகை என்ன?
ta|சராசரி விலை?
th|ผลรวมคือเท่าไร
th|ราคาเฉลี่ย
tr|Sayıların toplamı nedir?
tr|Ortalama fiyat
uk|Яка сума чисел?
uk|Середня ціна
ur|اعداد کا مجموعہ کیا ہے؟
ur|اوسط قیمت کیا ہے؟
vi|Tổng các số là bao nhiêu?
vi|Giá trung bình
zh|总和是多少？
zh|平均价格
af|Wat is die som?
af|Hoeveel dae is daar?
af|Tel die reëls in die lêer
an|Quál ye la suma?
ast|¿Cuántos díes hai güei?
az|Neçə gün var?
az|Ortalama neçədir?
be|Колькі дзён?
be|Чаму?
bg|Начертай графика
bho|कतना दिन बा?
ca|Calcula la mitjana
ca|Quin és el total de vendes?
ca|Ordena la llista
cs|Kolik řádků má soubor?
cs|Soucet cen
de|Zaehle die Woerter
en|1.80 per litre, 6 litres per 100 km
eo|Kio estas la sumo?
es|Cuantos dias hay?
es|suma de precios
et|Mis on summa?
et|Arvuta summa
fa|فقط مردان
fi|Mikä on summa?
fi|Laske summa
fo|Hvat er summan?
ga|Cad é an tsuim?
gl|Cantos días hai?
gl|Cal é a media das vendas?
gl|Canto é a suma dos números?
ha|Nawa ne jimlar?
he|מיין את הרשימה
hi|औसत निकालो
hr|Koliki je zbroj?
hr|Nacrtaj graf
ia|Qual es le summa?
is|Hver er summan?
it|quanto fa 3 per 4
kk|График салу
ku|Kom çi ye?
ky|График тарт
lb|Wat ass d'Zomm?
mn|График зур
mr|सरासरी काढा
ms|Lukis graf
mt|X'inhi s-somma?
nb|Tell ordene i teksten
ne|योगफल कति हो?
oc|Quina es la soma?
pl|suma sprzedazy
ro|calculeaza media
ro|suma vanzarilor
sd|ڪيترا ڏينهن آهن؟
sl|Kakšna je vsota?
tg|Чанд сатр?
tr|satislarin toplami
ug|قانچە كۈن بار؟
uk|Зроби таблицю
uk|Чому?
ur|اوسط نکالو
yi|וויפל טעג?
zh|画图
zh|如何计算"""
"""Short questions with their languages, of which the library supports 25."""


@given(st.text(max_size=300))
def test_any_text_is_of_some_language(text: str) -> None:
    assert detect_language(text) in {*LANGUAGES, UNKNOWN}


@pytest.mark.parametrize(("code", "query"), [line.split("|") for line in BRIEF.splitlines()])
def test_a_short_question_is_never_told_to_be_in_another_language(code: str, query: str) -> None:
    assert detect_language(query, default="in doubt") in (code, UNKNOWN, "in doubt")


def test_most_short_questions_of_supported_languages_are_told() -> None:
    pairs = [line.split("|") for line in BRIEF.splitlines()]
    told = [detect_language(query, default="in doubt") == code for code, query in pairs if code in LANGUAGES]
    assert sum(told) >= 0.9 * len(told)


def test_a_language_beyond_the_list_is_answered_in_itself() -> None:
    told: list[str] = []

    def reply(messages: Any) -> str:
        told.append("\n".join(str(message.content) for message in messages))
        return "```python\nprint(2 + 3)\n```" if asks_for_code(messages) else "Summa on 5."

    with create_code_chain(ScriptedModel(reply)) as chain:
        result = chain.invoke({"query": "Mikä on lukujen 2 ja 3 summa?"})
    assert result["answer_language"] == UNKNOWN
    assert "in the language of the question" in told[0]
    assert "Answer in the language of the question." in told[1]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'xx'"):
        check_language("xx")


def test_a_plain_english_question_loads_no_model() -> None:
    program = (
        "import sys; from code_chains.language import detect_language as d;"
        "assert d('What is the sum of the numbers from 1 to 5?') == 'en'; sys.exit('py3langid' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    "question",
    [
        *(
            "Solve 3x + 5 = 20 for y",
            "Solve 3y + 5 = 20 for y",
            "Write fib(i)",
            "Write is_leap(y)",
            "plot y",
            "x vs y",
        ),
        *(
            "Loop over i",
            "Print i squared",
            "Plot x and y",
            "f(x) = x**2, g(y) = y + 1",
            "y = a*x + b",
            "sum(i for i in y)",
        ),
        *("Solve x + y = 10", "Compute a and b", "Sort a, e and o", "i, j and k", "Integrate x dx", "plot e"),
        *("Write fib(n) and print fib(i)", "matrix m times vector v", "Roots of x^2 - 5x + 6", "z"),
    ],
)
def test_single_letters_and_formulas_do_not_decide(question: str) -> None:
    assert detect_language(question) == "en"


@pytest.mark.parametrize("question", ["plot y", "x vs y", "z = 3", "f(i)", "fib(10)?"])
def test_a_formula_is_in_the_language_of_the_conversation(question: str) -> None:
    assert detect_language(question, default="de") == "de"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("¿Cuánto es x más y?", "es"),
        ("Calcula la suma de x y y", "es"),
        ("Löse 3x + 5 = 20 nach y auf", "de"),
        ("Narysuj wykres y od x", "pl"),
        ("Résous 3x + 5 = 20 pour y", "fr"),
        ("Calcola la somma di a e b", "it"),
    ],
)
def test_the_words_around_a_formula_decide(question: str, language: str) -> None:
    assert detect_language(question) == language


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("es-MX", "es"),
        ("ES", "es"),
        ("Spanish", "es"),
        ("pt_BR", "pt"),
        ("zh-Hant", "zh"),
        (" german ", "de"),
        ("AUTO", "auto"),
    ],
)
def test_a_language_may_be_named_in_several_ways(name: str, code: str) -> None:
    assert check_language(name) == code


@pytest.mark.parametrize("name", ["", "xx", "Klingon", "-", "e", None, 5])
def test_what_names_no_language_is_refused(name: object) -> None:
    with pytest.raises(ConfigurationError, match="language"):
        check_language(name)
