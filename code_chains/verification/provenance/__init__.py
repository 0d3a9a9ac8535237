"""Provenance: whether what a program shows was given, computed from it, or made up."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
