"""Calculate the monthly payment of a loan or mortgage (annuity) and the total interest paid."""


def monthly_payment(amount, yearly_rate, years):
    months = years * 12
    rate = yearly_rate / 12
    return amount / months if rate == 0 else amount * rate / (1 - (1 + rate) ** -months)


payment = monthly_payment(200_000, 0.06, 30)
print(f"Monthly payment: {payment:.2f}")
print(f"Total interest: {payment * 360 - 200_000:.2f}")
