"""query, code, verdict -> learned: keep an accepted program as a snippet for later questions."""

from __future__ import annotations

import ast
import hashlib
import logging
from datetime import UTC, datetime
from typing import ClassVar

from langchain_core.documents import Document

from code_chains.analysis.parsing import parse
from code_chains.analysis.references import makes_code
from code_chains.chains.base import Config, Flow, RunFunction, State, StreamingChain
from code_chains.errors import StoreError
from code_chains.retrieval.store import SnippetStore
from code_chains.state import Verdict

_log = logging.getLogger(__name__)


class LearnChain(StreamingChain):
    """Add the program of a verified answer to a snippet store, as an example for similar questions.

    Only programs that passed tests are added, and none twice: programs that differ in whitespace and comments
    alone are the same. Adds `learned`: the id of the new snippet, or None. The metadata of the snippet record
    its provenance: the question, the verdict and the time.

    Args:
        store: The store. If it was loaded from a folder, it is saved there again, merged with what other
            processes have saved since. If saving fails, a warning is logged and `learned` is None.
    """

    input_keys: ClassVar[list[str]] = ["query", "code", "verdict"]
    optional_keys: ClassVar[list[str]] = ["translation"]
    output_keys: ClassVar[list[str]] = ["learned"]

    name: str | None = "learn"
    store: SnippetStore

    @property
    def fingerprint(self) -> str:
        """A constant: learning affects answers only through the retrieved snippets, which have a fingerprint."""
        return "learn"

    def _flow(self, values: State, config: Config) -> Flow:
        verdict: Verdict = values["verdict"]
        is_verified = verdict.status == "verified" and not makes_code(values["code"])
        yield {"learned": (yield RunFunction(self._add, values, config)) if is_verified else None}

    def _add(self, values: State) -> str | None:
        code, query = values["code"], " ".join(str(values.get("translation") or values["query"]).split())
        name = f"learned/{_syntax_checksum(code)}"
        if self.store.get_by_ids([name]):
            return None
        metadata = {
            "source": "learned",
            "about": query,
            "language": "python",
            "verdict": values["verdict"].to_dict(),
            "learned": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        snippet = Document(code, metadata=metadata, id=name)
        try:
            if self.store.folder is None:
                self.store.add_documents([snippet])
            else:
                self.store.add_and_save([snippet])
        except StoreError as error:  # The answer is valid without it.
            _log.warning("A verified program was not added to the snippets: %s", error)
            return None
        return name


def _syntax_checksum(code: str) -> str:
    """Return a checksum that ignores whitespace and comments."""
    tree = parse(code)
    return hashlib.sha256((ast.dump(tree) if tree else code).encode("utf-8", "replace")).hexdigest()[:16]
