"""Find the hashtags and @mentions in social media posts and count the most used tags.

Which #tags are most popular in my tweets?
How do I see who was tagged with @ in a set of comments?
How do I count topics marked with # regardless of capitals?
Our club's Instagram captions use many tags; which one appears most?
Regex hashtag @username Counter posts?
"""

import re
from collections import Counter

posts = [
    "Great talk by @ann_lee at #PyCon!",
    "Learning #python with @bob and @ann_lee #pycon",
    "Rainy day #nofilter",
]

tags = Counter(tag.lower() for post in posts for tag in re.findall(r"#(\w+)", post))
mentions = sorted({name for post in posts for name in re.findall(r"@(\w+)", post)})
print("Most used tag:", tags.most_common(1)[0])
print("People mentioned:", mentions)
