"""Ten messy data files and 24 questions about them, held out: for measuring only.

The files are such as people have: exports with title lines, other encodings, separators and notations of
numbers, nested records, related tables. No profile and no prompt was written with this set in view, and none
should be. What is expected, in `data/messy.jsonl`, was computed from the values before they are written.
`python -m benchmarks.messy` reads all files again by other means and compares.
"""

from __future__ import annotations

import json
import math
import random
import re
import sqlite3
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpora import read_corpus

MOST_NUMBERS, MOST_WORDS = 12, 60
"""A text with more than that is a dump and no answer."""

NUMBER = re.compile(r"(?<!\w)[-\u2212]?\d+(?:[.,'\u2019\u00a0\u202f]\d+)*(?:[eE][-+]?\d+)?")
SPACED = re.compile(r"(?<![\w.,])[-\u2212]?\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\w)")
PLAIN = re.compile(r"(-?\d+)(?:[.,](\d+))?(e[-+]?\d+)?")
GROUPED = re.compile(r"(-?\d{1,3}([., '\u2019\u00a0\u202f])\d{3}(?:\2\d{3})*)(?:(?!\2)[.,](\d+))?")


def readings(token: str) -> set[float]:
    """What a number may mean: 1,234 is 1.234 or 1234."""
    token = token.replace("\u2212", "-").lower()
    found: set[float] = set()
    if match := PLAIN.fullmatch(token):
        found.add(float(f"{match[1]}.{match[2] or 0}{match[3] or ''}"))
    if match := GROUPED.fullmatch(token):
        found.add(float(f"{match[1].replace(match[2], '')}.{match[3] or 0}"))
    return found


def numbers(text: str) -> list[set[float]]:
    """The numbers of a text; what is no single number, as a date, counts by its parts."""
    found = []
    for token in NUMBER.findall(text):
        whole = readings(token)
        found += [whole] if whole else [{float(part)} for part in re.findall(r"\d+", token)]
    return found


@dataclass(frozen=True)
class MessyQuestion:
    """A question about one file, with the only right answer."""

    file: str
    query: str
    expected: float | str

    def right(self, text: str) -> bool:
        """Whether an output or an answer has what is expected and is no dump."""
        if isinstance(self.expected, str):
            return self._has_label(text, self.expected)
        asked = set[float]().union(*numbers(self.query))
        told = [number for number in numbers(text) if not number & asked]
        if len(told) > MOST_NUMBERS:
            return False
        values = set[float]().union(*told, *map(readings, SPACED.findall(text)))
        return any(math.isclose(value, self.expected, rel_tol=1e-6, abs_tol=0.006) for value in values)

    @staticmethod
    def _has_label(text: str, label: str) -> bool:
        text, label = (unicodedata.normalize("NFC", part).casefold() for part in (text, label))
        found = re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text)
        return found is not None and len(text.split()) <= MOST_WORDS


class Sale(NamedTuple):
    """A row of umsatz.csv."""

    day: date
    branch: str
    group: str
    cents: int


class Call(NamedTuple):
    """A row of calls.tsv."""

    started: datetime
    extension: str
    department: str
    seconds: int
    outcome: str


class Donation(NamedTuple):
    """A row of donations.csv."""

    donor: str
    campaign: str
    day: date
    cents: int


class Stock(NamedTuple):
    """A row of inventory.xlsx."""

    item: str
    warehouse: str
    quantity: int
    cents: int


class Member(NamedTuple):
    """A row of the table members in library.db."""

    id: int
    name: str
    town: str


class Loan(NamedTuple):
    """A row of the table loans in library.db."""

    id: int
    member: int
    title: str
    fine: int | None


class Trip(NamedTuple):
    """A row of trips.parquet."""

    vehicle: str
    started: datetime
    metres: int | None
    toll: int


class Line(NamedTuple):
    """A line of an order."""

    sku: str
    quantity: int
    cents: int


class Order(NamedTuple):
    """A record of orders.jsonl."""

    id: int
    customer: str
    country: str
    lines: tuple[Line, ...]


