"""Pull all numbers out of a sentence, with signs and decimals, and add up the prices in dollars."""

import re

text = "It was -3.5 degrees, 2 coffees were $4.50 each and the 10 rolls were $12."

numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
prices = [float(price) for price in re.findall(r"\$(\d+(?:\.\d+)?)", text)]
print("All numbers:", numbers)
print("Prices:", prices, "with a sum of", sum(prices))
