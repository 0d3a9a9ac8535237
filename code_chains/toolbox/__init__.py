"""Tools of the application that programs may call: their signatures, and the host's side of their calls."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
