"""Calculate compound interest on savings, with yearly or monthly compounding.

The final balance of a deposit after some years, and how much of it is interest.
"""


def balance_after(principal, yearly_rate, years, times_per_year=1):
    return principal * (1 + yearly_rate / times_per_year) ** (times_per_year * years)


yearly = balance_after(1000, 0.05, 10)
monthly = balance_after(1000, 0.05, 10, times_per_year=12)
print(f"Compounded yearly: {yearly:.2f}, of which interest {yearly - 1000:.2f}")
print(f"Compounded monthly: {monthly:.2f}, of which interest {monthly - 1000:.2f}")
