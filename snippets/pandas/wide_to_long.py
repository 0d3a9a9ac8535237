"""Reshape a table from wide to long format with melt, one row for each student and subject.

My grades have a column per subject; how do I get one line per pupil and subject?
How do I unpivot a spreadsheet with months as columns into tidy rows?
How do I turn columns into rows in pandas so plotting tools accept it?
In which subject did each child score best, given separate math and art columns?
Pandas melt id_vars var_name value_name?
"""

import pandas as pd

wide = pd.DataFrame({"student": ["Ann", "Bob"], "math": [90, 70], "art": [80, 95]})

long = wide.melt(id_vars="student", var_name="subject", value_name="mark")
print("Long format:")
print(long.to_string(index=False))
best = long.loc[long.groupby("student")["mark"].idxmax()]
print("Best subject of each:", dict(zip(best["student"], best["subject"], strict=True)))
