"""Flatten nested JSON into one level of keys joined by dots, such as address.city.

How can I turn nested objects into simple column names like customer.address.zip for a spreadsheet?
How do I convert a dictionary within a dictionary to a single level?
Survey answers come as layered JSON; how do I get a plain list of path and value?
What is an easy way to see every leaf value with its full path, such as tags.0?
Flatten nested dict dot notation keys?
"""

import json


def flatten(value, path=""):
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return {path: value}
    flat = {}
    for key, part in parts:
        flat.update(flatten(part, f"{path}.{key}" if path else str(key)))
    return flat


text = '{"name": "Ann", "address": {"city": "Oslo", "zip": "0150"}, "tags": ["new", "vip"]}'
for key, value in flatten(json.loads(text)).items():
    print(f"{key} = {value}")
