"""What speaks against an outcome that no test verifies. No model is asked."""

from code_chains.verification.sanity.verdict import sanity_verdict

__all__ = [
    "sanity_verdict",
]
