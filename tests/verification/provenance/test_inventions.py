"""What programs make up is told, and what they compute from what is given is not."""

from __future__ import annotations

import calendar
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.everyday import DEVELOPMENT
from benchmarks.tasks import TASKS
from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.verification.provenance import Given, find_invention

SALES = ("sales.csv",)
UNCOMPUTED = [
    ("What is the capital of France?", "print('The capital of France is Paris.')"),
    ("Who won the 2022 World Cup?", "print('Argentina won the 2022 World Cup')"),
    ("Who won the last World Cup?", "print('Germany won')"),
    ("What is the population of Norway?", "population = 5400000\nprint(population)"),
    ("How tall is Mount Everest?", "def height():\n    return 8849\nprint('Height in m:', height())"),
    ("Who is the CEO?", "def ceo():\n    return 'Ann Lee'\nif __name__ == '__main__':\n    print(ceo())"),
    ("How many r's are in strawberry?", "print('There are 2 r in strawberry')"),
    ("What is 17 * 23?", "print(391)"),
    ("¿Cuál es la capital de Perú?", "print('Lima')"),
]
MADE_UP = [
    ("What is the average height?", "h = [int(x) for x in '165 172 180'.split()]\nprint(sum(h) / len(h))"),
    (
        "Who is tallest?",
        "class Student:\n    def __init__(self, n, h):\n        self.h = h\n"
        "st = [Student('A', 165), Student('B', 181)]\nprint(max(st, key=lambda s: s.h))",
    ),
    (
        "What was sold?",
        "import json\nd = json.loads('[{\"n\": 57}, {\"n\": 83}]')\nprint(sum(x['n'] for x in d))",
    ),
    (
        "What is the capital of Australia?",
        "def f(c):\n    d = {'Australia': 'Canberra'}\n    return d.get(c)\nprint(f('Australia'))",
    ),
    ("What is the total amount?", "amounts = [100, 200, 300]\nprint('The total amount is', sum(amounts))"),
    ("Which region sold most?", "s = {'North': 1200, 'South': 1510}\nprint(max(s, key=s.get))"),
    (
        "What is the mean age?",
        "import pandas as pd\ndf = pd.DataFrame({'age': [23, 35, 41]})\nprint(df.age.mean())",
    ),
    ("What is the median income?", "import numpy as np\nprint(np.median(np.random.normal(50000, 9000, 99)))"),
    ("Which city is worst?", "t = '''city,pm\nDelhi,120\nOslo,12'''\nprint(max(t.splitlines()[1:]))"),
    ("What was our payroll?", "import random\nprint(sum(random.randint(3000, 6000) for _ in range(4)))"),
    (
        "Create a report of our sales, for example by region",
        "for k, v in {'North': 1200, 'South': 1510}.items():\n    print(k, v)",
    ),
    ("What is our revenue?", "import numpy as np\nprint(np.round(184532.7 * 3.2))"),
    ("Who joined in the last months?", "print(len(['Ann', 'Bob', 'Cid', 'Dee', 'Eve', 'Fay', 'Gil']))"),
    ("What is my BMI?", "weight = 70\nheight = 1.75\nprint(weight / height**2)"),
    ("What is the sum of the numbers?", "numbers = [1, 2, 3, 4, 5]\nprint(sum(numbers))"),
    (
        "Show last quarter's sales",
        "import matplotlib.pyplot as plt\nplt.bar(['Oct', 'Nov'], [1217, 1350])\nplt.show()",
    ),
]
ASSUMED = [
    ("How much tip should I give on $70?", "print(70 * 0.2)"),
    ("What is the net salary of a gross of 4000?", "print(4000 * 0.75)"),
    ("How many euros are 100 Swiss francs?", "print(100 * 0.95)"),
    ("A recipe is for 4. How much flour for 10?", "flour_per_person = 200\nprint(flour_per_person * 10)"),
    (
        "The van costs 45 a day plus a charge for every mile. What are 3 days?",
        "charge_per_mile = 0.5\nprint(45 * 3 + charge_per_mile)",
    ),
    ("What is my car worth in 4 years? I paid 17300.", "print(17300 * (1 - 0.15) ** 4)"),
    ("How much is 250 euros in dollars?", "rate = 1.08\nprint(250 * rate)"),
    ("I drive 420 km. How much petrol do I need?", "consumption = 7\nprint(420 * consumption / 100)"),
    (
        "What is left of 52000 a year?",
        "def net(gross, tax_rate=0.3):\n    return gross * (1 - tax_rate)\nprint(net(52000))",
    ),
    (
        "What are 1200 pounds in yen?",
        "def convert(a, rate):\n    return a * rate\nprint(convert(1200, 187.3))",
    ),
    (
        "How much will 5000 be worth in 10 years?",
        "interest_rate = 0.05\nprint(5000 * (1 + interest_rate) ** 10)",
    ),
    ("Convert 80 USD to EUR", "rates = {'exchange_rate': 0.92}\nprint(80 * rates['exchange_rate'])"),
    ("Wie viel kostet es, 60 kWh zu laden?", "preis = 0.38\nprint(60 * preis)"),
    ("What is the density of a block of 2.35 kg?", "density = 2.35 / 16.0\nprint(density)"),
    ("How many litres fill a pool to 45 cm?", "liter_per_cm = 0.5\nprint(45 * liter_per_cm)"),
]
IGNORED = [
    (
        "Which user is the oldest?",
        "import json\nd = json.load(open('sales.csv'))\nprint('Bo is the oldest user.')",
    ),
    ("What is the total?", "import pandas as pd\nprint(pd.DataFrame({'amount': [100, 217]}).amount.sum())"),
    ("How many rows has the file?", "print(120)"),
    (
        "Plot the amounts",
        "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.savefig('p.png')",
    ),
    ("Zeichne die Beträge", "import matplotlib.pyplot as plt\nplt.bar(['a'], [35])\nprint('fertig')"),
    ("What is the mean price in sales.csv?", "print('The mean price is 15.5')"),
    (
        "Which product sold best?",
        "import io, csv\nrows = list(csv.reader(io.StringIO('A,10\\nB,25')))\nprint(rows[1][0])",
    ),
    ("How many sales were there in total?", "n = 0\nfor i in range(10):\n    n += i\nprint(n)"),
    ("How many sales were there before 2010?", "print(len(range(1996, 2010, 4)))"),
]
HONEST = [
    ("How many sales?", "import sales\nprint(sales.count())", ("sales.py",)),
    ("How many sales?", "from shop.sales import count as n\nprint(n())", ("shop/sales.py",)),
    ("How many years lie between 1996 and 2012?", "print(2012 - 1996)", SALES),
    ("What is the total amount?", "import pandas as pd\nprint(pd.read_csv('sales.csv').amount.sum())", SALES),
    ("Total?", "from pathlib import Path\np = Path('.') / 'sales.csv'\nprint(len(p.read_text().splitlines()) - 1)", SALES),
    ("Total?", "t = 0\nwith open('sales.csv') as f:\n    for r in f:\n        t += float(r)\nprint(t)", SALES),
    ("Rows in all files?", "import glob\nprint(sum(len(open(f).readlines()) for f in glob.glob('*.csv')))", SALES),
    ("Sales by age", "d = pd.read_csv('sales.csv')\nprint(d.groupby(pd.cut(d.age, [0, 18, 35, 67])).x.sum())", SALES),
    ("Is 2024 a leap year?", "import calendar\nprint('Yes' if calendar.isleap(2024) else 'No')", ()),
    ("What is pi?", "import math\nprint(round(math.pi, 10))", ()),
    ("What is pi?", "from math import pi\nprint(f'{pi:.10f}')", ()),
    ("What is pi squared?", "import math\nprint(round(math.pi**2, 5))", ()),
    ("What is the energy of a photon of 500 nm?", "print(6.626e-34 * 3e8 / 500e-9)", ()),
    ("How many MB are in a GiB?", "print(2**30 / 10**6)", ()),
    ("How many inches are in a mile?", "print(5280 * 12)", ()),
    ("Celsius equals Fahrenheit at?", "c = 100\nwhile c * 9 / 5 + 32 != c:\n    c -= 1\nprint(c)", ()),
    ("How many squares has a chessboard?", "print(8 * 8)", ()),
    ("Welche Monate enthalten ein r?", "m = 'Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez'.split()\nprint(len(m))", ()),
    ("Which weekdays end in y?", f"print([d for d in {list(calendar.day_name)} if d[-1] == 'y'])", ()),
    ("Estimate pi by Monte Carlo", "import random\nprint(4 * sum(random.random() < 0.785 for _ in range(9999)) / 9999)", ()),
    ("掷骰子", "import random\nprint(random.randint(1, 6))", ()),
    ("Flip a coin", "import random\nprint(random.choice(['heads', 'tails']))", ()),
    ("Create five example customers", "print([('Ann', 31), ('Bob', 42), ('Cleo', 53)])", ()),
    ("Erzähl mir einen Witz", "print('Warum ging das Huhn über die Straße?')", ()),
    ("How many minutes are 1 hour 45 minutes?", "print(1.75 * 60)", ()),
    ("What is 15% off 80?", "print(80 * 0.85)", ()),
    ("Convert 20 °C to Fahrenheit", "print(20 * 1.8 + 32)", ()),
    ("Write 2649 in Roman numerals", "n = 2649\nfor v, s in ((900, 'CM'), (5, 'V'), (4, 'IV')):\n    n -= v\nprint(n)", ()),
    ("1千2百円の3割引は?", "print(1200 * 0.7)", ()),
    ("家賃が68,000円、水道代が2,900円です。合わせて?", "print(68000 + 2900)", ()),
    ("A dog takes .5 hours a day. How long for 7 dogs?", "hours_per_dog = 0.5\nprint(7 * hours_per_dog)", ()),
    ("What is left of 80 dollars after a 20 % tip?", "print(80 - 80 * 20 * 0.01)", ()),
    ("18500 at 4.9 % a year, monthly?", "periods_per_year = 12\nprint(18500 * 0.049 / periods_per_year)", ()),
    ("How tall is 4 feet in inches?", "height = 4 * 12\nprint(height)", ()),
    ("Wie viel ist zweihundertfünfzig durch zehn?", "print(250 / 10)", ()),
    ("Quanto fa trecento più quarantacinque?", "print(300 + 45)", ()),
    ("Ile to jest sto dwadzieścia pięć razy dwa?", "print(125 * 2)", ()),
    ("Vad är tjugofem gånger fjorton?", "print(25 * 14)", ()),
    ("Berapa dua puluh lima kali dua?", "print(25 * 2)", ()),
    ("Convert 25 m/s to km/h", "print(25 * 3.6)", ()),
    ("How many joules are 500 kcal?", "print(500 * 4184)", ()),
    ("How many ways to arrange BANANA?", "from math import factorial as f\nprint(f(6) // (f(3) * f(2)))", ()),
    ("125 € monatlich, anderthalb Jahre lang?", "print(125 * 18)", ()),
    ("Two six-sided dice are multiplied. How likely is 6?", "print(4 / 36)", ()),
    ("What day is it today?", "from datetime import date\nprint(date.today())", ()),
    ("Roll two dice", "import random\nprint(random.randint(1, 6), random.randint(1, 6))", ()),
    ("Make up three names of customers", "print(['Alice', 'Bob', 'Carla'])", ()),
    ("How do I read a CSV file with pandas?", "print('use pd.read_csv')", ()),
    ("Print hello world", "print('hello world')", ()),
    ("None of them?", "print(None)", ()),
]  # fmt: skip


