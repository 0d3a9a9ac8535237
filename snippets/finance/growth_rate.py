"""Compute the compound annual growth rate (CAGR) and the percentage change from year to year.

Our revenue went from 100 to 207 in four years; what is that per year on average?
How do I calculate percent increase compared to the previous year?
By what annual rate did my town's house prices rise between 2015 and 2023?
How do I get one smoothed yearly percentage from the first and last figures?
CAGR formula year over year percent change python?
"""

from itertools import pairwise

revenue = {2020: 100, 2021: 110, 2022: 132, 2023: 144, 2024: 207.36}

years = sorted(revenue)
for before, after in pairwise(years):
    print(f"{before} to {after}: {revenue[after] / revenue[before] - 1:+.1%}")
growth = (revenue[years[-1]] / revenue[years[0]]) ** (1 / (years[-1] - years[0])) - 1
print(f"Average growth per year: {growth:.1%}")
