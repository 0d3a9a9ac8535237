"""The records: frozen dataclasses that survive JSON both ways."""

from dataclasses import fields
from typing import Any, cast, get_type_hints

from code_chains.records.answers import (
    BUDGET_STOPS,
    FINAL_STOPS,
    Attempt,
    PastedData,
    Problem,
    Source,
    StopReason,
    Strategy,
    TestResult,
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
    "FINAL_STOPS",
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
    "TestResult",
    "ToolCall",
    "ToolEffect",
    "Turn",
    "Usage",
    "Verdict",
    "signal_name",
]

for (
    _record
) in Record.__subclasses__():  # Serializers, as LangGraph's, read the types of fields from the class.
    _hints = get_type_hints(_record)
    for _field in fields(cast("Any", _record)):
        _field.type = _hints[_field.name]
