"""Prices of tokens."""

from __future__ import annotations

from collections.abc import Mapping

from code_chains.errors import ConfigurationError

EMBEDDED = "code_chains"
"""Provider of the embedded models, which cost nothing."""


class Prices:
    """Prices of tokens: your own, then the public list of `genai-prices` if it is installed.

    Args:
        prices: `{model name: (dollars per million input tokens, dollars per million output tokens)}`.

    Raises:
        ConfigurationError: A price is invalid.
    """

    def __init__(self, prices: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.own: dict[str, tuple[float, float]] = dict(prices or {})
        for name, pair in self.own.items():
            if (
                not isinstance(pair, tuple | list)
                or len(pair) != 2
                or not all(_is_price(price) for price in pair)
            ):
                raise ConfigurationError(
                    "prices",
                    {name: pair},
                    '{"model": (dollars per million input tokens, per million output tokens)}',
                )

    def cost(self, model: str, provider: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price in dollars; None if the price of a model is unknown."""
        if model in self.own:
            pair = self.own[model]
            return (input_tokens * pair[0] + output_tokens * pair[1]) / 1e6
        return 0.0 if provider == EMBEDDED else _public(model, provider, input_tokens, output_tokens)

    def is_free(self, model: str, provider: str) -> bool:
        """Return whether a model is known to be free."""
        return self.cost(model, provider, 1_000_000, 1_000_000) == 0

    def require_price(self, model: str, provider: str) -> None:
        """Require a known price.

        Raises:
            ConfigurationError: There is none.
        """
        if self.cost(model, provider, 1, 1) is None:
            remedy = _ADVICE if _installed() else f"{_ADVICE}, or {_INSTALL}"
            raise ConfigurationError("model", model or "a model without a name", remedy, because=_NO_PRICE)


_NO_PRICE = "its price is unknown, and the budget limits dollars"
_ADVICE = 'its price: Budget(usd=…, prices={"model": (dollars per million tokens read, per million written)})'
_INSTALL = "install the public list, the extra prices"


def _is_price(price: object) -> bool:
    return isinstance(price, int | float) and not isinstance(price, bool) and price >= 0


def _installed() -> bool:
    try:
        import genai_prices  # noqa: F401
    except ImportError:
        return False
    return True


def _public(model: str, provider: str, input_tokens: int, output_tokens: int) -> float | None:
    try:
        import genai_prices
    except ImportError:
        return None
    usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    for owner in dict.fromkeys([provider or None, None]):
        try:
            return float(genai_prices.calc_price(usage, model, provider_id=owner).total_price)
        except LookupError:
            continue
    return None
