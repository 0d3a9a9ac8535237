"""Check whether a sentence is a palindrome, ignoring spaces, punctuation and capitals.

Does "A man, a plan, a canal: Panama!" read the same backwards?
How do I test if a phrase is identical from both ends, disregarding commas and upper case?
Is the name Hannah a mirror word?
How can my quiz app verify that a sentence like "Never odd or even" is reversible?
Palindrome check ignoring punctuation case python?
"""


def is_palindrome(sentence):
    letters = [letter for letter in sentence.casefold() if letter.isalnum()]
    return letters == letters[::-1]


for sentence in ["A man, a plan, a canal: Panama!", "Never odd or even", "Hello, world"]:
    print(f"{sentence!r} is a palindrome: {is_palindrome(sentence)}")
