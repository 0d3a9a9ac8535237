"""Which kind of table a variable is, by its library and class, and names that programs may not use."""

from __future__ import annotations

VARIABLES_REMEDY = 'variables must be a mapping, e.g. {"n": 3}.'
_TABLES = {
    ("numpy", "ndarray"): "numpy",
    ("pandas", "DataFrame"): "pandas",
    ("pandas", "Series"): "pandas_series",
    ("polars", "DataFrame"): "polars",
    ("polars", "Series"): "polars_series",
    ("pyarrow", "Table"): "pyarrow",
}
"""Arrays, frames and series by library and class."""


def table_kind(value: object) -> str | None:
    """Return `numpy`, `pandas`, `polars` or `pyarrow` for their arrays and frames, `pandas_series` or `polars_series`.

    Anything else gives None.
    """
    kind = type(value)
    return _TABLES.get((str(getattr(kind, "__module__", "")).partition(".")[0], kind.__name__))
