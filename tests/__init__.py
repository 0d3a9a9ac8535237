"""The tests. With `pytest --platform darwin` or `win32` they meet an imitation of that system."""

import sys

import pytest

if "other_systems" in sys.modules:  # A test started this Python, which imitates that system already.
    sys.modules[f"{__name__}.other_systems"] = sys.modules["other_systems"]

from tests.support import other_systems

other_systems.imitate_if_asked(sys.argv)  # Before anything imports code_chains.

pytest.register_assert_rewrite("code_chains.testing.contracts")  # Its failures say what was compared.
