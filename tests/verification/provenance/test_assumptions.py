"""What a program assumes is told: beside a comment, as a date, a value under a name, or a number beside data."""

from __future__ import annotations

import pytest

from code_chains.verification.provenance import Given
from code_chains.verification.provenance.assumptions import assumed_values


@pytest.mark.parametrize(
    ("query", "code", "assumed"),
    [
        (
            "How wide is what is left beside a shelf of 84 cm?",
            "wall = 100  # Assuming 1 m\nprint(wall - 84)",
            "1 m",
        ),
        ("¿Cuánto queda?", "# Suponiendo que son 300\ntotal = 300\nprint(total - 20)", "son 300"),
        ("残りは?", "total = 300  # 仮定: 300\nprint(total)", "300"),
        ("How many were late?", "print((df['due'] > '2024-05-15').sum())", "2024-05-15"),
        ("One tin covers 11 m². How many?", "wall = 11\ntin = 11\nprint(wall // tin)", "wall = tin"),
        (
            "What was my pay at 11.50 an hour?",
            "hours_worked = 20\nprint(hours_worked * 11.5)",
            "hours_worked = 20",
        ),
        (
            "How long is it with 5 balls?",
            "# Assuming 10 cm each\nlength = 5 * 10\nprint(length)",
            "10 cm each",
        ),
        ("Wie viel passt hinein?", "jetzt = 1500  # Example volume\nprint(3000 - jetzt)", "volume"),
        (
            "How long until a battery at 62 percent is empty?",
            "# Assuming it drains by 1% a minute\nlevel = 62\nrate = 1 / 60\nprint(level / rate)",
            "it drains by 1% a minute",
        ),
        (
            "What time is it where my sister lives?",
            "# Assuming that she lives in this time zone\nprint(datetime.now())",
            "she lives in this time zone",
        ),
        (
            "When is a tank full at 12 litres a minute?",
            "total_liters = 1000\nprint(total_liters / 12)",
            "total_liters = 1000",
        ),
        (
            "How much has it grown since March?",
            "now = pd.to_datetime('2024-06-15')\nprint(df[df.day <= now])",
            "2024-06-15",
        ),
        (
            "Did 4, 11 and 19 win?",
            "mine = [4, 11, 19]\ndrawn = [4, 11, 19]\nprint(mine == drawn)",
            "mine = drawn",
        ),
        ("How many days since our wedding?", "print(date.today() - date(2020, 10, 15))", "2020-10-15"),
        (
            "How long is the ride from 9:12?",
            "a = datetime(2024, 1, 1, 9, 12)\nb = datetime(2024, 1, 1, 9, 12)\nprint(b - a)",
            "a = b",
        ),
        (
            "Share 96,000 by the kids' ages.",
            "ages = [10, 12, 14]\nprint(96000 * 10 / sum(ages))",
            "ages = [10, 12, 14]",
        ),
        ("Decode my son's note.", "note = 'KHOOR'\nprint(note[::-1])", "note = 'KHOOR'"),
    ],
)
def test_what_a_program_says_or_shows_that_it_assumes(query: str, code: str, assumed: str) -> None:
    assert assumed_values(code, Given(query)) == (assumed,)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("What is 20 % of 300?", "total = 300  # Assuming 300 as stated\nprint(total * 0.2)"),
        ("How many hours are 3 days?", "hours = 24  # Assuming 24 hours a day\nprint(3 * hours)"),
        (
            "What is the mean?",
            "# Assuming the file has a header\ndf = pd.read_csv('a.csv')\nprint(df.mean())",
        ),
        ("How many in June?", "print(df[(df.day >= '2024-06-01') & (df.day <= '2024-06-30')])"),
        ("How far is 3 m?", "# Assuming 3 m as given\n\nprint(3)"),
        ("How many since 15 May 2024?", "print((df['day'] > '2024-05-15').sum())"),
        ("Both shelves are 84 cm, and the other 84 cm.", "first = 84\nsecond = 84\nprint(first + second)"),
        ("Count from 1.", "count = 1\nstep = 1\nprint(count + step)"),
        ("Estimate pi by chance.", "trials = 1000\nprint(trials)"),
        ("What are 20 % of 80?", "share = 20\nwhole = 80\nprint(share * whole / 100)"),
        (
            "How many days until Christmas from 1 October 2024?",
            "print(date(2024, 12, 25) - date(2024, 10, 1))",
        ),
        (
            "Integrate sin(x) from 0 to pi.",
            "n = 100000\nprint(sum(sin(i * pi / n) for i in range(n)) * pi / n)",
        ),
        ("How many days from 24.12.2024 to 06.01.2025?", "print(date(2025, 1, 6) - date(2024, 12, 24))"),
        ("What time is it 3 h after 14:20?", "print(datetime(2000, 1, 2, 14, 20) + timedelta(hours=3))"),
        ("Which weights can these dice show?", "dice = [1, 2, 3, 4, 5, 6]\nprint(dice)"),
        ("How long is the word 'journey'?", "word = 'journey'\nprint(len(word))"),
        ("x", "print("),
    ],
)
def test_what_was_given_or_everybody_knows_is_not_assumed(query: str, code: str) -> None:
    assert assumed_values(code, Given(query)) == ()


LIMITS = {
    "of a column": ("print('due' if df['temp'].max() > 75 else 'fine')", ("df['temp'].max() > 75",)),
    "of a row": ("print([r for r in rows if float(r['load']) >= 0.8 * 250])", ()),
    "of a cell": ("print([r for r in rows if float(r['load']) >= 250])", ("float(r['load']) >= 250",)),
    "that was given": ("print(df[df['temp'] > 80].temp)", ()),
    "of an age": ("print(df[df['age'] >= 60].name)", ()),
    "of the time of day": ("print(df[df['at'].dt.hour >= 17].name)", ()),
    "of a decade": ("print(df[df['out'] >= 1990].name)", ()),
    "of a hundred": ("print(df[df['amount'] > 100].name)", ("df['amount'] > 100",)),
    "that is small": ("print(df[df['goals'] > 3].name)", ()),
    "of a loop": ("n = 0\nwhile n < 250:\n    n += 1\nprint(n)", ()),
}


