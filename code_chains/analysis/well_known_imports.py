"""Well-known names and the modules that they are imported from."""

from __future__ import annotations

_ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "dt": "import datetime as dt",
    "ET": "import xml.etree.ElementTree as ET",
    "pl": "import polars as pl",
    "sns": "import seaborn as sns",
    "sp": "import sympy as sp",
}
_MEMBERS = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "dataclasses": "dataclass field asdict",
    "datetime": "date timedelta timezone",
    "decimal": "Decimal",
    "enum": "Enum",
    "fractions": "Fraction",
    "functools": "cache lru_cache partial reduce",
    "itertools": "accumulate chain combinations count cycle groupby islice pairwise permutations product takewhile",
    "math": "ceil comb cos exp factorial floor gcd isqrt lcm log pi prod sin sqrt tan",
    "pathlib": "Path",
    "random": "choice randint shuffle",
    "statistics": "mean median mode pstdev stdev variance",
    "string": "ascii_letters ascii_lowercase digits punctuation",
    "typing": "Any Callable Dict Iterable Iterator List Optional Set Tuple Union",
    "zoneinfo": "ZoneInfo",
}
_FROM = {name: f"from {module} import {name}" for module, names in _MEMBERS.items() for name in names.split()}


def import_line(name: str) -> str:
    """Return the import that usually provides a name; empty for unknown names.

    Example:
        >>> import_line("np"), import_line("Counter"), import_line("total")
        ('import numpy as np', 'from collections import Counter', '')
    """
    return _ALIASES.get(name) or _FROM.get(name) or ""


def words_of(module: str) -> list[str]:
    """Return the well-known names of a module."""
    return _MEMBERS[module].split()
