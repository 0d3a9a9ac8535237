"""Static checks, before a program runs. They advise the model; only the sandbox protects."""

from code_chains.analysis.checks.imports import imports_available, imports_only
from code_chains.analysis.checks.output import prints_something, results_used
from code_chains.analysis.checks.policies import (
    POLICIES,
    STANDARD,
    Check,
    as_advice,
    find_problems,
    names_defined,
    no_calls,
    parses,
    read_result,
    resolve_checks,
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
    "read_result",
    "resolve_checks",
    "results_used",
    "security",
    "shorter_than",
]
