"""Group words that are anagrams of each other, that is, have the same letters in another order.

Which words in my list use exactly the same letters, like listen and silent?
How do I find Scrabble words that are rearrangements of one another?
How do I collect evil, vile and live together in one set?
For a word puzzle, which names can be made by shuffling the letters of others?
Anagram grouping sorted letters as dictionary key?
"""

from collections import defaultdict


def group_anagrams(words):
    groups = defaultdict(list)
    for word in words:
        groups["".join(sorted(word.lower()))].append(word)
    return [group for group in groups.values() if len(group) > 1]


words = ["listen", "banana", "silent", "evil", "apple", "vile", "enlist", "live"]
print("Anagrams:", group_anagrams(words))
