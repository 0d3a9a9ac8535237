"""Count how often each value occurs in a DataFrame column, and as a percentage.

In our poll, how many said yes, no or abstain, and what percent is each?
How do I see the frequency of the entries in one table column?
Which car colour is most common in my parking survey dataframe, and how common?
How do I get the share of each answer to a questionnaire in pandas?
Value_counts normalize percent mode of series?
"""

import pandas as pd

votes = pd.Series(["yes", "no", "yes", "yes", "abstain", "no", "yes", "yes", "no", "yes"], name="vote")

table = pd.DataFrame(
    {"count": votes.value_counts(), "percent": votes.value_counts(normalize=True).mul(100).round(1)}
)
print("Votes:")
print(table)
print("Most common answer:", votes.mode()[0])
