"""Load a JSON file, change a setting in it and save it again, nicely indented."""

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
