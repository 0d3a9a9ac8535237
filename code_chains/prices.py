"""What tokens cost."""

from __future__ import annotations

from collections.abc import Mapping

from code_chains.errors import ConfigurationError

__all__ = ["EMBEDDED", "Prices"]

EMBEDDED = "code_chains"
"""Provider of the embedded models, which cost nothing."""


class Prices:
    """Costs of tokens: those that are given, then the public list of `genai-prices` where it is installed.

    Args:
        given: `{model name: (dollars for a million tokens read, dollars for a million written)}`.

    Raises:
        ConfigurationError: A price is none.
    """

    def __init__(self, given: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.given = dict(given or {})
        for name, pair in self.given.items():
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(_is_price(price) for price in pair):
                raise ConfigurationError(
                    "prices", {name: pair}, '{"model": (dollars per million read, per million written)}'
                )

    def cost(self, model: str, provider: str, read: int, written: int) -> float | None:
        """Dollars for so many tokens; None where the price of a model is not known."""
        if model in self.given:
            pair = self.given[model]
            return (read * pair[0] + written * pair[1]) / 1e6
        return 0.0 if provider == EMBEDDED else _public(model, provider, read, written)

    def free(self, model: str, provider: str) -> bool:
        """Whether a model is known to cost nothing."""
        return self.cost(model, provider, 1_000_000, 1_000_000) == 0

    def demand(self, model: str, provider: str) -> None:
        """Insist on a known price.

        Raises:
            ConfigurationError: There is none.
        """
        if self.cost(model, provider, 1, 1) is None:
            raise ConfigurationError(
                "usd", model or "a model without a name", _ADVICE if _installed() else f"{_ADVICE}, or {_INSTALL}"
            )


_ADVICE = 'its price: Budget(usd=…, prices={"model": (dollars per million tokens read, per million written)})'
_INSTALL = "install the public list: pip install 'code-chains[prices]'"


def _is_price(price: object) -> bool:
    return isinstance(price, int | float) and not isinstance(price, bool) and price >= 0


def _installed() -> bool:
    try:
        import genai_prices  # noqa: F401
    except ImportError:
        return False
    return True


def _public(model: str, provider: str, read: int, written: int) -> float | None:
    try:
        import genai_prices
    except ImportError:
        return None
    usage = genai_prices.Usage(input_tokens=read, output_tokens=written)
    for owner in dict.fromkeys([provider or None, None]):
        try:
            return float(genai_prices.calc_price(usage, model, provider_id=owner).total_price)
        except LookupError:
            continue
    return None
