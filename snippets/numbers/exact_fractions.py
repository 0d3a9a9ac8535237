"""Calculate with exact fractions such as 1/3 + 1/6, without rounding errors.

The recipe needs 3/4 of a cup and I make 2/5 of it; how much is that?
How do I add a third and a sixth and get a half, not 0.49999?
How do I simplify 18/24 to its lowest terms?
My child's homework: what is 0.125 written as numerator over denominator?
Python Fraction add multiply reduce limit_denominator?
"""

from fractions import Fraction

print("1/3 + 1/6 =", Fraction(1, 3) + Fraction(1, 6))
print("3/4 of 2/5 =", Fraction(3, 4) * Fraction(2, 5))
print("0.125 as a fraction:", Fraction("0.125"))
print("Pi as a simple fraction:", Fraction("3.14159265").limit_denominator(10))
print("18/24 in lowest terms:", Fraction(18, 24))
