"""Read an XML document with ElementTree, taking values from elements and attributes.

An order came as <item price="2.50" quantity="4">; how do I compute what it costs?
How do I read tags and attributes from an .xml file?
How do I get the customer name and the note out of an XML order?
A sports tracker exports XML; how do I loop over child nodes and sum a value?
ElementTree findall get attribute findtext?
"""

import xml.etree.ElementTree as ET

document = """
<order customer="Ann">
  <item price="2.50" quantity="4">Pen</item>
  <item price="15.00" quantity="1">Book</item>
  <note>Gift wrap</note>
</order>
"""

order = ET.fromstring(document)
total = 0
for item in order.findall("item"):
    cost = float(item.get("price")) * int(item.get("quantity"))
    total += cost
    print(f"{item.text}: {cost:.2f}")
print(f"Order of {order.get('customer')}, total {total:.2f}, note: {order.findtext('note')}")
