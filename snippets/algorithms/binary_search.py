"""Find a number in a sorted list with binary search, halving the range at each step."""


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
