"""Names of code in a question, and the snippets that have them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from difflib import get_close_matches

from langchain_core.documents import Document

MAX_QUERY_CHARS, MAX_IDENTIFIERS = 20_000, 20
_IDENTIFIER = r"[^\W\d]\w*"
_DOTTED = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
_QUOTED = re.compile(rf"`({_DOTTED})(?:\([^`\n]{{0,200}}\))?`")
_CALLED = re.compile(rf"(?<![\w.])({_DOTTED})\(")
_PLAIN = re.compile(rf"(?<![\w.])({_DOTTED})(?!\w)")
_CODE_LIKE = re.compile(r"\w_\w|[a-z0-9][A-Z]|[^\W\d_]\.[^\W\d]")
"""What is no ordinary word: `snake_case`, `CamelCase` and `dotted.names`."""
_COMMON = {
    *("self", "cls", "str", "int", "float", "bool", "bytes", "list", "dict", "set", "tuple"),
    *("None", "True", "False", "Any", "Optional", "Union", "await", "with"),
}


def identifiers_in(query: str) -> list[str]:
    """Return what looks like a name of code in a question: in backticks, called, snake_case, CamelCase or dotted.

    Example:
        >>> identifiers_in("What does `vat` add, and Invoice.total() or net_amount? Nothing in Rome.")
        ['vat', 'Invoice.total', 'net_amount']
    """
    text = query[:MAX_QUERY_CHARS]
    plain = filter(_CODE_LIKE.search, _PLAIN.findall(text))
    found = dict.fromkeys([*_QUOTED.findall(text), *_CALLED.findall(text), *plain])
    return [name for name in found if name not in _COMMON][:MAX_IDENTIFIERS]


def names_of(document: Document) -> tuple[set[str], set[str]]:
    """Return the names of a snippet, of a dotted one each end as well; and the other words of its signature."""
    source, _, part = str(document.id or "").partition("#")
    is_reference = "signature" in document.metadata
    dotted = source if is_reference else part.partition("~")[0] or source.rpartition("/")[2].partition(".")[0]
    parts = dotted.split(".")
    names = {".".join(parts[start:]) for start in range(len(parts))}
    signature = str(document.metadata.get("signature") or "")
    return names, set(re.findall(_IDENTIFIER, signature)) - names - _COMMON


class NameIndex:
    """The numbers of snippets by their names, and by the other words of their signatures."""

    def __init__(self) -> None:
        self._named: defaultdict[str, set[int]] = defaultdict(set)
        self._worded: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, number: int, document: Document) -> None:
        """Add a snippet."""
        names, words = names_of(document)
        for name in names:
            self._named[name].add(number)
        for word in words:
            self._worded[word].add(number)

    def discard(self, number: int, document: Document) -> None:
        """Remove a snippet."""
        for index, words in zip((self._named, self._worded), names_of(document), strict=True):
            for word in words:
                index[word].discard(number)
                if not index[word]:
                    del index[word]

    def nearest(self, name: str) -> list[str]:
        """Return the name of a snippet that is most similar to one that none has; at most one."""
        return get_close_matches(name, (other for other in self._named if "." not in other), n=1)

    def find(self, identifiers: Iterable[str]) -> tuple[set[int], set[int]]:
        """Return the numbers of snippets with one of these names, and of others with one in their signature."""
        identifiers = list(identifiers)
        named = {number for one in identifiers for number in self._named.get(one, ())}
        worded = {number for one in identifiers for number in self._worded.get(one, ())}
        return named, worded - named
