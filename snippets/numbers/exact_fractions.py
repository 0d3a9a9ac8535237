"""Calculate with exact fractions such as 1/3 + 1/6, without rounding errors."""

from fractions import Fraction

print("1/3 + 1/6 =", Fraction(1, 3) + Fraction(1, 6))
print("3/4 of 2/5 =", Fraction(3, 4) * Fraction(2, 5))
print("0.125 as a fraction:", Fraction("0.125"))
print("Pi as a simple fraction:", Fraction("3.14159265").limit_denominator(10))
print("18/24 in lowest terms:", Fraction(18, 24))
