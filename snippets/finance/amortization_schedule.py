"""Print an amortization schedule: for each month of a loan the interest, repayment and what is left.

The table in which a bank shows how a debt is paid off with equal instalments.

For my car loan, how much of each monthly instalment is interest and how much goes to principal?
How do I make a table of the remaining debt month by month?
How does the outstanding balance shrink as I pay back 1200 at 12 percent over 4 months?
What repayment plan would the bank print for my kitchen financed by instalments?
Loan repayment table remaining balance per month python?
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
