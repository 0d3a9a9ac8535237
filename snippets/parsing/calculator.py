"""Evaluate an arithmetic expression given as text, with parentheses and precedence, without eval.

A small recursive descent parser: each function reads one level of the grammar.

A user types "(2 + 3) * 4" in a box; how do I compute it safely?
How do I write a parser that knows multiplication comes before addition?
How can I work out a string formula without running it as Python code?
I am building a pocket calculator app; how does it handle brackets and minus signs?
Recursive descent parser math expression string?
"""

import operator
import re

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def calculate(text):
    symbols = re.findall(r"\d+\.?\d*|[-+*/()]", text)

    def factor():
        symbol = symbols.pop(0)
        if symbol == "-":
            return -factor()
        if symbol == "(":
            value = chain("+-", lambda: chain("*/", factor))
            symbols.pop(0)
            return value
        return float(symbol)

    def chain(signs, part):
        value = part()
        while symbols and symbols[0] in signs:
            value = OPERATORS[symbols.pop(0)](value, part())
        return value

    return chain("+-", lambda: chain("*/", factor))


for text in ["2 + 3 * 4", "(2 + 3) * 4", "-(10 - 4) / 3"]:
    print(f"{text} = {calculate(text):g}")
