"""Work out how many months of saving it takes to reach a goal, with deposits and interest."""


def months_until(goal, monthly_deposit, yearly_rate=0.0, start=0.0):
    balance, months = start, 0
    while balance < goal:
        balance = balance * (1 + yearly_rate / 12) + monthly_deposit
        months += 1
    return months


print("Months without interest:", months_until(12_000, 500))
print("Months at 6% interest:", months_until(12_000, 500, yearly_rate=0.06))
