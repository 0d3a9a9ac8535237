"""Extract all links with their text from an HTML page."""

from html.parser import HTMLParser


class LinkFinder(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []
        self.inside = False

    def handle_starttag(self, tag, attrs):
        if tag == "a" and "href" in dict(attrs):
            self.inside = True
            self.links.append([dict(attrs)["href"], ""])

    def handle_data(self, data):
        if self.inside:
            self.links[-1][1] += data

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "a"


finder = LinkFinder()
finder.feed('<p>Read <a href="/docs">the <b>manual</b></a> or <a href="https://example.com">ask</a>.</p>')
for address, text in finder.links:
    print(f"{text} -> {address}")