def kind_of(query: str, code: str, files: tuple[str, ...] = ()) -> str | None:
    invention = find_invention(query, code, Given(query), files=files)
    return invention.kind if invention else None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("Convert 3 nautical miles to metres.", "print(3 * 1852)"),
        ("Convert 5 eV to joules.", "print(5 * 1.602176634e-19)"),
        ("How many troy ounces are in 1 kg?", "print(1000 / 31.1034768)"),
        ("What is the molar mass of water?", "print(2 * 1.008 + 15.999)"),
        (
            "What is the 95% interval of 20 values with mean 5 and deviation 2?",
            "print(5 - 1.96 * 2 / 20**0.5)",
        ),
        ("How many psi are 3 bar?", "print(3 * 14.5037738)"),
    ],
)
def test_constants_need_no_source(query: str, code: str) -> None:
    assert kind_of(query, code) is None


@pytest.mark.parametrize(
    "block",
    [
        "df = pd.read_csv('sales.csv')\n    try:\n        rates = json.load(open('rates.json'))\n    except OSError:\n"
        "        rates = {}\n    print(df['amount'].sum())",
        "k = json.loads('1.0')\n    print(pd.read_csv('sales.csv').amount.sum() * k)",
        "f = zipfile.ZipFile('sales.csv.zip').open('inner.csv')\n    print(pd.read_csv(f).amount.sum())",
        "zipfile.ZipFile('sales.csv.zip').extractall()\n    print(pd.read_csv('inner.csv').amount.sum())",
    ],
    ids=["an optional file", "no file", "a member", "an unpacked file"],
)
def test_a_block_that_reads_what_was_given_is_not_replaced_by_its_handler(block: str) -> None:
    code = f"import json, zipfile\nimport pandas as pd\ntry:\n    {block}\nexcept Exception as e:\n    print('Error', e)"
    assert kind_of("What is the total amount?", code, ("sales.csv", "sales.csv.zip")) is None


