"""Calculate compound interest on savings, with yearly or monthly compounding.

The final balance of a deposit after some years, and how much of it is interest.

If I put 1000 in the bank at 5 percent for 10 years, what will I have?
How much more do I get when interest is credited monthly rather than once a year?
How does a one-time deposit grow when the interest itself earns interest?
What will grandma's 2000 gift be worth when my child turns 18?
Future value of deposit annual vs monthly compounding?
"""


def balance_after(principal, yearly_rate, years, times_per_year=1):
    return principal * (1 + yearly_rate / times_per_year) ** (times_per_year * years)


yearly = balance_after(1000, 0.05, 10)
monthly = balance_after(1000, 0.05, 10, times_per_year=12)
print(f"Compounded yearly: {yearly:.2f}, of which interest {yearly - 1000:.2f}")
print(f"Compounded monthly: {monthly:.2f}, of which interest {monthly - 1000:.2f}")
