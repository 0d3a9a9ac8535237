"""Imitates another system in each Python that a test starts; see `tests/support/other_systems.py`."""

import importlib.util
import sys
from pathlib import Path

# Invariant: it is loaded by its path, as the folder of the tests is no package of this process.
_spec = importlib.util.spec_from_file_location(
    "other_systems", Path(__file__).parents[1] / "other_systems.py"
)
assert _spec is not None
assert _spec.loader is not None
other_systems = sys.modules["other_systems"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(other_systems)
other_systems.imitate_if_asked([])
