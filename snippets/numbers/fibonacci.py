"""Generate Fibonacci numbers: the first ten, the hundredth, and the sum of the even ones.

In the rabbit sequence 0, 1, 1, 2, 3, 5, what comes next and what is the 100th?
How do I produce a series where each term is the sum of the two before?
How many petals follow the famous sequence in nature, and how do I list its first terms?
What is the total of all even terms below 100 in the golden ratio sequence?
Fibonacci generator yield islice takewhile?
"""

from itertools import islice, takewhile


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


print("First ten:", list(islice(fibonacci(), 10)))
print("The hundredth after 0:", next(islice(fibonacci(), 100, None)))
even = [n for n in takewhile(lambda n: n < 100, fibonacci()) if n % 2 == 0]
print("Sum of the even ones below 100:", sum(even))
