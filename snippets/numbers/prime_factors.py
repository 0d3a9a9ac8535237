"""Break a number into its prime factors and check whether it is prime.

How do I write 360 as a product of the smallest building-block numbers?
How can I find out whether 97 is only divisible by one and itself?
Is 1001 a prime or can it be divided into smaller primes?
For my math homework, how do I decompose a number such as 84 step by step?
Prime factorization trial division python?
"""


def prime_factors(number):
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors + ([number] if number > 1 else [])


for number in [360, 97, 1001]:
    factors = prime_factors(number)
    kind = "prime" if factors == [number] else "not prime"
    print(f"{number} = {' * '.join(map(str, factors))}, {kind}")