class Reading(NamedTuple):
    """A row of meters.csv; the energy is in tenths of a kWh."""

    day: date
    building: str
    tenths: int
    status: str


class Invoice(NamedTuple):
    """A row of invoices.csv."""

    number: str
    client: str
    cents: int | None
    paid: date | None


class Visit(NamedTuple):
    """A row of visits.txt."""

    patient: int
    clinic: str
    day: date
    fee: int


def days_after(first: date, most: int, rng: random.Random) -> date:
    """A day by chance, at most so many days later."""
    return first + timedelta(days=rng.randrange(most))


def some_cents(low: float, high: float, rng: random.Random) -> int:
    """An amount by chance between two powers of ten, in cents: small ones are as frequent as large ones."""
    return int(10 ** rng.uniform(low, high))


@cache
def sales() -> tuple[Sale, ...]:
    """What umsatz.csv has: some of the amounts are returns."""
    rng = random.Random("umsatz")
    branches = ("Köln", "Göttingen", "Münster", "Lübeck", "Würzburg", "Saarbrücken")
    groups = ("Möbel", "Geschirr", "Wäsche", "Gartengeräte")
    made = []
    for _ in range(320):
        cents = some_cents(2.7, 6.0, rng) * (-1 if rng.random() < 0.04 else 1)
        made.append(
            Sale(days_after(date(2023, 1, 2), 350, rng), rng.choice(branches), rng.choice(groups), cents)
        )
    return tuple(sorted(made, key=lambda sale: sale.day))


@cache
def calls() -> tuple[Call, ...]:
    """What calls.tsv has."""
    rng = random.Random("telephone")
    extensions = [f"{number:04}" for number in rng.sample(range(100, 900), 57)]
    made = []
    for _ in range(410):
        started = datetime(2023, 9, 4, 8) + timedelta(seconds=rng.randrange(5 * 86400))
        department = rng.choice(("Réception", "Support", "Vente à distance", "Büro Süd"))
        outcome = rng.choice(("answered", "answered", "missed", "voicemail"))
        seconds = rng.randint(5, 40) if outcome == "missed" else rng.randint(20, 1900)
        made.append(Call(started, rng.choice(extensions), department, seconds, outcome))
    return tuple(sorted(made))


@cache
def donations() -> tuple[Donation, ...]:
    """What donations.csv has."""
    rng = random.Random("donations")
    first = (
        "Harrow",
        "Penfold",
        "Tamsin",
        "Ludlow",
        "Marchmont",
        "Osei",
        "Birkett",
        "Vane",
        "Quill",
        "Sorrel",
    )
    last = ("Bakery", "Brothers", "Trust", "Garage", "Choir", "Nursery")
    donors = [f"{one} {two}" for one in first for two in last]
    campaigns = ("New Roof", "Water Wheel", "Footbridge", "School Visits")
    return tuple(
        Donation(rng.choice(donors), rng.choice(campaigns), days_after(date(2023, 1, 1), 365, rng), cents)
        for cents in (some_cents(2.9, 5.4, rng) for _ in range(150))
    )


@cache
def stock() -> tuple[Stock, ...]:
    """What inventory.xlsx has."""
    rng = random.Random("inventory")
    kinds = ("Valve", "Gasket", "Coupling", "Filter", "Bracket", "Nozzle", "Hose", "Clamp")
    items = [f"{kind} {size}" for kind in kinds for size in ("S", "M", "L", "XL")]
    warehouses = ("Northgate", "Riverside", "Old Depot")
    return tuple(
        Stock(item, warehouse, rng.randint(0, 480), some_cents(1.8, 4.3, rng))
        for item in items
        for warehouse in warehouses
    )


@cache
def members() -> tuple[Member, ...]:
    """Who is in library.db."""
    rng = random.Random("members")
    first = ("Ada", "Bruno", "Carys", "Dewi", "Esme", "Fergus", "Greta", "Hamid", "Iona", "Jonah")
    last = ("Abbot", "Blythe", "Crane", "Dunmore", "Eastwood", "Fenwick", "Garnet", "Holloway")
    names = [f"{one} {two}" for one in first for two in last]
    towns = ("Ashcombe", "Brindle", "Coldharbour", "Dunsford", "Elmsley")
    return tuple(Member(number, name, rng.choice(towns)) for number, name in enumerate(names, 1001))


