"""Compress a string by run-length encoding, so that aaabcc becomes a3b1c2, and expand it again.

How do I shorten "WWWWBBBW" by writing each letter with how often it repeats?
How do I turn a3b1c2 back into aaabcc?
My pixel art has long rows of one color; how can I store it compactly?
A knitting pattern says kkkpp; how do I write it as counts of equal stitches?
Rle compress string itertools groupby decode?
"""

import re
from itertools import groupby


def encode(text):
    return "".join(f"{letter}{len(list(run))}" for letter, run in groupby(text))


def decode(packed):
    return "".join(letter * int(count) for letter, count in re.findall(r"(\D)(\d+)", packed))


packed = encode("aaabccdddd")
print("Encoded:", packed)
print("Decoded:", decode(packed))
