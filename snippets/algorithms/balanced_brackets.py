"""Check whether brackets and parentheses in an expression are balanced, using a stack."""


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
