"""Reverse a string, the order of its words, or each word of a sentence.

How do I say a sentence with the last word first?
How do I flip a string so that hello becomes olleh?
How can I write every word backwards but keep their order in the sentence?
For a secret kids' language, how do I turn "quick brown" into "kciuq nworb"?
String slice [::-1] split join word order?
"""

sentence = "the quick brown fox"

print("Letters reversed:", sentence[::-1])
print("Word order reversed:", " ".join(sentence.split()[::-1]))
print("Each word reversed:", " ".join(word[::-1] for word in sentence.split()))
