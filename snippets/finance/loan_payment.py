"""Calculate the monthly payment of a loan or mortgage (annuity) and the total interest paid.

I borrow 200000 for a house at 6 percent over 30 years; what do I pay each month?
How do I work out the fixed instalment for a car credit?
How much will the mortgage cost me in interest altogether until it is paid off?
Can I afford a 15000 student credit over five years on my salary?
Monthly mortgage payment formula annuity python?
"""


def monthly_payment(amount, yearly_rate, years):
    months = years * 12
    rate = yearly_rate / 12
    return amount / months if rate == 0 else amount * rate / (1 - (1 + rate) ** -months)


payment = monthly_payment(200_000, 0.06, 30)
print(f"Monthly payment: {payment:.2f}")
print(f"Total interest: {payment * 360 - 200_000:.2f}")
