"""Count the vowels, consonants, digits and spaces in a string."""


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
