"""Group words that are anagrams of each other, that is, have the same letters in another order."""

from collections import defaultdict


def group_anagrams(words):
    groups = defaultdict(list)
    for word in words:
        groups["".join(sorted(word.lower()))].append(word)
    return [group for group in groups.values() if len(group) > 1]


words = ["listen", "banana", "silent", "evil", "apple", "vile", "enlist", "live"]
print("Anagrams:", group_anagrams(words))
