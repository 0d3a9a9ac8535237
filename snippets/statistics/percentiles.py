"""Find quartiles and percentiles of data, such as the 90th percentile of response times."""

import numpy as np

times = np.arange(1, 101)

for percent in [25, 50, 75, 90]:
    print(f"{percent}th percentile: {np.percentile(times, percent):.2f}")
print("Share of values up to 90:", np.mean(times <= 90))
