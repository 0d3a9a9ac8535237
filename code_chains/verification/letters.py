"""Letters as they are compared: without case and accents."""

from __future__ import annotations

import itertools
import unicodedata


def folded(text: str) -> str:
    """Return text without case and accents.

    Example:
        >>> folded("Éclair")
        'eclair'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(itertools.filterfalse(unicodedata.combining, decomposed))
