"""A local page to learn with: ask, watch the program, edit it and run it again. `code-chains serve` opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from code_chains.apps.page.approval import PageApprover, approve

if TYPE_CHECKING:
    from code_chains.apps.page.server import serve

__all__ = ["PageApprover", "approve", "serve"]


def __getattr__(name: str) -> Any:
    """Import the server, and NiceGUI with it, on first use."""
    if name == "serve":
        from code_chains.apps.page.server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
