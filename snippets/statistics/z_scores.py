"""Standardize values to z-scores: how many standard deviations each lies from the mean."""

import statistics

marks = {"Ann": 60, "Bob": 70, "Cem": 80, "Dia": 90, "Eve": 100}

mean = statistics.mean(marks.values())
deviation = statistics.pstdev(marks.values())
for name, mark in marks.items():
    print(f"{name}: z-score {(mark - mean) / deviation:+.2f}")
