"""Join two DataFrames on a common column, as an inner and a left join with merge.

I have staff in one dataframe and department names in another; how do I put them together?
Which employees have a department number that does not exist in the second pandas table?
How do I combine two dataframes using a shared id and keep unmatched rows?
How do I add the country name to my flights dataframe from an airport dataframe?
Pd.merge how left indicator inner example?
"""

import pandas as pd

employees = pd.DataFrame({"name": ["Ann", "Bob", "Cem"], "department_id": [1, 2, 9]})
departments = pd.DataFrame({"department_id": [1, 2, 3], "department": ["IT", "HR", "Sales"]})

inner = employees.merge(departments, on="department_id")
left = employees.merge(departments, on="department_id", how="left", indicator=True)
print("Employees with a department:")
print(inner[["name", "department"]])
print("Without a match:", left.loc[left["_merge"] == "left_only", "name"].tolist())
