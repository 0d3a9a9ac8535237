"""Search a deeply nested JSON document for every value of a key, wherever it is."""

import json


def find_all(document, key):
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key:
                yield value
            yield from find_all(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from find_all(value, key)


text = '{"order": {"price": 10, "items": [{"price": 4}, {"gift": {"price": 6}}]}}'
prices = list(find_all(json.loads(text), "price"))
print("All prices in the document:", prices)
