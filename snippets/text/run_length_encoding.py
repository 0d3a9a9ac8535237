"""Compress a string by run-length encoding, so that aaabcc becomes a3b1c2, and expand it again."""

import re
from itertools import groupby


def encode(text):
    return "".join(f"{letter}{len(list(run))}" for letter, run in groupby(text))


def decode(packed):
    return "".join(letter * int(count) for letter, count in re.findall(r"(\D)(\d+)", packed))


packed = encode("aaabccdddd")
print("Encoded:", packed)
print("Decoded:", decode(packed))
