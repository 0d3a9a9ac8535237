"""Static checks, before a program runs. They advise the model; only the sandbox protects."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
