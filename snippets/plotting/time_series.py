"""Plot values over dates as a time series, with readable dates on the axis and a rolling mean.

How do I chart my daily step counts with a 7-day average line?
How do I keep date labels on the x axis from overlapping?
How can I plot daily temperatures over a fortnight and smooth them?
How do I draw a stock price by day with a smoothed curve on top?
Matplotlib dates axis autofmt_xdate rolling 7 plot?
"""

import matplotlib.pyplot as plt
import pandas as pd

days = pd.date_range("2024-03-01", periods=14, freq="D")
steps = pd.Series([4, 6, 5, 8, 7, 12, 11, 5, 6, 7, 8, 9, 14, 12], index=days)

figure, axes = plt.subplots()
axes.plot(steps.index, steps, label="per day")
axes.plot(steps.index, steps.rolling(7).mean(), label="mean of 7 days")
axes.set_title("Thousand steps per day")
axes.set_xlabel("Date")
axes.set_ylabel("Thousand steps")
axes.legend()
figure.autofmt_xdate()
print("Day with most steps:", steps.idxmax().date())
plt.show()
