"""Static checks, before a program runs. They advise the model; only the sandbox protects."""

from code_chains.analysis.checks.policies import (
    POLICIES,
    STANDARD,
    Check,
    as_advice,
    find_problems,
    imports_available,
    imports_only,
    names_defined,
    no_calls,
    parses,
    prints_something,
    resolve_checks,
    results_used,
    security,
    shorter_than,
)

__all__ = [
    "POLICIES",
    "STANDARD",
    "Check",
    "as_advice",
    "find_problems",
    "imports_available",
    "imports_only",
    "names_defined",
    "no_calls",
    "parses",
    "prints_something",
    "resolve_checks",
    "results_used",
    "security",
    "shorter_than",
]
