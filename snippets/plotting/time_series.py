"""Plot values over dates as a time series, with readable dates on the axis and a rolling mean."""

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
