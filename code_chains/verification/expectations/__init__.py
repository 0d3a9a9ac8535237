"""What a program is expected to do: tests and examples, and the harness that runs them."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
