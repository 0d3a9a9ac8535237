"""Packages that models use, and the names under which pip installs them."""

from __future__ import annotations

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
