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


_DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "fitz": "pymupdf",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


USUAL_PACKAGES = tuple(
    "numpy pandas matplotlib polars scipy sklearn sympy openpyxl pyarrow PIL seaborn statsmodels networkx".split()
)
"""Packages that models use, of which those that are installed are named to them."""


_POPULAR = frozenset(
    (
        "altair bokeh catboost dask duckdb folium geopandas gensim httpx jax keras lightgbm lxml nltk numba"
        " plotly prophet requests shapely spacy sqlalchemy tabulate tensorflow torch tqdm transformers"
        " wordcloud xgboost xlsxwriter yfinance"
    ).split()
)
"""Further packages that models use, each of which is installed under its own name."""


def distribution_of(module: str) -> str:
    """Return the name under which a module is installed with pip."""
    root = module.partition(".")[0]
    return _DISTRIBUTIONS.get(root, root.replace("_", "-"))


def install_advice(module: str) -> str:
    """Return how a well-known module is installed; empty for others, as anybody may have published one of that name."""
    is_known = module in _DISTRIBUTIONS or module in USUAL_PACKAGES or module in _POPULAR
    return f" (pip install {distribution_of(module)})" if is_known else ""
