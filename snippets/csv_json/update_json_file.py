"""Load a JSON file, change a setting in it and save it again, nicely indented.

How do I switch my app's config file from light to dark theme with a script?
How do I edit one value in a .json document and write it back prettily formatted?
Can I append a new entry to a list stored in my settings and store it again?
My game keeps high scores in JSON; how do I modify them and save with indentation?
Read modify write json file indent sort_keys?
"""

import json
from pathlib import Path

path = Path("settings.json")
path.write_text('{"theme": "light", "volume": 5, "recent": ["a.txt"]}')

settings = json.loads(path.read_text())
settings["theme"] = "dark"
settings["recent"].append("b.txt")
path.write_text(json.dumps(settings, indent=2, sort_keys=True))

print("Saved settings:")
print(path.read_text())
