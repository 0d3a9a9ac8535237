"""A function that is tested before it is believed: the program can neither see nor patch its tests."""

import sys

from code_chains import create_code_chain

model = sys.argv[1] if len(sys.argv) > 1 else "local"
question = {
    "query": "Write a Python function `initials(name)`: the first letters of all words in a name, in upper case.",
    "examples": [("ada lovelace", "AL"), ("grace brewster murray hopper", "GBMH"), ("plato", "P")],
}

with create_code_chain(model, samples=3, interpret=False) as chain:
    result = chain.invoke(question)

print(result["code"])
print(f"{result['verdict'].status} by {result['verdict'].by}: {result['verdict'].reason}")
for attempt in result["attempts"]:
    print(f"attempt {attempt.number} ({attempt.tack}): {attempt.verdict.reason}")
