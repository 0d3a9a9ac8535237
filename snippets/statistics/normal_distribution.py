"""Find the probability that a normally distributed value is below, above or between limits.

Bell curve with known mean and standard deviation, such as IQ scores or heights.
"""

from statistics import NormalDist

iq = NormalDist(mu=100, sigma=15)

print(f"Below 100: {iq.cdf(100):.2%}")
print(f"Above 130: {1 - iq.cdf(130):.2%}")
print(f"Between 85 and 115: {iq.cdf(115) - iq.cdf(85):.2%}")
print(f"The top 10% start at: {iq.inv_cdf(0.9):.1f}")
