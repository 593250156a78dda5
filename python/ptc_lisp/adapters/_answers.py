"""What a framework returns to its model."""

from __future__ import annotations

import json
from typing import Any

from .._engine import Outcome, to_json

CODE = "A program in PTC-Lisp, a small Clojure-like language. The value of its last expression is the result."
"""The description of the parameter that takes a program."""


def plain(outcome: Outcome) -> Any:
    """Returns the result as JSON has it: sets are lists, dates are strings."""
    return json.loads(to_json(outcome.value, "the result"))


def answer(outcome: Outcome) -> str:
    """Returns the text for a model: the result as JSON with what was printed, or the report of the error."""
    lines = list(outcome.prints)
    if outcome.error is not None:
        lines.append(outcome.error.report())
    else:
        lines.append(to_json(outcome.value, "the result"))
    lines += [f"warning: {warning.message}; {warning.repair}" for warning in outcome.warnings if warning.repair]
    return "\n".join(lines)
