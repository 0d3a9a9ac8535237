"""The records: frozen dataclasses that survive JSON both ways."""

from code_chains.records.answers import (
    BUDGET_STOPS,
    Attempt,
    PastedData,
    Problem,
    Source,
    StopReason,
    Strategy,
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
    CallStatus,
    CodeFailedError,
    DisplayData,
    ErrorReport,
    Execution,
    Isolation,
    Level,
    Status,
    ToolCall,
    ToolEffect,
    signal_name,
)

__all__ = [
    "BUDGET_STOPS",
    "PROBED",
    "Artifact",
    "Attempt",
    "CallStatus",
    "CodeFailedError",
    "DisplayData",
    "ErrorReport",
    "Execution",
    "Isolation",
    "Level",
    "PastedData",
    "Problem",
    "Record",
    "Source",
    "Status",
    "StopReason",
    "Strategy",
    "ToolCall",
    "ToolEffect",
    "Turn",
    "Usage",
    "Verdict",
    "signal_name",
]
