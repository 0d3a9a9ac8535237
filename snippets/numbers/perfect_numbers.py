"""List the divisors of a number and find perfect numbers, which equal the sum of their divisors."""


def proper_divisors(number):
    return [divisor for divisor in range(1, number // 2 + 1) if number % divisor == 0]


print("Divisors of 28 below itself:", proper_divisors(28))
print("Perfect numbers below 1000:", [n for n in range(2, 1000) if sum(proper_divisors(n)) == n])
