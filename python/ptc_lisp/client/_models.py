"""What the service returns. Outcomes have the attributes of `ptc_lisp.Outcome`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from .._engine import reworded
from .._errors import RunError

Json = Mapping[str, Any]

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


def _said(text: str) -> str:
    """Returns a text of the service as users of the client read it."""
    of_routes = "run the program as a durable run (POST /v1/runs), or in the host with Engine::start"
    return reworded(text.replace(of_routes, "run the program with client.start(...)"))


def _position(at: Json) -> Position | None:
    if "line" not in at:
        return None
    line, column = at["line"], at.get("column", 1)
    return Position(line, column, at.get("end_line", line), at.get("end_column", column))


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
        details = dict(error.get("details") or {})
        phase, names = details.pop("phase", None), details.pop("locals", {})
        message, hint = _said(error["message"]), error.get("hint")
        hint = None if hint is None else _said(hint)
        return cls(error["reason"], message, hint, phase, _position(error), details, names, program)

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
        if at is not None and at.line <= len(source):
            text, number = source[at.line - 1].replace("\t", " "), str(at.line)
            end = at.end_column if at.end_line == at.line else len(text) + 1
            mark = " " * (at.column - 1) + "^" * max(end - at.column, 1)
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
        return cls(warning["kind"], _said(warning["message"]), warning.get("repair"), _position(warning))

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
            tool=line["name"],
            arguments=line["arguments"],
            result=line.get("result"),
            status=line["status"],
            error=line.get("error"),
            duration_us=line["duration_us"],
            worker=tuple(line["worker"]),
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
        return cls(**{name: usage.get(name) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]

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
        error = answer.get("error")
        failed = answer.get("outcome") == "fail"
        memory = answer.get("memory")
        return cls(
            ok=error is None and not failed and answer["verdict"] == "ok",
            value=None if failed else answer.get("value"),
            failure=answer.get("value") if failed else None,
            error=Error._of(error, program) if error else Error._of_failure(answer.get("text")) if failed else None,
            verdict=answer["verdict"],
            text=answer.get("text"),
            prints=list(answer["prints"]),
            ledger=[LedgerEntry._of(line) for line in answer.get("ledger") or ()],
            usage=Usage._of(answer["usage"]),
            warnings=[Warning._of(warning) for warning in answer.get("warnings") or ()],
            run_id=answer["run_id"],
            memory=None if memory is None else json.dumps(memory, ensure_ascii=False),
            limits=answer.get("limits") or {},
            truncated=answer["truncated"],
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
        return cast(int, cut.get("lines_total", 0) - cut.get("lines_shown", 0))

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
        return cls(run_id, call["call"], call["name"], dict(call["arguments"]), call.get("question"), call["phase"])


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
        run_id, answer = state["run_id"], state.get("answer")
        return cls(
            run_id=run_id,
            status=state["status"],
            calls=[OpenCall._of(run_id, call) for call in state["calls"]],
            outcome=None if answer is None else Outcome._of(answer, program),
            error=state.get("error"),
            created_ms=state["created_ms"],
            updated_ms=state["updated_ms"],
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
        return cls([Run._of(run) for run in page["runs"]], page.get("next"))


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
        return cls(**{name: state[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Event:
    """An event of a run."""

    id: str
    """The id of the event, from which a stream continues."""
    kind: str
    """`started`, `print`, `call`, `waiting`, `cut`, `answer` or `problem`."""
    data: dict[str, Any]
    """What happened, as the service describes it."""

    @property
    def is_last(self) -> bool:
        """Whether no event follows."""
        return self.kind in ("answer", "problem")

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, of an event `answer`."""
        return Outcome._of(self.data) if self.kind == "answer" else None
