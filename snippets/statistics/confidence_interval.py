"""Give a 95 percent confidence interval for the mean of a sample.

Mean plus or minus 1.96 standard errors (normal approximation); use a t value for few measurements.
"""

import math
import statistics

sample = [48, 52, 50, 47, 53, 51, 49, 50, 46, 54] * 4

mean = statistics.mean(sample)
error = statistics.stdev(sample) / math.sqrt(len(sample))
factor = statistics.NormalDist().inv_cdf(0.975)
low, high = mean - factor * error, mean + factor * error
print(f"Mean {mean} with 95% confidence interval from {low:.2f} to {high:.2f}")
