"""SQL over databases of the application: an executor, and a tool for programs and agents."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
