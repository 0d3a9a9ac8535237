"""Find the longest palindrome inside a text.

A palindrome reads the same forwards and backwards; each position is tried as the middle of one.

What is the largest mirrored piece hidden in "forgeeksskeegfor"?
How do I find a stretch in a string that is the same in both directions?
Where in a DNA string is the biggest symmetric section?
Which part of a long sentence of letters can be read from either side, as long as possible?
Longest palindromic substring expand around center?
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
