"""Convert numbers between decimal, binary, octal, hexadecimal and any other base.

What is the number 255 written with only zeros and ones?
How do I turn a hex color code like ff into an ordinary number?
How do I write 100 in base 7 or some other unusual number system?
What does the computer bit pattern 101010 mean as a normal number?
Binary hex octal conversion int with base python?
"""

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def to_base(number, base):
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = DIGITS[digit] + digits
    return digits or "0"


print("255 in binary, octal and hexadecimal:", f"{255:b} {255:o} {255:x}")
print("Binary 101010 in decimal:", int("101010", 2))
print("Hexadecimal ff in decimal:", int("ff", 16))
print("100 in base 7:", to_base(100, 7))