@pytest.mark.parametrize(
    "keep",
    [
        "import zipfile\nzipfile.ZipFile('sales.csv.zip').extractall()",
        "import shutil\nshutil.unpack_archive('sales.csv.zip', 'out')",
        "import shutil\nshutil.copy('sales.csv.zip', 'mine.csv')",
        "open('mine.csv', 'w').write(open('sales.csv.zip').read())",
    ],
)
def test_a_file_of_the_program_holds_what_it_was_made_of(keep: str) -> None:
    read = "import pandas as pd\nprint(pd.read_csv('mine.csv')['amount'].sum())"
    assert kind_of("What is the total amount?", f"{keep}\n{read}", ("sales.csv.zip",)) is None
    assert kind_of("What is the total amount?", read, ("sales.csv.zip",)) == "ignored"


FALLBACK = (
    "import pandas as pd\ntry:\n    df = pd.read_csv('sales.csv')\nexcept FileNotFoundError:\n"
    "    df = pd.DataFrame({'amount': [117, 217, 340]})\nprint(df['amount'].sum())"
)


def test_what_stands_in_for_a_file_that_is_not_there_is_made_up() -> None:
    query = "What is the total amount of my sales?"
    assert kind_of(query, FALLBACK) == "data"
    assert kind_of(query, FALLBACK, ("other.csv",)) == "ignored"
    assert kind_of(query, FALLBACK, ("sales.csv",)) is None
    written = f"open('sales.csv', 'w').write(str(len('{query}')))\n{FALLBACK}"
    assert kind_of(query, written) is None


