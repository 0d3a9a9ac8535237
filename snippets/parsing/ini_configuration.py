"""Read an INI configuration file with sections, types and default values."""

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
