"""Convert a number to Roman numerals and Roman numerals back to a number.

The old church says MDCCLXXVI; what year is that?
How do I write my birth year 1994 in letters like the ancient Romans?
What does MMXXIV mean at the end of a film?
How do I show chapter numbers as I, II, III, IV in my book?
Roman to integer and integer to roman python?
"""

VALUES = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC")]
VALUES += [(50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def to_roman(number):
    roman = ""
    for value, letters in VALUES:
        count, number = divmod(number, value)
        roman += letters * count
    return roman


def from_roman(roman):
    number = 0
    for value, letters in VALUES:
        while roman.startswith(letters):
            number += value
            roman = roman.removeprefix(letters)
    return number


print("1994 in Roman numerals:", to_roman(1994))
print("MMXXIV is", from_roman("MMXXIV"))
