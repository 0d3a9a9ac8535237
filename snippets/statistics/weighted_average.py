"""Calculate a weighted average, such as a final grade from exams that count differently."""

grades = {"homework": (90, 0.2), "midterm": (80, 0.3), "final exam": (70, 0.5)}

total_weight = sum(weight for _, weight in grades.values())
average = sum(grade * weight for grade, weight in grades.values()) / total_weight
print(f"Weighted average grade: {average:.1f}")
