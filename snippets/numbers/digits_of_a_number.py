"""Add up the digits of a number, reverse them, and find the digital root."""


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
