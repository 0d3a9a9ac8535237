"""A local page to learn with: ask, watch, change the program and run it again. `code-chains serve` opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from code_chains.page.approval import approve

if TYPE_CHECKING:
    from code_chains.page.server import serve

__all__ = ["approve", "serve"]


def __getattr__(name: str) -> Any:
    """Import the server, and NiceGUI with it, when it is first asked for."""
    if name == "serve":
        from code_chains.page.server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
