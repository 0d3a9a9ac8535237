"""What speaks against an outcome that no test verifies. No model is asked."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
