"""Simulate the spread of a disease with the SIR model: susceptible, infected and recovered people.

When does a flu wave peak in a village of 1000 people?
How do I model how an infection passes through a population and people get well?
How many pupils would never catch the cold going round our school?
How does a lower contagion rate flatten the peak of sick people?
SIR model python daily steps peak infections?
"""

people, infected, recovered = 1000.0, 10.0, 0.0
susceptible = people - infected
contagion, recovery = 0.3, 0.1

peak_day, peak = 0, infected
for day in range(1, 201):
    new_cases = contagion * susceptible * infected / people
    healed = recovery * infected
    susceptible -= new_cases
    infected += new_cases - healed
    recovered += healed
    if infected > peak:
        peak_day, peak = day, infected

print(f"Most people are infected on day {peak_day}: {peak:.0f}")
print(f"Never infected after 200 days: {susceptible:.0f}")
print(f"Everybody is counted once: {susceptible + infected + recovered:.0f}")
