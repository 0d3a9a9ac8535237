"""Check whether a sentence is a palindrome, ignoring spaces, punctuation and capitals."""


def is_palindrome(sentence):
    letters = [letter for letter in sentence.casefold() if letter.isalnum()]
    return letters == letters[::-1]


for sentence in ["A man, a plan, a canal: Panama!", "Never odd or even", "Hello, world"]:
    print(f"{sentence!r} is a palindrome: {is_palindrome(sentence)}")
