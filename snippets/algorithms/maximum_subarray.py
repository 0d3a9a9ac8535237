"""Find the contiguous part of a list with the largest sum (maximum subarray, Kadane's algorithm).

Given daily profits and losses, during which run of consecutive days did my shop earn the most?
How do I find the stretch of neighbouring numbers whose total is biggest when some are negative?
When was the best streak in my chess rating gains and losses?
If I list daily share price changes, which period would have been the best to hold?
Kadane largest consecutive sum and which slice?
"""


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
