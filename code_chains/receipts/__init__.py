"""Receipts: what an answer was computed from, so that anybody can compute it again without a model."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
