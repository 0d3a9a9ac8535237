"""Search a deeply nested JSON document for every value of a key, wherever it is.

An API returns many nested levels; how do I collect all the "price" entries at any depth?
How do I look for a field in JSON when I do not know where it sits?
Can I dig out every "email" buried in lists inside dictionaries inside lists?
My recipe data hides "calories" in several layers; how do I pull out all of them?
Recursive search nested dict for key python?
"""

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
