"""Extract all links with their text from an HTML page.

How do I get every URL that a web page points to?
Which pages does my site's menu lead to, along with the clickable words?
How do I collect the href of all anchors in saved page source?
I want to gather the download addresses from a school homepage; how do I scrape them?
HTMLParser a href anchor text without BeautifulSoup?
"""

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
