"""Take a URL apart into host, port, path and query parameters, and build one with other parameters."""

from urllib.parse import parse_qs, urlencode, urlsplit

parts = urlsplit("https://shop.example.com:8080/search/books?q=green+tea&page=2&tag=a&tag=b#top")

print("Host:", parts.hostname)
print("Port:", parts.port)
print("Path:", parts.path)
print("Parameters:", parse_qs(parts.query))
print("Next page:", parts._replace(query=urlencode({"q": "green tea", "page": 3}), fragment="").geturl())
