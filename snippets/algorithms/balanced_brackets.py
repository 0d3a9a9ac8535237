"""Check whether brackets and parentheses in an expression are balanced, using a stack.

My formula has lots of ( and [ signs; did I close every one I opened?
How do I find out if a closing parenthesis is missing in some code?
Does each opening curly brace in this text have its matching closing one in the right order?
A student typed 3*(x+[2-y) into a worksheet; can a program spot the mismatch?
Matching parentheses checker python stack?
"""


def is_balanced(text):
    partner = {")": "(", "]": "[", "}": "{"}
    stack = []
    for character in text:
        if character in partner.values():
            stack.append(character)
        elif character in partner and (not stack or stack.pop() != partner[character]):
            return False
    return not stack


for text in ["{a * [b + (c - d)]}", "(]", "((1 + 2)", ""]:
    print(f"{text!r} is balanced: {is_balanced(text)}")
