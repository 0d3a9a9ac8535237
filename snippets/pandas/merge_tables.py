"""Join two DataFrames on a common column, as an inner and a left join with merge."""

import pandas as pd

employees = pd.DataFrame({"name": ["Ann", "Bob", "Cem"], "department_id": [1, 2, 9]})
departments = pd.DataFrame({"department_id": [1, 2, 3], "department": ["IT", "HR", "Sales"]})

inner = employees.merge(departments, on="department_id")
left = employees.merge(departments, on="department_id", how="left", indicator=True)
print("Employees with a department:")
print(inner[["name", "department"]])
print("Without a match:", left.loc[left["_merge"] == "left_only", "name"].tolist())
