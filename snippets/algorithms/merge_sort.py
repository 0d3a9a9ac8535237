"""Sort a list with merge sort, an algorithm that splits the list and merges the sorted halves.

How do I write my own divide-and-conquer sorting instead of calling sorted?
My homework asks for a recursive way to order 38, 27, 43, 3, 9 ascending; how?
How can two already ordered piles of exam papers be combined into one ordered pile?
How does cutting an unordered list in two over and over help put it in order?
Recursive sorting algorithm left half right half python?
"""


def merge_sort(items):
    if len(items) < 2:
        return items
    middle = len(items) // 2
    left, right = merge_sort(items[:middle]), merge_sort(items[middle:])
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


print("Sorted:", merge_sort([38, 27, 43, 3, 9, 82, 10]))