@cache
def loans() -> tuple[Loan, ...]:
    """The loans in library.db; most have no fine, and some members have no loan."""
    rng = random.Random("loans")
    readers = rng.sample([member.id for member in members()], 67)
    titles = [
        f"{one} {two}"
        for one in ("Silent", "Distant", "Broken", "Golden")
        for two in ("Shore", "Hill", "Bell")
    ]
    made = []
    for number in range(1, 421):
        fine = rng.randint(2, 60) * 5 if rng.random() < 0.3 else None
        made.append(Loan(number, rng.choice(readers), rng.choice(titles), fine))
    return tuple(made)


@cache
def trips() -> tuple[Trip, ...]:
    """What trips.parquet has: the distance of some is missing."""
    rng = random.Random("trips")
    made = []
    for _ in range(600):
        started = datetime(2023, 2, 13) + timedelta(minutes=rng.randrange(60 * 24 * 60))
        metres = rng.randint(800, 93000) if rng.random() > 0.07 else None
        vehicle = rng.choice(("Kestrel", "Heron", "Merlin", "Osprey", "Plover"))
        made.append(Trip(vehicle, started, metres, rng.choice((0, 0, 180, 245, 390, 1260))))
    return tuple(made)


@cache
def orders() -> tuple[Order, ...]:
    """What orders.jsonl has."""
    rng = random.Random("orders")
    homes = {
        "Inês": "Portugal",
        "Mikkel": "Denmark",
        "Zofia": "Poland",
        "Aoife": "Ireland",
        "Janez": "Slovenia",
    }
    homes |= {
        "Rui": "Portugal",
        "Freja": "Denmark",
        "Kacper": "Poland",
        "Niamh": "Ireland",
        "Maja": "Slovenia",
    }
    prices = {f"SK-{number}": some_cents(2.3, 4.6, rng) for number in rng.sample(range(100, 999), 40)}
    made = []
    for number in range(5001, 5201):
        name = rng.choice(list(homes))
        skus = rng.sample(list(prices), rng.randint(1, 5))
        lines = tuple(Line(sku, rng.randint(1, 9), prices[sku]) for sku in skus)
        made.append(Order(number, name, homes[name], lines))
    return tuple(made)


