"""What the service returns. Outcomes have the attributes of `ptc_lisp.Outcome`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from .._engine import reworded
from .._errors import RunError

_T = TypeVar("_T")
Json = Mapping[str, Any]
_KINDS: dict[type, str] = {str: "a string", int: "a whole number", dict: "an object", list: "a list"}

Status = Literal["queued", "running", "waiting", "stuck", "done"]
"""The status of a durable run."""
Verdict = Literal["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"]
"""How a run ended, in one word."""


@dataclass(frozen=True)
class Position:
    """A range of the source in lines and columns, from 1."""

    line: int
    column: int
    end_line: int
    end_column: int


# What is read of an answer is of the types that the attributes name, or reading it fails.


def _fit(name: str, value: Any, kind: type[_T]) -> _T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{name} must be {_KINDS[kind]}, not {json.dumps(value):.60}")
    return value


def _get(of: Json, name: str, kind: type[_T]) -> _T:
    """Returns a field that an object must have."""
    return _fit(name, of[name], kind)


def _maybe(of: Json, name: str, kind: type[_T]) -> _T | None:
    """Returns a field that an object may have."""
    value = of.get(name)
    return None if value is None else _fit(name, value, kind)


def _list(of: Json, name: str, kind: type[_T]) -> list[_T]:
    """Returns a list that an object may have, of values of one type."""
    return [_fit(name, one, kind) for one in _maybe(of, name, list) or ()]


def _id(of: Json, name: str) -> str:
    """Returns a name that can be a part of a path."""
    found = _get(of, name, str)
    if found in ("", ".", "..") or not _is_unicode(found):
        raise ValueError(f"{name} must be a name, not {found!r:.60}")
    return found


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _said(text: str) -> str:
    """Returns a text of the service as users of the client read it."""
    of_routes = "run the program as a durable run (POST /v1/runs), or in the host with Engine::start"
    return reworded(text.replace(of_routes, "run the program with client.start(...)"))


def _position(at: Json) -> Position | None:
    if "line" not in at:
        return None
    line, column = _get(at, "line", int), _maybe(at, "column", int)
    column = 1 if column is None else column
    end_line, end_column = _maybe(at, "end_line", int), _maybe(at, "end_column", int)
    return Position(line, column, line if end_line is None else end_line, column if end_column is None else end_column)


@dataclass(frozen=True)
class Error:
    """What was wrong with a run."""

    reason: str
    """The stable name of the error, such as `type_error`, or `fail` for a program that ended with `(fail v)`."""
    message: str
    """What happened, with the expected and the actual value."""
    hint: str | None
    """One next step."""
    phase: str | None
    """When it happened: `compile`, `setup`, `eval` or `result`."""
    position: Position | None
    """The position in the program."""
    details: Mapping[str, Any]
    """Figures and names, such as `limit_bytes`."""
    locals: Mapping[str, str] = field(default_factory=dict)
    """The values of local names where it happened, as text."""
    program: str | None = field(default=None, repr=False)
    """The source of the program, if the client sent it."""

    @classmethod
    def _of(cls, error: Json, program: str | None) -> Error:
        details = dict(_maybe(error, "details", dict) or {})
        phase, names = _maybe(details, "phase", str), _maybe(details, "locals", dict) or {}
        for name, value in names.items():
            _fit(name, value, str)
        details = {name: value for name, value in details.items() if name not in ("phase", "locals")}
        message, hint = _said(_get(error, "message", str)), _maybe(error, "hint", str)
        hint = None if hint is None else _said(hint)
        return cls(_get(error, "reason", str), message, hint, phase, _position(error), details, names, program)

    @classmethod
    def _of_failure(cls, text: str | None) -> Error:
        return cls("fail", f"the program ended with (fail {text or ''})", None, None, None, {})

    def report(self) -> str:
        """Returns the error as text for a model that repairs the program: message, source line with a mark, hint, local
        names."""
        at = self.position
        where = f" (line {at.line}, column {at.column})" if at is not None else ""
        lines = [f"{self.reason}: {self.message}{where}"]
        source = (self.program or "").splitlines()
        if at is not None and 1 <= at.line <= len(source):
            text, number = source[at.line - 1].replace("\t", " "), str(at.line)
            # The service may say anything: no mark is longer than its line.
            column = min(max(at.column, 1), len(text) + 1)
            end = min(at.end_column, len(text) + 1) if at.end_line == at.line else len(text) + 1
            mark = " " * (column - 1) + "^" * max(end - column, 1)
            lines += [f"{number} | {text}", f"{' ' * len(number)} | {mark}"]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        lines += [f"{name} = {value}" for name, value in self.locals.items()]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Warning:
    """A probable mistake in a program."""

    kind: str
    """The stable name of the kind, such as `unknown_key`."""
    message: str
    """What happened."""
    repair: str | None
    """One next step."""
    position: Position | None
    """The position in the program."""

    @classmethod
    def _of(cls, warning: Json) -> Warning:
        message, repair = _said(_get(warning, "message", str)), _maybe(warning, "repair", str)
        return cls(_get(warning, "kind", str), message, repair, _position(warning))

    def __repr__(self) -> str:
        return f"<Warning {self.kind}: {self.message}{'; ' + self.repair if self.repair else ''}>"


@dataclass(frozen=True)
class LedgerEntry:
    """A tool call of a run."""

    tool: str
    """The name of the tool."""
    arguments: Any
    """The arguments; the beginning of their JSON text if they are long."""
    result: Any
    """The result; the beginning of its JSON text if it is long."""
    status: Literal["ok", "error", "cached", "unknown"]
    """How the call ended."""
    error: str | None
    """The error message, if the call failed."""
    duration_us: int
    """The duration of the call in the service, in microseconds. Of a tool of a client it is not the time that the tool took:
    the run does not wait for it, and is continued with the reply."""
    worker: tuple[int, ...]
    """The path of worker indexes to the caller; empty for the main program."""

    @classmethod
    def _of(cls, line: Json) -> LedgerEntry:
        return cls(
            tool=_get(line, "name", str),
            arguments=line["arguments"],
            result=line.get("result"),
            status=cast(Any, _get(line, "status", str)),
            error=_maybe(line, "error", str),
            duration_us=_get(line, "duration_us", int),
            worker=tuple(_list(line, "worker", int)),
        )


@dataclass(frozen=True)
class Usage:
    """The figures of a run. `None` is a figure that was not measured."""

    fuel: int
    """Units of work, counted the same on every machine."""
    compute_us: int
    """Wall time without the time in tools, in microseconds."""
    duration_us: int
    """Wall time, in microseconds."""
    heap_peak_bytes: int
    """Peak bytes that the program held besides its data."""
    allocated_bytes: int
    """Bytes that the program allocated in total."""
    compactions: int
    """Number of heap compactions."""
    tool_calls: int
    """Number of tool calls, without cached ones."""
    workers_peak: int
    """Peak number of parallel workers."""
    output_bytes: int
    """Bytes of the prints and of the result as JSON."""
    baseline_bytes: int | None = None
    """Bytes of the data, the memory and the programs."""
    heap_live_bytes: int | None = None
    """Bytes that the program held at its end, if they were measured."""
    cpu_us: int | None = None
    """Processor time of the run's process, in microseconds."""
    rss_peak_bytes: int | None = None
    """Peak memory of the run's process, in bytes."""

    @classmethod
    def _of(cls, usage: Json) -> Usage:
        return cls(**{name: _maybe(usage, name, int) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, int | None]:
        """Returns all figures."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of a run, with the attributes of `ptc_lisp.Outcome` as far as JSON gives them."""

    ok: bool
    """Whether the program ended with a value."""
    value: Any
    """The result; `None` if the run failed. Dates are strings."""
    failure: Any
    """The value of a program that ended with `(fail value)`."""
    error: Error | None
    """What was wrong, unless the run is `ok`."""
    verdict: Verdict
    """How the run ended, in one word."""
    text: str | None
    """The result in Clojure syntax."""
    prints: list[str]
    """The lines that the program printed."""
    ledger: list[LedgerEntry]
    """Every tool call in program order."""
    usage: Usage
    """The figures of the run."""
    warnings: list[Warning]
    """Probable mistakes in the program."""
    run_id: str
    """The id of the run."""
    memory: str | None
    """The definitions after the run as JSON text, if `memory` was given, or after a turn of a session."""
    limits: Mapping[str, int]
    """The limits that applied, by the names of the service. Those above the ceiling were lowered to it."""
    truncated: Mapping[str, Any]
    """The sections that were cut, and how much of each is there."""
    answer: Json = field(repr=False)
    """The whole answer of the service."""

    @classmethod
    def _of(cls, answer: Json, program: str | None = None) -> Outcome:
        error, text = _maybe(_fit("the answer", answer, dict), "error", dict), _maybe(answer, "text", str)
        verdict, failed = cast(Verdict, _get(answer, "verdict", str)), answer.get("outcome") == "fail"
        memory, truncated = _maybe(answer, "memory", dict), _get(answer, "truncated", dict)
        for name in ("lines_total", "lines_shown"):
            _maybe(_maybe(truncated, "prints", dict) or {}, name, int)
        limits = _maybe(answer, "limits", dict) or {}
        for name, limit in limits.items():
            _fit(name, limit, int)
        return cls(
            ok=error is None and not failed and verdict == "ok",
            value=None if failed else answer.get("value"),
            failure=answer.get("value") if failed else None,
            error=Error._of(error, program) if error is not None else Error._of_failure(text) if failed else None,
            verdict=verdict,
            text=text,
            prints=[_fit("prints", line, str) for line in _get(answer, "prints", list)],
            ledger=[LedgerEntry._of(line) for line in _list(answer, "ledger", dict)],
            usage=Usage._of(_get(answer, "usage", dict)),
            warnings=[Warning._of(warning) for warning in _list(answer, "warnings", dict)],
            run_id=_id(answer, "run_id"),
            memory=None if memory is None else json.dumps(memory, ensure_ascii=False),
            limits=limits,
            truncated=truncated,
            answer=answer,
        )

    @property
    def json(self) -> str | None:
        """The result as JSON text."""
        return json.dumps(self.answer["value"], ensure_ascii=False) if "value" in self.answer else None

    @property
    def prints_dropped(self) -> int:
        """Number of printed lines that were not kept."""
        cut = self.truncated.get("prints") or {}
        return (cut.get("lines_total") or 0) - (cut.get("lines_shown") or 0)

    def report(self) -> str:
        """Returns what happened as text for the model that wrote the program: the printed lines, the value or the error, and
        the warnings with their repairs."""
        lines = list(self.prints)
        if self.prints_dropped:
            lines.append(f"[{self.prints_dropped} more lines were printed and not kept]")
        lines.append(self.error.report() if self.error is not None else self.text or "nil")
        if self.error is None and "text" in self.truncated:
            lines.append("[cut: return a part of the value]")
        for warning in self.warnings:
            at = f"line {warning.position.line}, column {warning.position.column}: " if warning.position else ""
            lines.append(f"warning: {at}{warning.message}{': ' + warning.repair if warning.repair else ''}")
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """Returns the answer of the service as JSON text."""
        return json.dumps(self.answer, ensure_ascii=False)

    def raise_for_error(self) -> Outcome:
        """Returns this outcome if it is `ok`. Otherwise raises `ptc_lisp.RunError` with the report."""
        if self.ok:
            return self
        raise RunError(self)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Outcome {self.error.reason}: {self.error.message[:120]}>"
        return f"<Outcome ok: {(self.text or '')[:120]}>"


@dataclass(frozen=True)
class OpenCall:
    """A call of a durable run that waits for an answer from outside."""

    run_id: str
    """The run."""
    name: str
    """The name of the call in its run."""
    tool: str
    """The name of the tool."""
    arguments: dict[str, Any]
    """The arguments."""
    question: str | None
    """What an approver decides, or finds out; `None` for a call that waits for its result."""
    phase: str
    """What it waits for: `gate` is an approval, `result` the result of a client's tool. `unknown1`, `unknown2` and so on
    ask how a call ended that had started when the service stopped."""

    @property
    def is_unknown(self) -> bool:
        """Whether it had started when the service stopped, so that it may or may not have been made."""
        return self.phase.startswith("unknown")

    @classmethod
    def _of(cls, run_id: str, call: Json) -> OpenCall:
        arguments = dict(_get(call, "arguments", dict))
        question = _maybe(call, "question", str)
        return cls(run_id, _id(call, "call"), _get(call, "name", str), arguments, question, _get(call, "phase", str))


@dataclass(frozen=True)
class Run:
    """The state of a durable run when the service was asked."""

    run_id: str
    """The id of the run."""
    status: Status
    """`queued`, `running`, `waiting` for its `calls`, `stuck` or `done`."""
    calls: list[OpenCall]
    """The calls that wait for answers from outside."""
    outcome: Outcome | None
    """The outcome, once the run is done."""
    error: str | None
    """Why the run is stuck, and what to do."""
    created_ms: int
    """When the run was submitted, in milliseconds since 1970."""
    updated_ms: int
    """When the run last changed, in milliseconds since 1970."""

    @classmethod
    def _of(cls, state: Json, program: str | None = None) -> Run:
        run_id, answer = _id(_fit("the state", state, dict), "run_id"), _maybe(state, "answer", dict)
        return cls(
            run_id=run_id,
            status=cast(Status, _get(state, "status", str)),
            calls=[OpenCall._of(run_id, _fit("calls", call, dict)) for call in _get(state, "calls", list)],
            outcome=None if answer is None else Outcome._of(answer, program),
            error=_maybe(state, "error", str),
            created_ms=_get(state, "created_ms", int),
            updated_ms=_get(state, "updated_ms", int),
        )

    @property
    def done(self) -> bool:
        """Whether the run has its outcome."""
        return self.outcome is not None


@dataclass(frozen=True)
class RunPage:
    """A page of a list of runs, newest first, without their outcomes."""

    runs: list[Run]
    """The runs."""
    next: str | None
    """The `cursor` of the next page; `None` on the last one."""

    @classmethod
    def _of(cls, page: Json) -> RunPage:
        runs, cursor = _get(_fit("the page", page, dict), "runs", list), _maybe(page, "next", str)
        if cursor is not None and not _is_unicode(cursor):
            raise ValueError("next must be a cursor")
        return cls([Run._of(run) for run in runs], cursor)


@dataclass(frozen=True)
class SessionState:
    """The state of a session."""

    session_id: str
    """The id of the session."""
    turns: int
    """The number of successful turns."""
    undos: int
    """The number of turns that can be undone."""
    bytes: int
    """The size of the session in the store."""
    created_ms: int
    """When the session was opened, in milliseconds since 1970."""
    updated_ms: int
    """When the session last changed, in milliseconds since 1970."""

    @classmethod
    def _of(cls, state: Json) -> SessionState:
        session_id = _id(_fit("the state", state, dict), "session_id")
        counts = {name: _get(state, name, int) for name in cls.__dataclass_fields__ if name != "session_id"}
        return cls(session_id, **counts)


@dataclass(frozen=True)
class Event:
    """An event of a run."""

    id: str
    """The id of the event, from which a stream continues."""
    kind: str
    """`started`, `print`, `call`, `waiting`, `cut`, `answer` or `problem`."""
    data: dict[str, Any]
    """What happened, as the service describes it."""

    @classmethod
    def _of(cls, event_id: str, kind: str, data: Any) -> Event:
        event = cls(event_id, kind, _fit("data", data, dict))
        if kind == "answer":
            # What cannot be read is not for those who ask for the outcome.
            Outcome._of(event.data)
        return event

    @property
    def is_last(self) -> bool:
        """Whether no event follows."""
        return self.kind in ("answer", "problem")

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, of an event `answer`."""
        return Outcome._of(self.data) if self.kind == "answer" else None
