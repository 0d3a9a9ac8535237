"""Count how often each word occurs in a text and list the most common words.

Word frequency: lower-case the text, take the words out of it, and count them with Counter.

Which word do I use too often in my essay?
How do I get the top three words of a speech with their frequencies?
How many different words appear in a children's story?
Which terms dominate the customer reviews, ignoring upper and lower case?
Word frequency Counter most_common text python?
"""

import re
from collections import Counter

text = "The cat saw the dog. The dog saw the mouse, and the dog ran away."

words = re.findall(r"[a-z']+", text.lower())
counts = Counter(words)

print("Number of words:", len(words))
print("Number of different words:", len(counts))
for word, count in counts.most_common(3):
    print(f"{word}: {count} times")
