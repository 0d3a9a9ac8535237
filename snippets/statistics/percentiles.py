"""Find quartiles and percentiles of data, such as the 90th percentile of response times.

Below which response time do 90 percent of our web requests stay?
How do I get the value that a quarter of the data lies under?
My baby weighs more than how many percent of others; how is that calculated?
What salary separates the upper 25 percent from the rest in a list?
Numpy percentile p90 p95 quartile example?
"""

import numpy as np

times = np.arange(1, 101)

for percent in [25, 50, 75, 90]:
    print(f"{percent}th percentile: {np.percentile(times, percent):.2f}")
print("Share of values up to 90:", np.mean(times <= 90))
