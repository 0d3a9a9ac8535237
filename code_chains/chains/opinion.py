"""query, … -> verdict: what the chains have in common that ask a model for its opinion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage

from code_chains.analysis.replies.extraction import reply_text
from code_chains.chains.asking import AskingChain
from code_chains.chains.base import Config, Flow, State
from code_chains.chains.generate import finish_reason
from code_chains.chains.ranks import Rank
from code_chains.errors import BudgetError
from code_chains.state import Verdict

_MAX_REASON_CHARS = 300


class OpinionChain(AskingChain):
    """Ask a model for its opinion on an outcome. Adds `verdict`; a failure is none, as the outcome exists without it."""

    rank: ClassVar[Rank] = Rank.OPINION
    output_keys: ClassVar[list[str]] = ["verdict"]

    def _flow(self, values: State, config: Config) -> Flow:
        if verdict := self.unasked(values):
            yield {"verdict": verdict}
            return
        try:
            reply = yield self.ask(self.model, self.messages(values), config)
        except BudgetError:  # Whoever asks tells it from other errors.
            raise
        except Exception as error:  # Any error of a provider's library.
            message = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_REASON_CHARS]
            yield {"verdict": self.unreached(message)}
            return
        yield {"verdict": self.read(reply_text(reply) if finish_reason(reply, self.model) == "stop" else "")}

    def unasked(self, values: Mapping[str, Any]) -> Verdict | None:
        """Return the verdict where the model is not asked; None if it is."""
        return None

    def unreached(self, error: str) -> Verdict:
        """Return the verdict where the model could not be asked."""
        raise NotImplementedError

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """Return the messages to send."""
        raise NotImplementedError

    def read(self, reply: str) -> Verdict:
        """Return the verdict in a reply; `unverified` if that is truncated or unclear."""
        raise NotImplementedError
