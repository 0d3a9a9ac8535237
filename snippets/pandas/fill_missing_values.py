"""Find and fill missing values (NaN) in a DataFrame, with the median, a constant or the value before.

My weather table has gaps where the sensor failed; how do I fill the holes?
How do I replace empty cells in pandas by the middle value of the column?
How many blanks does each survey column contain, and how do I carry forward the last answer?
Excel shows blank cells for repeated station names; how do I copy the one above down?
Fillna median ffill isna count dataframe?
"""

import pandas as pd

weather = pd.DataFrame(
    {
        "temperature": [10.0, None, 14.0, 12.0],
        "rain": [0.0, 2.5, None, None],
        "station": ["A", None, None, "B"],
    }
)

print("Missing values:", weather.isna().sum().to_dict())
filled = weather.assign(
    temperature=weather["temperature"].fillna(weather["temperature"].median()),
    rain=weather["rain"].fillna(0),
    station=weather["station"].ffill(),
)
print(filled)
print("Complete rows before:", len(weather.dropna()))
