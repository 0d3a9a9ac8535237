"""Calculate income tax with progressive brackets, where each part of the income has its own rate."""

BRACKETS = [(0, 0.10), (10_000, 0.20), (40_000, 0.30)]  # From this income on, this rate.


def income_tax(income):
    tops = [start for start, _ in BRACKETS[1:]] + [float("inf")]
    return sum(
        max(0, min(income, top) - start) * rate for (start, rate), top in zip(BRACKETS, tops, strict=True)
    )


for income in [8_000, 30_000, 50_000]:
    tax = income_tax(income)
    print(f"Income {income}: tax {tax:.0f}, effective rate {tax / income:.1%}")
