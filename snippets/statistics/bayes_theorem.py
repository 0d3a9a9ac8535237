"""Apply Bayes' theorem to find how likely a disease is after a positive test.

Conditional probability from a base rate, the sensitivity of a test and its rate of false positives.

My test came back positive; how likely is it that I am really ill?
Only 1 percent have the illness and the test errs at times; what does a positive result mean?
How do I update a probability with new evidence, given false alarms?
A spam filter flags a mail; what is the chance it truly is spam?
Bayes rule base rate sensitivity false positive python?
"""


def probability_if_positive(base_rate, sensitivity, false_positives):
    sick_and_positive = base_rate * sensitivity
    healthy_and_positive = (1 - base_rate) * false_positives
    return sick_and_positive / (sick_and_positive + healthy_and_positive)


chance = probability_if_positive(base_rate=0.01, sensitivity=0.90, false_positives=0.09)
print(f"Probability of being sick after a positive test: {chance:.1%}")
