"""Encrypt and decrypt a message with the Caesar cipher, shifting each letter of the alphabet.

Also for rot13 and other letter rotations: everything that is no letter stays as it is.
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
