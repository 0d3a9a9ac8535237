"""Strip the tags from HTML and keep only the readable text, without scripts and styles."""

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