@cache
def meters() -> tuple[Reading, ...]:
    """What meters.csv has."""
    rng = random.Random("meters")
    buildings = ("Orchard", "Foundry", "Chapel", "Boathouse")
    made = []
    for number in range(240):
        day = date(2023, 10, 1) + timedelta(days=number // 4)
        status = "ok" if rng.random() > 0.1 else "estimated"
        made.append(Reading(day, buildings[number % 4], rng.randint(300, 9800), status))
    return tuple(reading for reading in made if reading.day == made[0].day or rng.random() > 0.15)


@cache
def invoices() -> tuple[Invoice, ...]:
    """What invoices.csv has: amounts and days of payment that are missing."""
    rng = random.Random("invoices")
    clients = ("Alder Freight", "Bexley Dental", "Corvid Media", "Dovetail Joinery", "Ember Catering")
    made = []
    for number in range(1, 181):
        cents = some_cents(3.5, 6.2, rng) if rng.random() > 0.08 else None
        paid = days_after(date(2024, 1, 8), 150, rng) if rng.random() > 0.2 else None
        made.append(Invoice(f"A{number:03}", rng.choice(clients), cents, paid))
    return tuple(made)


@cache
def visits() -> tuple[Visit, ...]:
    """What visits.txt has; by its day, the first could be in April or in March."""
    rng = random.Random("visits")
    clinics = ("Harbour", "Market Square", "Priory", "Westfield")
    made = [Visit(7001, "Priory", date(2023, 4, 3), 45)]
    for number in range(7002, 7281):
        day = days_after(date(2023, 1, 2), 360, rng)
        made.append(Visit(number, rng.choice(clinics), day, rng.choice((30, 45, 60, 85))))
    return tuple(made)


def english(cents: int) -> str:
    """An amount as 1,234.50."""
    return f"{cents / 100:,.2f}"


def german(cents: int) -> str:
    """An amount as 1.234,50."""
    return english(cents).translate(str.maketrans(",.", ".,"))


def write_sales(path: Path) -> None:
    """Semicolons, Latin-1, German numbers and dates."""
    lines = ["Datum;Filiale;Warengruppe;Betrag"]
    lines += [f"{sale.day:%d.%m.%Y};{sale.branch};{sale.group};{german(sale.cents)}" for sale in sales()]
    path.write_bytes("".join(line + "\r\n" for line in lines).encode("latin-1"))


def write_calls(path: Path) -> None:
    """Tabs, UTF-16."""
    lines = ["Started\tExtension\tDepartment\tSeconds\tOutcome"]
    lines += ["\t".join((f"{call.started:%Y-%m-%d %H:%M:%S}", *map(str, call[1:]))) for call in calls()]
    path.write_bytes(b"\xff\xfe" + "".join(line + "\r\n" for line in lines).encode("utf-16-le"))


def write_donations(path: Path) -> None:
    """A byte order mark, three lines of title, and the total at the end."""
    lines = [
        "Friends of the Old Mill",
        "Donations received in 2023, all campaigns",
        "Printed 15 January 2024",
    ]
    lines.append("Donor,Campaign,Received,Amount")
    lines += [f"{one.donor},{one.campaign},{one.day},{one.cents / 100:.2f}" for one in donations()]
    lines.append(f"Total,,,{sum(one.cents for one in donations()) / 100:.2f}")
    path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8-sig"))


def write_stock(path: Path) -> None:
    """A hidden sheet of notes comes first; the table begins in row 4."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    notes, sheet = book.create_sheet("Notes"), book.create_sheet("Stock")
    for note in (
        "Counted by the night shift.",
        "Prices are those of the last delivery.",
        "Ask Perrin about hoses.",
    ):
        notes.append([note])
    notes.sheet_state = "hidden"
    book.active = 1
    sheet["A1"], sheet["A2"] = "Inventory", "All warehouses, end of the year"
    for column, name in enumerate(("Item", "Warehouse", "Quantity", "Unit price"), 1):
        sheet.cell(row=4, column=column, value=name)
    for one in stock():
        sheet.append([one.item, one.warehouse, one.quantity, one.cents / 100])
    book.save(path)


def write_library(path: Path) -> None:
    """Two related tables."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT, town TEXT)")
        base.execute(
            "CREATE TABLE loans (id INTEGER PRIMARY KEY, member_id INTEGER REFERENCES members(id), "
            "title TEXT, fine REAL)"
        )
        base.executemany("INSERT INTO members VALUES (?, ?, ?)", members())
        rows = [(*loan[:3], None if loan.fine is None else loan.fine / 100) for loan in loans()]
        base.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", rows)


def write_trips(path: Path) -> None:
    """Labels as a dictionary, times of the day, missing values, and decimals."""
    columns: dict[str, Any] = {
        "vehicle": pa.array([trip.vehicle for trip in trips()]).dictionary_encode(),
        "started": pa.array([trip.started for trip in trips()], pa.timestamp("ms")),
        "distance_km": pa.array([None if trip.metres is None else trip.metres / 1000 for trip in trips()]),
        "toll": pa.array([Decimal(trip.toll) / 100 for trip in trips()], pa.decimal128(8, 2)),
    }
    pq.write_table(pa.table(columns), path)


def write_orders(path: Path) -> None:
    """Nested records, one on each line."""
    records = []
    for order in orders():
        lines = [
            {"sku": line.sku, "quantity": line.quantity, "price": line.cents / 100} for line in order.lines
        ]
        customer = {"name": order.customer, "country": order.country}
        records.append(json.dumps({"id": order.id, "customer": customer, "lines": lines}, ensure_ascii=False))
    path.write_bytes("".join(record + "\n" for record in records).encode())