@pytest.mark.parametrize(("code", "expected"), LIMITS.values(), ids=LIMITS)
def test_a_limit_for_data_that_nobody_gave_is_an_assumption(code: str, expected: tuple[str, ...]) -> None:
    given = Given("Is the boiler due? It may have 80 degrees.")
    assert assumed_values(code, given, has_input=True) == expected
    assert assumed_values(code, given) == ()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("Who has fever?", "print(df[df['temp_c'] >= 38.0].name)"),
        ("How many are teenagers?", "print(df['years'].between(13, 19).sum() + (df['years'] < 20).sum())"),
        ("Who is overweight?", "print(df[df['bmi'] >= 25].name)"),
        ("What came in the evening?", "print(df[df['t'] >= 18].amount.sum())"),
        ("Which have more than half?", "print(df[df['share'] > 50].name)"),
    ],
)
def test_a_limit_that_a_word_implies_is_given(query: str, code: str) -> None:
    assert assumed_values(code, Given(query), has_input=True) == ()


OWN = {
    "a norm": ("NORM = 20\nprint([r['days'] - NORM for r in rows])", ("NORM = 20",)),
    "a speed": ("SPEED = 80\nprint(df['km'] / SPEED)", ("SPEED = 80",)),
    "a share": ("print(df['bill'].sum() * 0.1)", ("df['bill'].sum() * 0.1",)),
    "a wage": ("df['wage'] = 15 * df['hours']", ("15 * df['hours']",)),
    "prices by kind": ("FEES = {'adult': 60, 'child': 35}\nprint(FEES)", ("FEES = {'adult': 60, 'child': 35}",)),
    "a limit under a name": ("LARGE = 40\nprint((df['total'] > LARGE).sum())", ("df['total'] > LARGE (40)",)),
    "a small limit": ("LIMIT = 0.25\nprint([r for r in rows if r['nh3'] > LIMIT])", ("r['nh3'] > LIMIT (0.25)",)),
    "a negative limit": ("print([r for r in rows if float(r[5]) < -2.5])", ("float(r[5]) < -2.5",)),
    "a limit for a variable": ("scores = df['score']\nprint((scores >= 50).sum())", ("scores >= 50",)),
}  # fmt: skip
USUAL = {
    "places of months": "M = {'Jan': 1, 'Feb': 2, 'Mar': 3}\nprint(df['month'].map(M).max())",
    "units": "G = {'kg': 1000, 'g': 1}\nprint((df['n'] * df['unit'].map(G)).sum())",
    "points": "P = {'win': 3, 'draw': 1, 'loss': 0}\nprint(df['result'].map(P).sum())",
    "counts": "n = {'open': 0, 'closed': 0}\nfor r in rows: n[r['state']] += 1\nprint(n)",
    "sizes of a figure": "size = {'width': 40, 'height': 25}\nplt.figure(figsize=(10, 0.4 * len(df)))",
    "places in a figure": "ax.text(0, 1.02 * top, 'x')\nax.text(0, top + 0.02 * top, 'y')",
    "a bar of signs": "print('#' * int(value / top * 40))",
    "a line": "WIDTH = 40\nprint('-' * WIDTH)",
    "significance": "print([c for c in columns if tests[c].pvalue < 0.05])",
    "sizes of points": "sizes = {'small': 20, 'large': 80}\nplt.scatter(x, y, s=df['n'] * 0.02)",
    "a part of the rows": "n = int(len(df) * 0.7)\nprint(df[:n])",
    "lengths of texts": "n = df['text'].str.len()\nprint(df[n > 79])",
    "bytes": "U = {'KB': 1024, 'MB': 1048576}\nprint(df['unit'].map(U))",
    "miles": "print(df['mph'] * 0.44704)",
    "smoothing": "alpha = 0.3\nfor v in values:\n    s = alpha * v + (1 - alpha) * s",
    "a correlation": "print('strong' if abs(r) > 0.7 else 'weak')",
    "units of areas": "CM2_PER_M2 = 10000\nprint(df['cm2'] / CM2_PER_M2)",
    "a loop": "for i in range(90):\n    if i > 40:\n        print(i)",
    "a length": "n = len(df)\nif n > 20:\n    print(df.head())",
    "minutes": "print(df['hours'] * 60)",
    "percent": "print(df['share'] * 100)",
    "what was given": "print(df[df['temp'] > 80] * 0.8)",
    "boiling": "BOILING = 100\nprint((df['temp'] > BOILING).sum())",
}


@pytest.mark.parametrize(("code", "expected"), OWN.values(), ids=OWN)
def test_numbers_of_its_own_beside_data_are_assumptions(code: str, expected: tuple[str, ...]) -> None:
    assert assumed_values(code, Given("What is asked?"), has_input=True) == expected


@pytest.mark.parametrize("code", USUAL.values(), ids=USUAL)
def test_usual_numbers_beside_data_are_none(code: str) -> None:
    given = Given("How often was it above 80 degrees or boiling?")
    assert assumed_values(code, given, has_input=True) == ()


@pytest.mark.parametrize("day", ["1e999", "-1", "1e300", "99999"])
def test_what_is_no_day_is_no_assumption(day: str) -> None:
    assert assumed_values(f"from datetime import date\nprint(date(2020, 10, {day}))", Given("When?")) == ()
