"""Strip the tags from HTML and keep only the readable text, without scripts and styles.

I saved a web article; how do I get plain words without all the markup?
How do I remove <b>, <p> and JavaScript from a page's source?
How can I turn an HTML newsletter into something my screen reader reads plainly?
How do I clean scraped recipe pages so that only the visible words are left?
Strip html tags skip script style python?
"""

from html.parser import HTMLParser


class TextOnly(HTMLParser):
    def __init__(self):
        super().__init__()
        self.parts = []
        self.hidden = 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.parts.append(data.strip())


parser = TextOnly()
parser.feed("<h1>Tea &amp; Cake</h1><script>var x = 1;</script><p>Open <b>daily</b></p>")
print("Text:", " ".join(parser.parts))
