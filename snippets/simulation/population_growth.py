"""Model the growth of a population year by year, unlimited (exponential) and limited (logistic).

If rabbits multiply by 50 percent a year but the meadow feeds 1000, how many are there later?
How do I compare endless growth with growth that levels off at a maximum?
How will a bacteria culture develop when the food in the dish is limited?
How do I forecast the number of deer in a park with a carrying capacity?
Logistic vs exponential growth python yearly?
"""


def grow(start, rate, years, capacity=None):
    sizes = [start]
    for _ in range(years):
        size = sizes[-1]
        slowdown = 1 if capacity is None else 1 - size / capacity
        sizes.append(size + rate * size * slowdown)
    return sizes


unlimited = grow(100, 0.5, 20)
limited = grow(100, 0.5, 20, capacity=1000)
for year in (0, 1, 5, 10, 20):
    print(f"Year {year:2}: unlimited {unlimited[year]:8.0f}, limited {limited[year]:4.0f}")
