"""Add up the digits of a number, reverse them, and find the digital root.

What do you get when adding 9 + 8 + 7 + 5 from the number 9875?
How do I write a number backwards in Python, like 1234 to 4321?
In numerology, how do I reduce my birth year to a single figure?
How do I split an integer into its individual figures and total them, even for 2**100?
Cross sum of integer, reverse integer, repeated digit sum?
"""


def digit_sum(number):
    return sum(int(digit) for digit in str(abs(number)))


def digital_root(number):
    while number > 9:
        number = digit_sum(number)
    return number


print("Digit sum of 9875:", digit_sum(9875))
print("Digital root of 9875:", digital_root(9875))
print("9875 reversed:", int(str(9875)[::-1]))
print("Digit sum of 2 to the power of 100:", digit_sum(2**100))
