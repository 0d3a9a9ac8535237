"""A local page to learn with: ask, watch, change the program and run it again. `code-chains serve` opens it."""

from __future__ import annotations

from code_chains.code_chain import CodeChain
from code_chains.errors import ConfigurationError

__all__ = ["serve"]


def serve(
    chain: CodeChain,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: bool = False,
    concurrency: int = 2,
    open_browser: bool = True,
) -> None:
    """Serve the page until it is interrupted.

    Args:
        chain: What answers.
        host: Where to listen.
        port: The port; 0 for any that is free.
        token: Whether a token is needed, which is a part of the address that is printed. It keeps other users of this
            machine out; elsewhere than on a loopback address it is always needed.
        concurrency: How many questions are worked on at a time.
        open_browser: Whether to show it.

    Raises:
        ConfigurationError: It cannot be served there, or the extra `ui` is not installed.
    """
    try:
        import nicegui  # noqa: F401
    except ImportError as error:
        instead = 'it after installing what it needs: pip install "code-chains[ui]"'
        raise ConfigurationError("extra", "ui", instead) from error
    from code_chains.page import server

    server.serve(chain, host=host, port=port, token=token, concurrency=concurrency, open_browser=open_browser)
