"""Find two numbers in a list that add up to a target, in one pass with a dictionary."""


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
