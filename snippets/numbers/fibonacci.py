"""Generate Fibonacci numbers: the first ten, the hundredth, and the sum of the even ones."""

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
