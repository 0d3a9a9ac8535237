"""Show a ranking as horizontal bars, sorted with the largest on top, for long names.

How do I chart the longest European rivers with the longest at the top?
My labels are too long under upright columns; how do I lay the chart on its side?
How do I draw a top ten list of countries by medals, sorted?
How can I plot sideways bars from largest to smallest?
Matplotlib barh sorted ranking chart?
"""

import matplotlib.pyplot as plt

lengths = {"Danube": 2850, "Volga": 3530, "Rhine": 1230, "Seine": 777}

ranked = sorted(lengths.items(), key=lambda pair: pair[1])
names = [name for name, _ in ranked]
plt.barh(names, [length for _, length in ranked], color="teal")
plt.title("Rivers of Europe by length")
plt.xlabel("Length in kilometres")
plt.ylabel("River")
plt.tight_layout()
print("From shortest to longest:", names)
plt.show()
