"""Convert temperatures, lengths and weights: Fahrenheit and Celsius, miles and kilometres, pounds.

The American recipe says 350 degrees F; what do I set on my Celsius oven?
How many miles is a marathon of 42.195 km?
I am 6 feet tall and weigh 150 lb; what is that in cm and kg?
How do I translate US measurements such as inches into metric ones?
Unit converter fahrenheit miles pounds to metric python?
"""

FACTORS = {"km": 1000, "m": 1, "cm": 0.01, "mile": 1609.344, "foot": 0.3048, "inch": 0.0254}


def convert_length(value, unit, other):
    return value * FACTORS[unit] / FACTORS[other]


def fahrenheit_to_celsius(degrees):
    return (degrees - 32) * 5 / 9


print("98.6 °F in °C:", round(fahrenheit_to_celsius(98.6), 1))
print("100 °C in °F:", 100 * 9 / 5 + 32)
print("Marathon of 42.195 km in miles:", round(convert_length(42.195, "km", "mile"), 2))
print("6 feet in cm:", round(convert_length(6, "foot", "cm"), 2))
print("150 pounds in kg:", round(150 * 0.45359237, 2))
