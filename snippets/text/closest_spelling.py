"""Suggest the correct spelling of a mistyped word, by fuzzy matching against a list of known words."""

from difflib import SequenceMatcher, get_close_matches

known = ["banana", "orange", "pineapple", "strawberry", "cherry"]

for typed in ["bananna", "oragne", "pinaple", "xyz"]:
    matches = get_close_matches(typed, known, n=1, cutoff=0.6)
    if matches:
        score = SequenceMatcher(None, typed, matches[0]).ratio()
        print(f"{typed}: did you mean {matches[0]}? (similarity {score:.2f})")
    else:
        print(f"{typed}: nothing similar")
