"""What a program is expected to do: tests and examples, and the harness that runs them."""

from code_chains.verification.expectations.given import Expectations, expect, expectations_of

__all__ = [
    "Expectations",
    "expect",
    "expectations_of",
]
