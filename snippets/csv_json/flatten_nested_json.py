"""Flatten nested JSON into one level of keys joined by dots, such as address.city."""

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
