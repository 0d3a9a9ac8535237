"""Read a European CSV with semicolons between the columns and commas as decimal separators."""

import csv
import io

data = "Stadt;Umsatz\nBerlin;1.234,50\nBremen;765,50\n"


def parse_number(text):
    return float(text.replace(".", "").replace(",", "."))


rows = list(csv.DictReader(io.StringIO(data), delimiter=";"))
revenue = {row["Stadt"]: parse_number(row["Umsatz"]) for row in rows}
print("Revenue by city:", revenue)
print("Total revenue:", sum(revenue.values()))
