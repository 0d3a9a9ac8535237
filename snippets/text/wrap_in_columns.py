"""Wrap a long text to a line width and center it or align it left and right.

Formatting output: textwrap breaks lines between words; ljust, rjust and center pad with spaces.

How do I break a paragraph so that no row has more than 24 characters?
How do I print a menu with dotted lines between dish and price?
How can I center the words of a poem in a box on the terminal?
How do I line up item names on the left and amounts on the right on a receipt?
Textwrap ljust rjust center padding example?
"""

import textwrap

text = "Simple things should be simple, and complex things should be possible."

lines = textwrap.wrap(text, width=24)
print("Lines:", len(lines))
for line in lines:
    print("|" + line.center(24) + "|")
for name, price in [("Tea", 2.5), ("Chocolate cake", 11)]:
    print(name.ljust(16, ".") + f"{price:.2f}".rjust(8, "."))
