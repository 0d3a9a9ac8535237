"""Suggest the correct spelling of a mistyped word, by fuzzy matching against a list of known words.

A customer typed "bananna"; how do I show "did you mean banana"?
How do I find the nearest entry in a list for a misspelled name?
How can a search field on my shop tolerate typos in product names?
Pupils write city names wrongly in a quiz; how do I accept almost correct answers?
Difflib get_close_matches fuzzy autocorrect typo?
"""

from difflib import SequenceMatcher, get_close_matches

known = ["banana", "orange", "pineapple", "strawberry", "cherry"]

for typed in ["bananna", "oragne", "pinaple", "xyz"]:
    matches = get_close_matches(typed, known, n=1, cutoff=0.6)
    if matches:
        score = SequenceMatcher(None, typed, matches[0]).ratio()
        print(f"{typed}: did you mean {matches[0]}? (similarity {score:.2f})")
    else:
        print(f"{typed}: nothing similar")
