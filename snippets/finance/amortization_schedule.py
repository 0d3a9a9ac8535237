"""Print an amortization schedule: for each month of a loan the interest, repayment and what is left.

The table in which a bank shows how a debt is paid off with equal instalments.
"""

amount, yearly_rate, months = 1200.0, 0.12, 4

rate = yearly_rate / 12
payment = amount * rate / (1 - (1 + rate) ** -months)
balance = amount
print("month  payment  interest  repaid  balance")
for month in range(1, months + 1):
    interest = balance * rate
    repaid = payment - interest
    balance -= repaid
    print(f"{month:5}  {payment:7.2f}  {interest:8.2f}  {repaid:6.2f}  {abs(balance):7.2f}")
