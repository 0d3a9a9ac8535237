"""Tools of the application that programs may call: their signatures, and the host's side of their calls."""

from code_chains.toolbox.approval import ApproveTools, ToolRequest
from code_chains.toolbox.calls import PendingCall, ToolCallError, ToolCalls
from code_chains.toolbox.signatures import Parameter, Signature
from code_chains.toolbox.toolbox import Toolbox, check_tool_name

__all__ = [
    "ApproveTools",
    "Parameter",
    "PendingCall",
    "Signature",
    "ToolCallError",
    "ToolCalls",
    "ToolRequest",
    "Toolbox",
    "check_tool_name",
]
