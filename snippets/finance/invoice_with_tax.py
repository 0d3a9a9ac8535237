"""Add up an invoice with a discount and sales tax (VAT), exact to the cent with Decimal.

Prices and money should not be floats: Decimal rounds the way bookkeeping does.

Two keyboards and a mouse, 10 percent off, plus 20 percent VAT: what does the customer pay?
How do I calculate a bill without floating point cents going wrong?
How do I apply a rebate and then add tax to a receipt, rounded properly?
What is the final price for my handyman's quote after discount and value added tax?
Invoice total decimal quantize VAT discount?
"""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
items = [("Keyboard", 2, Decimal("49.95")), ("Mouse", 1, Decimal("19.99"))]

subtotal = sum(quantity * price for _, quantity, price in items)
discount = (subtotal * Decimal("0.10")).quantize(CENT, ROUND_HALF_UP)
tax = ((subtotal - discount) * Decimal("0.20")).quantize(CENT, ROUND_HALF_UP)
print("Subtotal:", subtotal)
print("Discount 10%:", discount)
print("Tax 20%:", tax)
print("Total:", subtotal - discount + tax)
