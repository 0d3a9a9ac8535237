"""The chains: each reads keys of the state and adds keys to it."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
