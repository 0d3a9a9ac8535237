"""Find the longest palindrome inside a text.

A palindrome reads the same forwards and backwards; each position is tried as the middle of one.
"""


def longest_palindrome(text):
    best = ""
    for middle in range(len(text)):
        for width in (1, 2):
            left, right = middle, middle + width - 1
            while left >= 0 and right < len(text) and text[left] == text[right]:
                if right - left + 1 > len(best):
                    best = text[left : right + 1]
                left, right = left - 1, right + 1
    return best


print("Longest palindrome:", longest_palindrome("forgeeksskeegfor"))
