"""The records: frozen dataclasses that survive JSON both ways."""

from code_chains.records.answers import (
    BUDGET_STOPS,
    Attempt,
    Problem,
    Source,
    StopReason,
    Turn,
    Usage,
    Verdict,
)
from code_chains.records.record import (
    Record,
)
from code_chains.records.runs import (
    PROBED,
    Artifact,
    CodeFailedError,
    DisplayData,
    ErrorReport,
    Execution,
    Isolation,
    Level,
    Status,
    ToolCall,
    signal_name,
)

__all__ = [
    "BUDGET_STOPS",
    "PROBED",
    "Artifact",
    "Attempt",
    "CodeFailedError",
    "DisplayData",
    "ErrorReport",
    "Execution",
    "Isolation",
    "Level",
    "Problem",
    "Record",
    "Source",
    "Status",
    "StopReason",
    "ToolCall",
    "Turn",
    "Usage",
    "Verdict",
    "signal_name",
]
