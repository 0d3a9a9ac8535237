"""Pull all numbers out of a sentence, with signs and decimals, and add up the prices in dollars.

How do I get all figures from "2 coffees were $4.50 each and rolls were $12"?
How do I sum the dollar amounts mentioned in a message?
A chat says it was -3.5 degrees; how do I pull the value out of the words?
My receipt is free text; how do I fetch the money values from it?
Regex float negative numbers from string?
"""

import re

text = "It was -3.5 degrees, 2 coffees were $4.50 each and the 10 rolls were $12."

numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
prices = [float(price) for price in re.findall(r"\$(\d+(?:\.\d+)?)", text)]
print("All numbers:", numbers)
print("Prices:", prices, "with a sum of", sum(prices))
