"""List all prime numbers up to a limit with the sieve of Eratosthenes.

What are all the primes below 30?
How many primes are there under 1000, and how can I list them quickly?
How do I cross out multiples on a number grid until only indivisible numbers are left?
For a class poster I need each prime up to 200; how do I generate them?
Eratosthenes list of primes fast python?
"""


def primes_up_to(limit):
    is_prime = [False, False] + [True] * (limit - 1)
    for number in range(2, int(limit**0.5) + 1):
        if is_prime[number]:
            for multiple in range(number * number, limit + 1, number):
                is_prime[multiple] = False
    return [number for number, prime in enumerate(is_prime) if prime]


print("Primes up to 30:", primes_up_to(30))
print("Number of primes below 1000:", len(primes_up_to(999)))
print("Sum of the primes below 100:", sum(primes_up_to(99)))
