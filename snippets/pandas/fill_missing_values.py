"""Find and fill missing values (NaN) in a DataFrame, with the median, a constant or the value before."""

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
