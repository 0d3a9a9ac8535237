"""Read an INI configuration file with sections, types and default values.

My app has a file with [server] and port = 8080; how do I read it?
How do I get yes/no and number options from a .ini or .cfg file?
How can a setting fall back to a default when a section does not have it?
My game's options are stored under bracketed headings; how do I load them in Python?
Configparser getint getboolean fallback DEFAULT section?
"""

import configparser
from pathlib import Path

Path("app.ini").write_text("""
[DEFAULT]
timeout = 30

[server]
host = localhost
port = 8080
debug = yes

[backup]
timeout = 120
""")

config = configparser.ConfigParser()
config.read("app.ini")
print("Sections:", config.sections())
print("Port plus one:", config.getint("server", "port") + 1)
print("Debug:", config.getboolean("server", "debug"))
print("Timeouts:", {section: config.getint(section, "timeout") for section in config.sections()})
print("Missing value:", config.get("server", "user", fallback="nobody"))
