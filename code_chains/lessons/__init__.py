"""Coding lessons that check themselves: a Markdown file, grades by hidden tests, and hints that give no answer away."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
