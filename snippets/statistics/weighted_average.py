"""Calculate a weighted average, such as a final grade from exams that count differently.

Homework counts 20 percent, the midterm 30 and the final 50; what grade do I get?
How do I average numbers when some matter more than others?
I bought shares at different prices and amounts; what was my mean price per share?
How do I compute a grade point average with credit hours?
Mean with weights python sum of products?
"""

grades = {"homework": (90, 0.2), "midterm": (80, 0.3), "final exam": (70, 0.5)}

total_weight = sum(weight for _, weight in grades.values())
average = sum(grade * weight for grade, weight in grades.values()) / total_weight
print(f"Weighted average grade: {average:.1f}")
