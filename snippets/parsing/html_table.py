"""Read a table from an HTML page into rows of cells, without extra libraries.

A webpage lists cities and populations in a grid; how do I get that data in Python?
How do I scrape td and th cells into lists without installing anything?
How can I copy the league standings from a site's source into rows?
How do I extract bus timetable entries shown in tr elements?
Scrape html table rows with standard library HTMLParser?
"""

from html.parser import HTMLParser


class TableReader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows = []
        self.in_cell = False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.in_cell:
            self.rows[-1][-1] += data


reader = TableReader()
reader.feed("<table><tr><th>City</th><th>People</th></tr><tr><td>Oslo</td><td>700</td></tr></table>")
print("Rows of the table:", reader.rows)
