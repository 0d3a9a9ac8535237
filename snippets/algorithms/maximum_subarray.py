"""Find the contiguous part of a list with the largest sum (maximum subarray, Kadane's algorithm)."""


def best_part(numbers):
    best_sum, best = numbers[0], numbers[:1]
    start, current = 0, 0
    for end, number in enumerate(numbers):
        if current <= 0:
            start, current = end, 0
        current += number
        if current > best_sum:
            best_sum, best = current, numbers[start : end + 1]
    return best_sum, best


total, part = best_part([-2, 1, -3, 4, -1, 2, 1, -5, 4])
print(f"Largest sum {total} from {part}")
