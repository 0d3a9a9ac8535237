"""Work out how many months of saving it takes to reach a goal, with deposits and interest.

I put aside 500 a month; when will I have 12000 for a car?
How long do I need to save for a trip that costs 3000?
How many months until my emergency fund is full if my account also pays interest?
If I already have 2000 and add 150 every month, when can I buy the piano?
How long to save target amount monthly deposit?
"""


def months_until(goal, monthly_deposit, yearly_rate=0.0, start=0.0):
    balance, months = start, 0
    while balance < goal:
        balance = balance * (1 + yearly_rate / 12) + monthly_deposit
        months += 1
    return months


print("Months without interest:", months_until(12_000, 500))
print("Months at 6% interest:", months_until(12_000, 500, yearly_rate=0.06))
