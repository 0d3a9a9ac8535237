"""List the divisors of a number and find perfect numbers, which equal the sum of their divisors.

Which numbers divide 28 without remainder?
Why is 6 special, being equal to 1 + 2 + 3, and which others are like it?
How can I seat 28 pupils in equal rows, that is, what are all the possible row sizes?
How do I get every factor of an integer except itself?
List all divisors of n, number equals sum of its divisors?
"""


def proper_divisors(number):
    return [divisor for divisor in range(1, number // 2 + 1) if number % divisor == 0]


print("Divisors of 28 below itself:", proper_divisors(28))
print("Perfect numbers below 1000:", [n for n in range(2, 1000) if sum(proper_divisors(n)) == n])
