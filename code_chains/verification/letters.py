"""Letters as they are compared: without case and accents."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """Return text without case and accents.

    Example:
        >>> folded("Éclair")
        'eclair'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))
