"""References of a package that are shown together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import dropwhile

from langchain_core.documents import Document

REFERENCE = "reference"
"""The `kind` in the metadata of a reference."""

_NEXT_BLOCK = re.compile(r"\n\n(?=from \S+ import |import )")


def is_reference(document: Document) -> bool:
    """Return whether a snippet says how something of a package is called, instead of being an example."""
    return document.metadata.get("kind") == REFERENCE


def signature_of(reference: Document) -> str:
    """Return how something of a package is imported and called, without what is said of it."""
    return f"{_import_of(reference.page_content)}\n{reference.metadata.get('signature', '')}"


def distinct_texts(references: Iterable[Document]) -> list[str]:
    r"""Return the texts of references, without what another of them says in full or an earlier one has said.

    A reference is a block about its own definition, and a block for the constructor of each class that it names; each
    block begins with the line that imports the definition.

    Example:
        >>> texts = ["from a import f\nf(x: C)\n\nfrom a import C\nC()", "from a import C\nC()\n    A class."]
        >>> distinct_texts([Document(text) for text in texts])
        ['from a import f\nf(x: C)', 'from a import C\nC()\n    A class.']
    """
    blocks = [_NEXT_BLOCK.split(reference.page_content.strip()) for reference in references]
    shown, said = {_import_of(own) for own, *_ in blocks}, set[str]()
    owns: dict[str, list[str]] = {}
    texts = []
    for own, *others in blocks:
        rest = _without(own, owns.setdefault(_import_of(own), []))
        new = [
            block for block in dict.fromkeys(others) if block not in said and _import_of(block) not in shown
        ]
        said |= set(new)
        texts.append("\n\n".join(filter(None, [rest, *new])))
    return list(filter(None, texts))


def _without(block: str, said: list[str]) -> str:
    """Return a block about a class or a method of it without the first lines that were said, and add the rest to them."""
    lines = list(dropwhile(said.__contains__, block.split("\n")))
    is_new = len(lines) != 2 or f"{lines[0]}  # {lines[1].strip()}" not in said
    said += lines
    return "\n".join(lines) if is_new else ""


def _import_of(block: str) -> str:
    return block.partition("\n")[0]