def write_meters(path: Path) -> None:
    """No header."""
    lines = [f"{one.day},{one.building},{one.tenths / 10},{one.status}\n" for one in meters()]
    path.write_bytes("".join(lines).encode())


def write_invoices(path: Path) -> None:
    """Currency signs, quoted amounts, and three ways to say that a value is missing."""
    rng = random.Random("missing")
    lines = ["Invoice,Client,Amount,Paid on"]
    for one in invoices():
        amount = rng.choice(("n/a", "-")) if one.cents is None else f'"${english(one.cents)}"'
        paid = one.paid or rng.choice(("n/a", "-", ""))
        lines.append(f"{one.number},{one.client},{amount},{paid}")
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def write_visits(path: Path) -> None:
    """Pipes with blanks around them; the day comes first."""
    lines = ["Patient | Clinic | Visited | Fee"]
    lines += [f"{one.patient} | {one.clinic} | {one.day:%d/%m/%Y} | {one.fee}" for one in visits()]
    path.write_bytes("".join(line + "\n" for line in lines).encode())


WRITERS = {
    "umsatz.csv": write_sales,
    "calls.tsv": write_calls,
    "donations.csv": write_donations,
    "inventory.xlsx": write_stock,
    "library.db": write_library,
    "trips.parquet": write_trips,
    "orders.jsonl": write_orders,
    "meters.csv": write_meters,
    "invoices.csv": write_invoices,
    "visits.txt": write_visits,
}


def write_files(folder: Path) -> None:
    """Write the ten files, always with the same values."""
    for name, write in WRITERS.items():
        write(folder / name)


QUESTIONS: tuple[MessyQuestion, ...] = tuple(MessyQuestion(**entry) for entry in read_corpus("messy"))


def sales_again(path: Path) -> list[Any]:
    """The answers about umsatz.csv, read by pandas."""
    frame = pd.read_csv(path, sep=";", encoding="latin-1", decimal=",", thousands=".")
    best = frame.groupby("Filiale")["Betrag"].sum().idxmax()
    return [frame["Betrag"].sum(), best, (frame["Betrag"] > 1000).sum()]


def calls_again(path: Path) -> list[Any]:
    """The answers about calls.tsv, read by pandas."""
    frame = pd.read_csv(path, sep="\t", encoding="utf-16")
    mean = frame.loc[frame["Outcome"] == "answered", "Seconds"].mean()
    return [frame["Extension"].nunique(), round(mean, 2)]


def donations_again(path: Path) -> list[Any]:
    """The answers about donations.csv, read by pandas."""
    frame = pd.read_csv(path, encoding="utf-8-sig", skiprows=3).iloc[:-1]
    amount = frame["Amount"]
    return [amount.sum(), frame.sort_values("Amount")["Donor"].iloc[-1], (amount >= 100).sum()]


def stock_again(path: Path) -> list[Any]:
    """The answers about inventory.xlsx, read by pandas."""
    frame = pd.read_excel(path, sheet_name="Stock", header=3)
    worth = (frame["Quantity"] * frame["Unit price"]).sum()
    return [worth, frame.groupby("Warehouse")["Quantity"].sum().idxmax()]


def library_again(path: Path) -> list[Any]:
    """The answers about library.db, by queries."""
    both = "FROM loans JOIN members ON members.id = loans.member_id"
    queries = (
        f"SELECT town {both} GROUP BY town ORDER BY count(*) DESC LIMIT 1",
        "SELECT count(*) FROM members WHERE id NOT IN (SELECT member_id FROM loans)",
        f"SELECT sum(fine) {both} WHERE town = 'Brindle'",
    )
    with closing(sqlite3.connect(path)) as base:
        return [base.execute(query).fetchone()[0] for query in queries]


def trips_again(path: Path) -> list[Any]:
    """The answers about trips.parquet, read by pandas."""
    frame = pd.read_parquet(path)
    toll = frame.loc[frame["vehicle"] == "Heron", "toll"].astype(float).sum()
    within = (frame["started"] >= "2023-03-10") & (frame["started"] < "2023-03-21")
    return [toll, frame["distance_km"].isna().sum(), within.sum()]


