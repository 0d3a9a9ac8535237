"""Provenance: whether what a program shows was given, computed from it, or made up."""

from __future__ import annotations

from code_chains.verification.provenance.columns import (
    columns_read,
    shown_of,
    unanswered_subject,
)
from code_chains.verification.provenance.given import Given
from code_chains.verification.provenance.inventions import (
    Invention,
    find_invention,
    may_reach,
    names_from_elsewhere,
)
from code_chains.verification.provenance.selections import unnamed_selection
from code_chains.verification.provenance.stand_ins import unread_column

__all__ = [
    "Given",
    "Invention",
    "columns_read",
    "find_invention",
    "may_reach",
    "names_from_elsewhere",
    "shown_of",
    "unanswered_subject",
    "unnamed_selection",
    "unread_column",
]
