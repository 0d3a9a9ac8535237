"""Break a number into its prime factors and check whether it is prime."""


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