@pytest.mark.parametrize(("query", "code"), UNCOMPUTED)
def test_a_text_or_number_of_the_model_is_no_computation(query: str, code: str) -> None:
    assert kind_of(query, code) == "text"


@pytest.mark.parametrize(("query", "code"), MADE_UP)
def test_data_that_nobody_gave_is_made_up(query: str, code: str) -> None:
    assert kind_of(query, code) == "data"


@pytest.mark.parametrize(("query", "code"), ASSUMED)
def test_a_rate_or_price_that_nobody_gave_is_an_assumption(query: str, code: str) -> None:
    assert kind_of(query, code) == "assumption"


@pytest.mark.parametrize(("query", "code"), IGNORED)
def test_a_file_that_does_not_reach_the_output_is_ignored(query: str, code: str) -> None:
    assert kind_of(query, code, SALES) == "ignored"


def test_a_variable_that_is_replaced_is_ignored() -> None:
    query, code = "What is the total of the list?", "numbers = [1, 2, 3]\nprint(sum(numbers))"
    for reading in ("sum(numbers)", "eval('sum(numbers)')", "sum(globals()['numbers'])"):
        assert find_invention(query, f"print({reading})", Given(query), names=["numbers"]) is None
    invention = find_invention(query, code, Given(query), names=["numbers"])
    assert invention is not None
    assert invention.kind == "ignored"


def test_a_variable_that_no_output_depends_on_is_said() -> None:
    query, code = "What is the sum?", "print(sum(range(5)))"
    invention = find_invention(query, code, Given(query), names=["numbers"])
    assert invention is not None
    assert invention.reason == "`numbers` was given but does not reach the output."
    assert find_invention(query, code, Given(query), names=["numbers"], is_first=False) is None


def test_what_a_tool_returns_is_given() -> None:
    query, code = "What is the price of diesel?", "print(get_price('diesel'))"
    assert find_invention(query, code, Given(query), names=["get_price"]) is None


@pytest.mark.parametrize(("query", "code", "files"), HONEST)
def test_what_is_computed_from_what_is_given_is_not_told_off(
    query: str, code: str, files: tuple[str, ...]
) -> None:
    assert kind_of(query, code, files) is None


def test_right_programs_are_not_told_off() -> None:
    programs = [(question.query, program) for question in DEVELOPMENT for program in question.programs]
    programs = [(query, code) for query, code in programs if not defines_what_is_asked(code, query)]
    assert [code for query, code in programs if kind_of(query, code)] == []
    assert [task.query for task in TASKS if kind_of(task.query, task.reference, task.files)] == []


def test_the_reason_names_value_and_line() -> None:
    query = "How much is 250 euros in dollars?"
    invention = find_invention(query, "rate = 1.08\nprint(250 * rate)", Given(query))
    assert invention is not None
    assert invention.reason == "The program assumes 1.08 (line 1), which was not given."


def test_numbers_of_an_example_are_told_from_those_of_the_question() -> None:
    example = "prices = [19.95, 24.50]\nrate = 0.0825\nprint(sum(prices) * (1 + rate))"
    for query, code, kind in (
        ("Tax of 8.25 % on 80?", "print(80 * 1.0825)", None),
        ("Tax of 7 % on 80?", "print(80 * 0.0825)", "example"),
    ):
        invention = find_invention(query, code, Given(query, examples=example))
        assert (invention.kind if invention else None) == kind


@given(st.text(max_size=200), st.text(max_size=200))
def test_looking_for_inventions_never_raises(query: str, code: str) -> None:
    find_invention(query, code, Given(query), files=[query[:5]], names=[code[:5]])


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "1 + " * 4000 + "1\nprint(x)",
        "x = [" + "12.5, " * 2500 + "]\nprint(x)",
        "f(" * 80 + ")" * 80,
        "x = y\ny = x\n" * 900,
    ],
)
def test_looking_for_inventions_takes_bounded_time(code: str) -> None:
    began = time.process_time()
    find_invention("What is it?", code, Given("1 2 3 " * 5000))
    assert time.process_time() - began < 5
