"""Find the longest common subsequence of two strings, letters that appear in both in the same order.

Which letters do two DNA strands share in the same sequence, even with gaps between them?
How do I find what two strings have in common when the matching characters are not adjacent?
How does a diff tool work out the part that stayed the same in two versions?
Comparing AGGTAB and GXTXAYB, what is the longest series of characters kept in order?
LCS of two strings python recursion with memo?
"""

from functools import cache


def common_subsequence(first, second):
    @cache
    def longest(i, j):
        if i == len(first) or j == len(second):
            return ""
        if first[i] == second[j]:
            return first[i] + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1), key=len)

    return longest(0, 0)


common = common_subsequence("AGGTAB", "GXTXAYB")
print(f"Longest common subsequence: {common} (length {len(common)})")
