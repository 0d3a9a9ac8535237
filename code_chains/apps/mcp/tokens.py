"""Bearer tokens of a Model Context Protocol server: which client holds a token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any

from pydantic import AnyHttpUrl

from code_chains.errors import ConfigurationError, needs

with needs("mcp", "command", "mcp"):
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


class TokenVerifier:
    """Tells which client holds a token. It compares digests in constant time, and keeps no token.

    Args:
        tokens: The tokens, one for each client.

    Raises:
        ConfigurationError: A token is too short, or has other characters than such headers may have.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        for token in tokens:
            if not _TOKEN.fullmatch(token):
                remedy = "at least 16 letters, digits and -._~+/, e.g. the output of `openssl rand -hex 24`"
                raise ConfigurationError("token", f"({len(token)} characters)", remedy)
        self._digests = [_digest(token) for token in dict.fromkeys(tokens)]

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token grants, which does not contain the token; None if it is unknown."""
        digest = _digest(token)
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return AccessToken(token="", client_id=str(matches.index(True)), scopes=[]) if any(matches) else None


def token_options(tokens: Sequence[str]) -> dict[str, Any]:
    """Return the options of a server that requires one of these tokens over HTTP; none without tokens.

    Raises:
        ConfigurationError: A token is too short, or has other characters than such headers may have.
    """
    if not tokens:
        return {}
    # Nobody issues tokens: the address is required, and never sent.
    auth = AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None)
    return {"auth": auth, "token_verifier": TokenVerifier(tokens)}


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