def orders_again(path: Path) -> list[Any]:
    """The answers about orders.jsonl, read by json."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    frame = pd.json_normalize(records, "lines", [["customer", "country"]])
    best = frame.groupby("customer.country")["quantity"].sum().idxmax()
    return [(frame["quantity"] * frame["price"]).sum(), best]


def meters_again(path: Path) -> list[Any]:
    """The answers about meters.csv, read by pandas."""
    frame = pd.read_csv(path, header=None)
    return [(frame[1] == "Orchard").sum(), round(frame[2].mean(), 2)]


def invoices_again(path: Path) -> list[Any]:
    """The answers about invoices.csv, read by pandas."""
    frame = pd.read_csv(path, na_values=["n/a", "-"])
    amount = frame["Amount"].str.replace(r"[$,]", "", regex=True).astype(float)
    return [amount.sum(), frame["Paid on"].isna().sum()]


def visits_again(path: Path) -> list[Any]:
    """The answers about visits.txt, read by pandas."""
    frame = pd.read_csv(path, sep=r"\s*\|\s*", engine="python")
    day = pd.to_datetime(frame["Visited"], format="%d/%m/%Y")
    best = frame.loc[day.dt.month == 2, "Clinic"].value_counts().idxmax()
    return [day.between("2023-04-01", "2023-05-12").sum(), best]


READERS = {
    "umsatz.csv": sales_again,
    "calls.tsv": calls_again,
    "donations.csv": donations_again,
    "inventory.xlsx": stock_again,
    "library.db": library_again,
    "trips.parquet": trips_again,
    "orders.jsonl": orders_again,
    "meters.csv": meters_again,
    "invoices.csv": invoices_again,
    "visits.txt": visits_again,
}


def differences(folder: Path) -> Iterator[str]:
    """Where a file, read again, says something else than what is expected."""
    for name, read in READERS.items():
        asked = [question for question in QUESTIONS if question.file == name]
        for question, found in zip(asked, read(folder / name), strict=True):
            if isinstance(question.expected, str):
                same = found == question.expected
            else:
                same = math.isclose(float(found), question.expected, abs_tol=1e-6)
            if not same:
                yield f"{question.query} expected {question.expected!r}, found {found!r}"


def samples(expected: float | str) -> tuple[list[str], list[str]]:
    """Right and wrong texts for a question."""
    if isinstance(expected, str):
        return [expected, f"It is **{expected.upper()}**."], ["", "none", expected + "x", f"{expected} " * 61]
    text = f"{expected:,.2f}"
    swapped = text.translate(str.maketrans(",.", ".,"))
    good = [repr(expected), text, swapped, f"It is ${text}.", f"In all {text.replace(',', ' ')}"]
    good += [swapped.replace(".", "\u202f"), f"np.float64({expected})", f"2 of 3: {text}"]
    more = expected + max(0.01, expected * 2e-6)
    bad = ["", "none", f"{more:.2f}", f"-{text}", f"x{expected}", f"{text} " + "3.25 " * 12]
    return good, bad


def misjudged(question: MessyQuestion) -> Iterator[str]:
    """What the checker of a question says wrongly."""
    good, bad = samples(question.expected)
    yield from (f"{question.query} refuses {text!r}" for text in good if not question.right(text))
    yield from (
        f"{question.query} accepts {text!r}" for text in (*bad, question.query) if question.right(text)
    )


def complaints() -> Iterator[str]:
    """What is wrong with the set: answers, checkers, its size."""
    if len(QUESTIONS) != 24 or READERS.keys() != WRITERS.keys() or len(WRITERS) != 10:
        yield "there have to be 24 questions about ten files"
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        yield from differences(Path(name))
    for question in QUESTIONS:
        yield from misjudged(question)


def main() -> int:
    """Print the complaints."""
    found = list(complaints())
    print("\n".join(found) or f"{len(QUESTIONS)} questions, no complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
