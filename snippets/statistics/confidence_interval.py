"""Give a 95 percent confidence interval for the mean of a sample.

Mean plus or minus 1.96 standard errors (normal approximation); use a t value for few measurements.

I weighed 40 bags of flour; within which range does the true average probably lie?
How do I state a margin of error for an average from a survey?
How sure can I be about the mean height from a sample of pupils?
How do I compute mean plus or minus 1.96 standard errors?
95% CI of sample mean python?
"""

import math
import statistics

sample = [48, 52, 50, 47, 53, 51, 49, 50, 46, 54] * 4

mean = statistics.mean(sample)
error = statistics.stdev(sample) / math.sqrt(len(sample))
factor = statistics.NormalDist().inv_cdf(0.975)
low, high = mean - factor * error, mean + factor * error
print(f"Mean {mean} with 95% confidence interval from {low:.2f} to {high:.2f}")
