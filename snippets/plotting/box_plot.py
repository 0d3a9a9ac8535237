"""Compare distributions with box plots that show median, quartiles and outliers of each group.

How do I compare waiting times in the morning, at noon and in the evening at a glance?
How do I draw a whisker diagram for several groups of measurements?
Which class has more spread in its test points; how do I visualize that?
How do I see unusual delivery times per courier in one picture with quartiles?
Matplotlib boxplot several groups xticks?
"""

import matplotlib.pyplot as plt

waiting = {"morning": [5, 7, 8, 9, 10, 12], "noon": [10, 12, 15, 15, 18, 40], "evening": [3, 4, 4, 5, 6, 7]}

plt.boxplot(list(waiting.values()))
plt.xticks(range(1, len(waiting) + 1), list(waiting))
plt.title("Waiting time by time of day")
plt.xlabel("Time of day")
plt.ylabel("Minutes")
print("Longest wait at noon:", max(waiting["noon"]), "minutes")
plt.show()
