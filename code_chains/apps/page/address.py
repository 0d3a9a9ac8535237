"""Where a page is served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Address:
    """Where a page is served.

    Attributes:
        host: The address to listen on.
        port: The port; 0 selects a free one.
        token: Whether to require a token, which is part of the printed address. It locks out other users of this machine;
            beyond loopback addresses, and with `allowed_hosts`, it is always required.
        allowed_hosts: Names in addresses of proxies that stand in front of the page.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: bool = False
    allowed_hosts: Sequence[str] = ()

    @property
    def is_local(self) -> bool:
        """Whether nobody but users of this machine can reach it."""
        from code_chains.apps.http_server import is_loopback

        return is_loopback(self.host)
