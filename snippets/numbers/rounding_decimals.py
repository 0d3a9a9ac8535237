"""Round numbers as expected: half up instead of to even, to cents, to hundreds, without float errors.

Why does Python round 2.5 to 2 rather than 3, and how do I get 3?
Why is 0.1 + 0.2 not exactly 0.3 on the computer?
The shop price is 2.675; how do I round it correctly to 2.68?
How do I round an attendance figure like 12345 to the nearest hundred?
Banker's rounding vs ROUND_HALF_UP decimal quantize?
"""

from decimal import ROUND_HALF_UP, Decimal


def round_half_up(text, step="1"):
    return Decimal(text).quantize(Decimal(step), rounding=ROUND_HALF_UP)


print("Built-in round of 0.5, 1.5 and 2.5:", round(0.5), round(1.5), round(2.5))
print("Half up:", round_half_up("0.5"), round_half_up("1.5"), round_half_up("2.5"))
print("2.675 to cents:", round_half_up("2.675", "0.01"))
print("12345 to hundreds:", round(12345, -2))
print("0.1 + 0.2 with floats:", 0.1 + 0.2, "and with Decimal:", Decimal("0.1") + Decimal("0.2"))
