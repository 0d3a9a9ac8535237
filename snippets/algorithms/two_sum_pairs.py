"""Find two numbers in a list that add up to a target, in one pass with a dictionary.

I have a 50 euro gift card; which two products cost exactly 50 together?
How do I find a pair in a list whose sum equals a given value without nested loops?
Which two weights from my set balance out to exactly 9 kilos?
What are the indices of the two entries that together give the wanted total?
Two sum problem hash map solution python?
"""


def two_sum(numbers, target):
    positions = {}
    for index, number in enumerate(numbers):
        if target - number in positions:
            return positions[target - number], index
        positions[number] = index
    return None


numbers = [2, 7, 11, 15]
first, second = two_sum(numbers, 9)
print(f"Indices {first} and {second}: {numbers[first]} + {numbers[second]} = 9")
print("Two numbers that add up to 100:", two_sum(numbers, 100))
