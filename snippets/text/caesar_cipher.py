"""Encrypt and decrypt a message with the Caesar cipher, shifting each letter of the alphabet.

Also for rot13 and other letter rotations: everything that is no letter stays as it is.

How do I write a secret note to my friend by moving every letter three places?
How do I decode a rot13 puzzle in a geocache?
Someone sent me "Khoor, Zruog!"; how can I read it?
How did the Romans hide messages by rotating the ABC, and how can pupils try it?
Letter shift encryption python chr ord modulo 26?
"""


def caesar(text, shift):
    shifted = []
    for character in text:
        if character.isascii() and character.isalpha():
            start = ord("A") if character.isupper() else ord("a")
            character = chr((ord(character) - start + shift) % 26 + start)
        shifted.append(character)
    return "".join(shifted)


secret = caesar("Hello, World!", 3)
print("Encrypted:", secret)
print("Decrypted:", caesar(secret, -3))
