"""References of a package that are shown together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

REFERENCE = "reference"
"""The `kind` in the metadata of a reference."""

_NEXT_BLOCK = re.compile(r"\n\n(?=from \S+ import |import )")


def is_reference(document: Document) -> bool:
    """Return whether a snippet says how something of a package is called, instead of being an example."""
    return document.metadata.get("kind") == REFERENCE


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
    said = {_import_of(own) for own, *_ in blocks}
    texts = []
    for own, *others in blocks:
        new = _new_blocks(others, said)
        said |= set(map(_import_of, new))
        texts.append("\n\n".join([own, *new]))
    return texts


def _new_blocks(blocks: Sequence[str], said: set[str]) -> list[str]:
    return [block for block in blocks if _import_of(block) not in said]


def _import_of(block: str) -> str:
    return block.partition("\n")[0]
