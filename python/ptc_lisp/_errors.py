"""The exceptions of the package."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import client
    from ._engine import Outcome


_log = logging.getLogger("ptc_lisp")


class ToolError(Exception):
    """Raise it in a tool to tell the program what went wrong.

    The program can catch it, and reads `code` as `(:code e)`. Any other exception of a tool is an error of the tool too;
    its message then starts with the name of its class. `code` is a str, or an int of 64 bits.
    """

    def __init__(self, message: str, *, code: str | int | None = None) -> None:
        super().__init__(message)
        if code is not None and (isinstance(code, bool) or not isinstance(code, (str, int))):
            raise TypeError(f"the code of a ToolError is a str or an int, not {type(code).__name__}")
        if isinstance(code, int) and not -(2**63) <= code < 2**63:
            raise ValueError("the code of a ToolError is an int of 64 bits; pass a longer one as a str")
        self.code = code


class InvalidArguments(ToolError):
    """The program called a tool with arguments that do not fit its parameters."""


class CallInterrupted(Exception):
    """The wait for a tool ended before the tool: whether the call had its effect is not known."""


class RunError(Exception):
    """The program failed. `Outcome.raise_for_error` raises it, also that of `ptc_lisp.client`; the text is the report for a model."""

    def __init__(self, outcome: Outcome | client.Outcome) -> None:
        error = outcome.error
        super().__init__(error.report() if error is not None else "the run failed")
        self.outcome = outcome
        """The outcome of the run."""

    def __reduce__(self) -> tuple[type[RunError], tuple[Outcome | client.Outcome]]:
        # An outcome that cannot be pickled says what to pass on.
        return type(self), (self.outcome,)


def log_raised(tool: str, error: BaseException) -> None:
    """Logs an exception that the function of a tool raised, with its traceback. The program only learns its text."""
    _log.warning("tool/%s raised", tool, exc_info=error)


def log_raised_in_background(error: BaseException) -> None:
    """Logs an exception of a task that an async tool started and did not wait for."""
    _log.warning("a task that an async tool started raised", exc_info=error)
