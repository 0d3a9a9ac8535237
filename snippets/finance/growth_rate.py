"""Compute the compound annual growth rate (CAGR) and the percentage change from year to year."""

from itertools import pairwise

revenue = {2020: 100, 2021: 110, 2022: 132, 2023: 144, 2024: 207.36}

years = sorted(revenue)
for before, after in pairwise(years):
    print(f"{before} to {after}: {revenue[after] / revenue[before] - 1:+.1%}")
growth = (revenue[years[-1]] / revenue[years[0]]) ** (1 / (years[-1] - years[0])) - 1
print(f"Average growth per year: {growth:.1%}")
