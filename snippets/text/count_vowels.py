"""Count the vowels, consonants, digits and spaces in a string.

How many of the letters a, e, i, o, u are in my name?
How do I tell how many letters, figures and blanks a sentence has?
For a spelling game, how do I score words by a-e-i-o-u letters versus the others?
How many digits and blanks are there in "Hello World 2024"?
Count vowels and consonants in string python?
"""


def count_characters(text):
    letters = [character for character in text.lower() if character.isalpha()]
    vowels = sum(letter in "aeiou" for letter in letters)
    return {
        "vowels": vowels,
        "consonants": len(letters) - vowels,
        "digits": sum(character.isdigit() for character in text),
        "spaces": text.count(" "),
    }


print(count_characters("Hello World 2024"))
