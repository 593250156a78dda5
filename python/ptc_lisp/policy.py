"""What a policy decides on a tool call."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ._engine import AskedCall

_log = logging.getLogger("ptc_lisp")


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


def checked(policy: Callable[[AskedCall], Decision]) -> Callable[[AskedCall], Decision]:
    """Returns a policy whose mistakes are logged: the program only learns that its call is denied."""

    def decide(call: AskedCall) -> Decision:
        try:
            decision: Any = policy(call)
        except Exception:
            _log.exception("the policy raised for a call of tool/%s", call.tool)
            raise
        if isinstance(decision, Decision):
            return decision
        if inspect.iscoroutine(decision):
            decision.close()
        why = f"a policy returns allow(), deny(reason) or ask(question), not {type(decision).__name__}"
        _log.error("%s; tool/%s was denied", why, call.tool)
        return deny(f"the host's policy returned {type(decision).__name__}")

    return decide
