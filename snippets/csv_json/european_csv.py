"""Read a European CSV with semicolons between the columns and commas as decimal separators.

A German bank export shows 1.234,50 for amounts; how do I read it as a number?
Why are all columns stuck together when my file uses ; instead of commas?
How do I parse figures with a decimal comma and dots for thousands from a spreadsheet?
Our French office sends sales tables with semicolon delimiters; how can I total the revenue?
Read semicolon delimited file decimal comma python?
"""

import csv
import io

data = "Stadt;Umsatz\nBerlin;1.234,50\nBremen;765,50\n"


def parse_number(text):
    return float(text.replace(".", "").replace(",", "."))


rows = list(csv.DictReader(io.StringIO(data), delimiter=";"))
revenue = {row["Stadt"]: parse_number(row["Umsatz"]) for row in rows}
print("Revenue by city:", revenue)
print("Total revenue:", sum(revenue.values()))
