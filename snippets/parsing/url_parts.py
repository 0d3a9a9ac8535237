"""Take a URL apart into host, port, path and query parameters, and build one with other parameters.

How do I find the search word inside a web address like ...?q=green+tea&page=2?
How do I change page=2 to page=3 in a link?
Which domain and port does this link point to?
I have shop links with tracking parameters; how do I read what follows the question mark?
Urllib urlsplit parse_qs urlencode example?
"""

from urllib.parse import parse_qs, urlencode, urlsplit

parts = urlsplit("https://shop.example.com:8080/search/books?q=green+tea&page=2&tag=a&tag=b#top")

print("Host:", parts.hostname)
print("Port:", parts.port)
print("Path:", parts.path)
print("Parameters:", parse_qs(parts.query))
print("Next page:", parts._replace(query=urlencode({"q": "green tea", "page": 3}), fragment="").geturl())
