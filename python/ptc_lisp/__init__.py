"""Runs programs that a language model wrote, on your data, with your tools, within limits.

An `Engine` holds the tools and the limits. `Engine.run` and `Engine.run_async` run a program and return an `Outcome`: a
value or an error that a model can repair, what the program printed, its tool calls and its figures.
"""

from ._engine import (
    AskedCall,
    DataSet,
    Error,
    LedgerEntry,
    OpenCall,
    Outcome,
    Position,
    Record,
    ToolCall,
    Usage,
    Warning,
    __version__,
)
from ._errors import RunError, ToolError
from .engine import Engine, Session
from .limits import Limits
from .policy import Decision, allow, ask, deny
from .suspended import Suspended
from .tools import Tool, Tools, tool

__all__ = [
    "AskedCall",
    "DataSet",
    "Decision",
    "Engine",
    "Error",
    "LedgerEntry",
    "Limits",
    "OpenCall",
    "Outcome",
    "Position",
    "Record",
    "RunError",
    "Session",
    "Suspended",
    "Tool",
    "ToolCall",
    "ToolError",
    "Tools",
    "Usage",
    "Warning",
    "__version__",
    "allow",
    "ask",
    "deny",
    "tool",
]
