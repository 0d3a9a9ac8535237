"""Count how often each value occurs in a DataFrame column, and as a percentage."""

import pandas as pd

votes = pd.Series(["yes", "no", "yes", "yes", "abstain", "no", "yes", "yes", "no", "yes"], name="vote")

table = pd.DataFrame(
    {"count": votes.value_counts(), "percent": votes.value_counts(normalize=True).mul(100).round(1)}
)
print("Votes:")
print(table)
print("Most common answer:", votes.mode()[0])
