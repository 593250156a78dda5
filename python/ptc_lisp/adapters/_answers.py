"""What a framework returns to its model."""

from __future__ import annotations

import json
from typing import Any

from .._engine import Error, Outcome, to_json
from .._errors import ToolError

CODE = "A program in PTC-Lisp, a small Clojure-like language. The value of its last expression is the result."
"""The description of the parameter that takes a program."""


def plain(outcome: Outcome) -> Any:
    """Returns the result as JSON has it: sets are lists, dates are strings."""
    return json.loads(to_json(outcome.value, "the result"))


def report(error: Error) -> str:
    """Returns the report of an error for a model. It names nothing that only the host can do."""
    if error.reason != "approval_required":
        return error.report()
    text = error.report().partition("\nhint:")[0]
    return (
        f"{text}\nhint: a program cannot wait for an approval here, and the call was not made; write a program without this"
        " call, and say that it needs an approval"
    )


def cannot_wait(tool: str, framework: str, instead: str) -> ToolError:
    """Returns the error of a tool that asks its framework for an approval, or for input, during a program."""
    return ToolError(
        f"the call was not completed: {tool} waits for an approval or an input of {framework}, and a program cannot wait for"
        f" it; {instead}",
        code="APPROVAL_REQUIRED",
    )


def answer(outcome: Outcome) -> str:
    """Returns the text for a model: the result as JSON with what was printed, or the report of the error."""
    lines = list(outcome.prints)
    if outcome.error is not None:
        lines.append(report(outcome.error))
    else:
        lines.append(to_json(outcome.value, "the result"))
    lines += [f"warning: {warning.message}; {warning.repair}" for warning in outcome.warnings if warning.repair]
    return "\n".join(lines)
