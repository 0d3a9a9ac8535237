"""The tests. With `pytest --platform darwin` or `win32` they meet an imitation of that system."""

import sys

from . import other_systems

other_systems.imitate_if_asked(sys.argv)  # Before anything imports code_chains.
