"""Find the probability that a normally distributed value is below, above or between limits.

Bell curve with known mean and standard deviation, such as IQ scores or heights.

What share of people has an IQ above 130?
How likely is it that a man is between 175 and 185 cm tall, given average and spread?
From which score on do you belong to the best 10 percent on a bell curve?
Light bulbs last 1000 hours on average with some spread; how many fail before 800?
NormalDist cdf inv_cdf probability between two values?
"""

from statistics import NormalDist

iq = NormalDist(mu=100, sigma=15)

print(f"Below 100: {iq.cdf(100):.2%}")
print(f"Above 130: {1 - iq.cdf(130):.2%}")
print(f"Between 85 and 115: {iq.cdf(115) - iq.cdf(85):.2%}")
print(f"The top 10% start at: {iq.inv_cdf(0.9):.1f}")
