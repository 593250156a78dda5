"""Suspended runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._engine import OpenCall, Outcome, Record

if TYPE_CHECKING:
    from .engine import Engine


class Suspended:
    """A run that waits for replies or approvals from outside. `Engine.start` and `Engine.resume` return it.

    It holds no thread, process or time: only its `record`. Answer one of its `calls` with `reply`, `fail`, `approve` or
    `reject`; each continues the run, and returns the outcome or the run suspended again. To continue elsewhere or later,
    store `bytes(suspended.record)` and pass it to `Engine.resume`. Each continuation has the whole timeout.
    """

    def __init__(self, engine: Engine, record: Record, given: dict[str, Any]) -> None:
        """Not called by hosts: `Engine.start` and `Engine.resume` create suspended runs."""
        self._engine = engine
        self._given = given
        self.record = record
        """What is known of the run, for `Engine.resume`."""

    @property
    def calls(self) -> list[OpenCall]:
        """The calls that have not ended. One with a `question` needs an approval. One that `is_unknown` had started when
        its process ended: find out what happened to it."""
        return self.record.calls

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.record.run_id

    def reply(self, call: OpenCall | str, result: Any) -> Suspended | Outcome:
        """Replies to a call with a result, and continues the run. Raises `ValueError` if the call is not open."""
        self.record.reply(_name(call), result)
        return self._resume()

    def fail(self, call: OpenCall | str, message: str, *, code: str | None = None) -> Suspended | Outcome:
        """Replies to a call with an error, which the program can catch, and continues the run."""
        self.record.fail(_name(call), message, code)
        return self._resume()

    def approve(self, call: OpenCall | str, arguments: dict[str, Any] | None = None) -> Suspended | Outcome:
        """Approves a call that has a question, with other arguments if they are given, and continues the run."""
        self.record.approve(_name(call), arguments)
        return self._resume()

    def reject(self, call: OpenCall | str, reason: str) -> Suspended | Outcome:
        """Rejects a call that has a question, and continues the run, which ends with `tool_denied` and the reason."""
        self.record.reject(_name(call), reason)
        return self._resume()

    def _resume(self) -> Suspended | Outcome:
        return self._engine.resume(self.record, **self._given)

    def __repr__(self) -> str:
        return f"<Suspended run {self.run_id}: {', '.join(repr(call) for call in self.calls)}>"


def _name(call: OpenCall | str) -> str:
    return call if isinstance(call, str) else call.name
