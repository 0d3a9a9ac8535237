"""Standardize values to z-scores: how many standard deviations each lies from the mean.

Ann got 60 and Eve 100; how far above or below average is each in standard deviations?
How do I put results of different tests on the same scale to compare pupils?
Is my time relative to the group better in swimming or in running?
How unusual is one student's mark compared with the class, expressed in sigmas?
Standard score (x - mean) / stdev python?
"""

import statistics

marks = {"Ann": 60, "Bob": 70, "Cem": 80, "Dia": 90, "Eve": 100}

mean = statistics.mean(marks.values())
deviation = statistics.pstdev(marks.values())
for name, mark in marks.items():
    print(f"{name}: z-score {(mark - mean) / deviation:+.2f}")
