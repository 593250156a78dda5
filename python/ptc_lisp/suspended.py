"""Suspended runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._engine import OpenCall, Outcome, Record

if TYPE_CHECKING:
    from .engine import Engine


class Suspended:
    """A run that waits for replies or approvals from outside. `Engine.start` and `Engine.resume` return it.

    It holds no thread, process or time: only its `record`. Answer one of its `calls` with `reply`, `fail`, `approve` or
    `reject`; each continues the run, and returns the outcome or the run suspended again. Go on with what it returns: an
    object continues its run once. The recorder of the run stores the answer first; if it raises, nothing is answered. To
    continue elsewhere or later, store `bytes(suspended.record)` and pass it to `Engine.resume`. Each continuation has the
    whole timeout.

    In async code use `reply_async`, `fail_async`, `approve_async` and `reject_async`.
    """

    def __init__(self, engine: Engine, record: Record, given: dict[str, Any]) -> None:
        """Not called by hosts: `Engine.start` and `Engine.resume` create suspended runs."""
        self._engine = engine
        self._given = given
        self._is_continued = False
        # Whether a recorder failed, which may have stored an answer.
        self._is_in_doubt = False
        self._lock = threading.Lock()
        self._recorded = len(bytes(record))
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
        """Replies to a call with a result, and continues the run. Raises `ValueError` if the call is not open, or is one of
        another run."""
        return self._continue(lambda: self.record.reply(_known(call), result))

    def fail(self, call: OpenCall | str, message: str, *, code: str | None = None) -> Suspended | Outcome:
        """Replies to a call with an error, which the program can catch, and continues the run."""
        return self._continue(lambda: self.record.fail(_known(call), message, code))

    def approve(self, call: OpenCall | str, arguments: dict[str, Any] | None = None) -> Suspended | Outcome:
        """Approves a call that has a question, with other arguments if they are given, and continues the run."""
        return self._continue(lambda: self.record.approve(_known(call), arguments))

    def reject(self, call: OpenCall | str, reason: str) -> Suspended | Outcome:
        """Rejects a call that has a question, and continues the run, which ends with `tool_denied` and the reason."""
        return self._continue(lambda: self.record.reject(_known(call), reason))

    async def reply_async(self, call: OpenCall | str, result: Any) -> Suspended | Outcome:
        """`reply`, as `Engine.resume_async` is `Engine.resume`."""
        return await self._continue_async(lambda: self.record.reply(_known(call), result))

    async def fail_async(self, call: OpenCall | str, message: str, *, code: str | None = None) -> Suspended | Outcome:
        """`fail`, as `Engine.resume_async` is `Engine.resume`."""
        return await self._continue_async(lambda: self.record.fail(_known(call), message, code))

    async def approve_async(self, call: OpenCall | str, arguments: dict[str, Any] | None = None) -> Suspended | Outcome:
        """`approve`, as `Engine.resume_async` is `Engine.resume`."""
        return await self._continue_async(lambda: self.record.approve(_known(call), arguments))

    async def reject_async(self, call: OpenCall | str, reason: str) -> Suspended | Outcome:
        """`reject`, as `Engine.resume_async` is `Engine.resume`."""
        return await self._continue_async(lambda: self.record.reject(_known(call), reason))

    def _continue(self, answer: Callable[[], None]) -> Suspended | Outcome:
        self._engine._must_not_block("continuing the run", "run.approve_async(...), or the like")
        self._answer(answer)
        return self._engine.resume(self.record, **self._given)

    async def _continue_async(self, answer: Callable[[], None]) -> Suspended | Outcome:
        self._answer(answer)
        return await self._engine.resume_async(self.record, **self._given)

    def _answer(self, answer: Callable[[], None]) -> None:
        with self._lock:
            self._answer_once(answer)

    def _answer_once(self, answer: Callable[[], None]) -> None:
        # The record does not have the results of calls made since: they would be made again.
        if self._is_continued:
            raise ValueError(
                "this object has continued its run already; answer further calls with the object that it returned"
            )
        if self._is_in_doubt:
            raise ValueError(
                "the recorder failed, and may have stored the answer: go on with what is stored, by"
                " engine.resume(Record(stored))"
            )
        before = bytes(self.record)
        answer()
        recorder = self._given.get("recorder")
        if recorder is not None:
            # With what the host decided in the record itself. Only line feeds end lines.
            added = bytes(self.record)[self._recorded :].decode()
            try:
                for line in added.split("\n")[:-1]:
                    recorder(line + "\n")
            except BaseException:
                self.record = Record(before)
                self._is_in_doubt = True
                raise
        self._is_continued = True

    def __reduce__(self) -> str:
        raise TypeError(
            "a suspended run cannot be pickled, because it holds its engine; store bytes(suspended.record) and pass it to"
            " engine.resume(...)"
        )

    def __repr__(self) -> str:
        return f"<Suspended run {self.run_id}: {', '.join(repr(call) for call in self.calls)}>"


def _known(call: OpenCall | str) -> OpenCall | str:
    if isinstance(call, (str, OpenCall)):
        return call
    raise TypeError(f"a call is one of the run's `calls`, or its name, not {type(call).__name__}")
