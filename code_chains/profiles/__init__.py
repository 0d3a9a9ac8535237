"""Profiles of files for prompts: computed by a program in the executor that will run the answer, validated, rendered."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
