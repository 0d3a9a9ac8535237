"""Find a number in a sorted list with binary search, halving the range at each step.

How can I quickly look up ticket number 4821 in an ordered list of 100000 tickets?
How do I search an already sorted list without checking every element?
What is the guess-the-middle method to locate a value and get its index?
Page numbers are ordered; how would I jump to the right one by cutting the remainder in two?
Fast lookup in ordered array, return -1 if missing?
"""


def binary_search(numbers, wanted):
    low, high = 0, len(numbers) - 1
    while low <= high:
        middle = (low + high) // 2
        if numbers[middle] == wanted:
            return middle
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


numbers = [2, 5, 8, 12, 16, 23, 38]
print("Position of 23:", binary_search(numbers, 23))
print("Position of 7, which is missing:", binary_search(numbers, 7))
