"""Reverse a string, the order of its words, or each word of a sentence."""

sentence = "the quick brown fox"

print("Letters reversed:", sentence[::-1])
print("Word order reversed:", " ".join(sentence.split()[::-1]))
print("Each word reversed:", " ".join(word[::-1] for word in sentence.split()))
