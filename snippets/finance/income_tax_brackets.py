"""Calculate income tax with progressive brackets, where each part of the income has its own rate.

I earn 50000; how much do I owe when the first 10000 is charged at 10 percent?
How do marginal tax rates work, and what share of my pay goes to the state?
Will I take home less if a raise pushes me into a higher tax band?
What is my effective rate if different slices of my salary are taxed differently?
Progressive tax calculator with thresholds python?
"""

BRACKETS = [(0, 0.10), (10_000, 0.20), (40_000, 0.30)]  # From this income on, this rate.


def income_tax(income):
    tops = [start for start, _ in BRACKETS[1:]] + [float("inf")]
    return sum(
        max(0, min(income, top) - start) * rate for (start, rate), top in zip(BRACKETS, tops, strict=True)
    )


for income in [8_000, 30_000, 50_000]:
    tax = income_tax(income)
    print(f"Income {income}: tax {tax:.0f}, effective rate {tax / income:.1%}")
