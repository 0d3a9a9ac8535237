"""query, code, verdict -> learned."""

from __future__ import annotations

import ast
import hashlib
import logging
from datetime import UTC, datetime

from langchain_core.documents import Document

from code_chains.chains.base import Config, Do, Piece, Program, State
from code_chains.errors import StoreError
from code_chains.parsing import parse
from code_chains.snippets import SnippetStore
from code_chains.state import Verdict

__all__ = ["LearnChain"]

_log = logging.getLogger(__name__)


class LearnChain(Piece):
    """Keeps the program of a verified answer as a snippet, so that the next question like it finds an example.

    Only what tests have verified is kept, and nothing twice: a program that is there already, but for its spaces and
    comments, is left as it is. Adds `learned`: the id of the new snippet, or None. The snippet says where it comes from:
    the question, the verdict and the time.

    Args:
        store: Where it is kept. A store that was loaded from a folder is saved there again, with what others have learned
            there meanwhile. Where it cannot be saved, a warning is logged and `learned` is None.
    """

    name: str | None = "learn"
    store: SnippetStore

    @property
    def fingerprint(self) -> str:
        """Learning changes no answer by itself; what was learned is in the snippets that are retrieved."""
        return "learn"

    @property
    def input_keys(self) -> list[str]:
        """It needs an answer with its verdict."""
        return ["query", "code", "verdict"]

    @property
    def optional_keys(self) -> list[str]:
        """It is found by its English words, too."""
        return ["translation"]

    @property
    def output_keys(self) -> list[str]:
        """It says what was learned."""
        return ["learned"]

    def _program(self, values: State, config: Config) -> Program:
        verdict: Verdict = values["verdict"]
        yield {"learned": (yield Do(self._keep, values, config)) if verdict.status == "verified" else None}

    def _keep(self, values: State) -> str | None:
        code, query = values["code"], " ".join(str(values.get("translation") or values["query"]).split())
        name = f"learned/{_shape(code)}"
        if self.store.get_by_ids([name]):
            return None
        metadata = {
            "source": "learned",
            "about": query,
            "language": "python",
            "verdict": values["verdict"].to_dict(),
            "learned": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        keep = self.store.add_documents if self.store.folder is None else self.store.add_and_save
        try:
            keep([Document(code, metadata=metadata, id=name)])
        except StoreError as error:  # The answer is worth more than its memory.
            _log.warning("A verified program was not learned: %s", error)
            return None
        return name


def _shape(code: str) -> str:
    """What two programs share that differ in spaces and comments alone."""
    tree = parse(code)
    return hashlib.sha256((ast.dump(tree) if tree else code).encode("utf-8", "replace")).hexdigest()[:16]
