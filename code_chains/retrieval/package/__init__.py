"""References of installed packages, whose modules are parsed and never imported."""

from code_chains.retrieval.package.reading import read_package

__all__ = ["read_package"]
