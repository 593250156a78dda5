"""What a policy decides on a tool call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Decision:
    """The decision of a policy on a call: made with `allow`, `deny` or `ask`."""

    kind: Literal["allow", "deny", "ask"]
    text: str = ""
    arguments: Mapping[str, Any] | None = None


def allow(arguments: Mapping[str, Any] | None = None) -> Decision:
    """Allows the call, with other arguments if they are given. They are checked against the tool's parameters."""
    return Decision("allow", arguments=arguments)


def deny(reason: str) -> Decision:
    """Denies the call. The program ends with `tool_denied` and the reason, and cannot catch it."""
    return Decision("deny", reason)


def ask(question: str) -> Decision:
    """Asks an approver. A run of `Engine.start` suspends; other runs end with `approval_required`."""
    return Decision("ask", question)
