"""The requests of the client, their repetition, and what is made of responses: the same for blocking and async code.

An operation is a generator. It yields *steps*, which a client carries out in its way, and gets what came of them. So what
is sent, and when it is sent again, does not depend on the kind of client.
"""

from __future__ import annotations

import builtins
import json
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union
from urllib.parse import quote

import httpx

from .._engine import to_json
from ..limits import Limits
from ..tools import Tool
from ._errors import BY_STATUS, ConnectionLost, Problem, RunStuck, StillWaiting
from ._models import Event, OpenCall, Outcome, Run, RunPage, SessionState
from ._retries import Retries
from ._tools import Served, ToolLike, by_name, described

if TYPE_CHECKING:
    Steps = Generator["Step", Any, "_T"]

_T = TypeVar("_T")

_POLL = 20
"""Seconds that the service holds a request that waits for a run."""
_POLL_KNOWN = 5
"""The same while open calls are known: two changes of a run in one millisecond look like one."""
_STREAM_SILENCE = 45.0
"""Seconds without a byte after which a stream is taken for lost: the service sends one every 15 seconds."""

Repeat = Literal["always", "unless_started", "unless_refused"]
"""When a request may be sent again: always; if the service did not begin with it; if it was refused or never arrived."""


class Options(TypedDict, total=False):
    """The options of a program, as those of `Engine.run`."""

    data: Mapping[str, Any]
    """Binds `data/NAME` to each value. Dates arrive as strings and sets as lists: the service takes JSON."""
    limits: Limits
    """Limits of the run. Those above the ceiling of the service are lowered to it: see `Outcome.limits`."""
    signature: str
    """The type of the result, such as `"{total :float}"`; another result is an error."""
    strict_data: bool
    """A missing `data/NAME` is an error instead of nil."""
    memory: str
    """The definitions of an earlier run: its `Outcome.memory`; begin with `"{}"`."""
    setup: Sequence[str]
    """Programs to run first, for their definitions."""
    json_keys: Literal["strings", "keywords"]
    """Whether the keys of dicts are strings or keywords in the program."""
    traceparent: str
    """The W3C trace context of the caller."""


class SessionOptions(TypedDict, total=False):
    """What all turns of a session share: see `Options`."""

    data: Mapping[str, Any]
    limits: Limits
    strict_data: bool
    memory: str
    setup: Sequence[str]
    json_keys: Literal["strings", "keywords"]


@dataclass(frozen=True)
class Send:
    """A step: sends a request, and gets an `Answer` or a `Lost`."""

    method: str
    path: str
    repeat: Repeat
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: float = 0.0
    """Seconds that the response may take beyond the timeout of the client."""


@dataclass(frozen=True)
class Pause:
    """A step: waits."""

    seconds: float


@dataclass(frozen=True)
class Serve:
    """A step: serves a call. An async client goes on meanwhile."""

    served: Served


Step = Union[Send, Pause, Serve]


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str
    attempts: int = 1

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Lost:
    """No response."""

    error: httpx.TransportError

    @property
    def arrived(self) -> bool:
        """Whether the request may have reached the service."""
        return not isinstance(self.error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


def problem_of(answer: Answer, attempts: int = 1) -> Problem:
    """Returns the problem that a response describes."""
    after = answer.headers.get("retry-after", "")
    title = httpx.codes.get_reason_phrase(answer.status)
    found: dict[str, Any] = {}
    if "json" in answer.headers.get("content-type", ""):
        read = answer.json()
        found = read if isinstance(read, dict) else {}
    return BY_STATUS.get(answer.status, Problem)(
        status=answer.status,
        title=found.get("title") or title,
        detail=found.get("detail") or answer.text[:500] or "the response has no text",
        field=found.get("field"),
        retry_after=float(after) if after.isdigit() else None,
        attempts=attempts,
    )


class Core:
    """The operations of both clients."""

    def __init__(self, url: str, token: str | None, tools: Iterable[ToolLike], timeout: float, retries: Retries) -> None:
        if not url.startswith(("http://", "https://", "unix:")):
            raise ValueError(f"url must start with http://, https:// or unix:, not {url!r}")
        self.socket = url.removeprefix("unix:") if url.startswith("unix:") else None
        self.url = "http://localhost" if self.socket else url.rstrip("/")
        self.address = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.tools = by_name(tools)
        self.timeout = timeout
        self.retries = retries

    # Requests and their repetition.

    def exchange(self, send: Send) -> Steps[Answer]:
        """Sends a request, again if that may be and helps, and returns the response. Raises for other statuses."""
        started, attempts, arrived = time.monotonic(), 0, False
        while True:
            attempts += 1
            got: Answer | Lost = yield send
            if isinstance(got, Answer) and got.status < 400:
                return Answer(got.status, got.headers, got.text, attempts)
            if isinstance(got, Lost):
                arrived = arrived or got.arrived
            delay = self._delay(send, got, attempts, time.monotonic() - started)
            if delay is None:
                if isinstance(got, Answer):
                    raise problem_of(got, attempts)
                raise self.lost(got, attempts, arrived) from got.error
            yield Pause(delay)

    def _delay(self, send: Send, got: Answer | Lost, attempts: int, elapsed: float) -> float | None:
        retry_after = None
        if isinstance(got, Lost):
            again = send.repeat == "always" or not got.arrived
        else:
            after = got.headers.get("retry-after", "")
            retry_after = float(after) if after.isdigit() else None
            again = (
                got.status == 429
                or (got.status == 503 and retry_after is not None and send.repeat != "unless_refused")
                or (got.status in (502, 504) and send.repeat == "always")
            )
        return self.retries.delay(attempts, elapsed, retry_after) if again else None

    def lost(self, got: Lost, attempts: int, arrived: bool) -> ConnectionLost:
        """Returns the exception for a request without a response."""
        why = str(got.error) or type(got.error).__name__
        times = f"after {attempts} attempts" if attempts > 1 else "at the first attempt"
        if arrived:
            text = (
                f"the connection to {self.address} broke {times}: {why}; it is unknown whether the request was carried out;"
                " give runs an idempotency_key, so that they can be repeated"
            )
        else:
            text = f"{self.address} cannot be reached {times}: {why}; start it with: ptcl serve"
        return ConnectionLost(text, may_have_happened=arrived)

    # Runs.

    def run(
        self,
        program: str,
        tools: Iterable[ToolLike],
        key: str | None,
        timeout: float | None,
        options: Mapping[str, Any],
        submitted: builtins.list[str],
    ) -> Steps[Outcome]:
        """Runs a program and waits for its outcome. Adds the id of a durable run to `submitted`."""
        offered = self._offered(tools)
        deadline = _deadline(timeout)
        if key is not None or offered:
            run = yield from self._submit(program, offered, key, options)
        else:
            limits: Limits | None = options.get("limits")
            patience = (limits.timeout if limits is not None and limits.timeout else 0.0) + (timeout or 0.0)
            body = self._request(program, offered, options)
            answer = yield from self.exchange(Send("POST", "/v1/run", "unless_started", body=body, patience=patience))
            if answer.status == 200:
                return Outcome._of(answer.json(), program)
            run = Run._of(answer.json(), program)
        submitted.append(run.run_id)
        return (yield from self._until_done(run, offered, deadline, program))

    def start(
        self, program: str, tools: Iterable[ToolLike], key: str | None, options: Mapping[str, Any]
    ) -> Steps[Run]:
        """Submits a durable run."""
        return (yield from self._submit(program, self._offered(tools), key, options))

    def _submit(
        self, program: str, tools: Mapping[str, Tool], key: str | None, options: Mapping[str, Any]
    ) -> Steps[Run]:
        headers = {"Idempotency-Key": key if key is not None else uuid.uuid4().hex}
        send = Send("POST", "/v1/runs", "always", body=self._request(program, tools, options), headers=headers)
        answer = yield from self.exchange(send)
        return Run._of(answer.json(), program)

    def get(self, run: Run | str, wait: float = 0.0, since_ms: int | None = None, program: str | None = None) -> Steps[Run]:
        """Returns the state of a run, at the latest after `wait` seconds."""
        query: dict[str, str | int] = {}
        if wait > 0:
            query["wait"] = min(max(round(wait), 1), 60)
            if since_ms is not None:
                query["since"] = since_ms
        patience = float(query.get("wait", 0))
        answer = yield from self.exchange(Send("GET", f"/v1/runs/{_run_id(run)}", "always", query, patience=patience))
        return Run._of(answer.json(), program)

    def list(self, status: str | None, limit: int | None, cursor: str | None) -> Steps[RunPage]:
        """Returns a page of runs."""
        given = {"status": status, "limit": limit, "cursor": cursor}
        query = {name: value for name, value in given.items() if value is not None}
        answer = yield from self.exchange(Send("GET", "/v1/runs", "always", query))
        return RunPage._of(answer.json())

    def cancel(self, run: Run | str) -> Steps[Run]:
        """Cancels a run."""
        answer = yield from self.exchange(Send("DELETE", f"/v1/runs/{_run_id(run)}", "always"))
        return Run._of(answer.json())

    def wait(self, run: Run | str, tools: Iterable[ToolLike], timeout: float | None) -> Steps[Outcome]:
        """Waits until a run is done, and serves its calls of tools that this process has."""
        deadline = _deadline(timeout)
        state = yield from self.get(run)
        return (yield from self._until_done(state, self._offered(tools), deadline, None))

    def _until_done(
        self, run: Run, tools: Mapping[str, Tool], deadline: float | None, program: str | None
    ) -> Steps[Outcome]:
        begun: set[tuple[str, str]] = set()
        while run.outcome is None:
            if run.status == "stuck":
                raise RunStuck(run)
            for call in run.calls:
                tool = tools.get(call.tool)
                if call.phase == "result" and tool is not None and tool.function is not None:
                    if (call.name, call.phase) not in begun:
                        begun.add((call.name, call.phase))
                        yield Serve(Served(tool, call))
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise StillWaiting(run)
            if left is not None and left < 1:
                # The service waits whole seconds.
                yield Pause(left)
                run = yield from self.get(run, program=program)
                continue
            poll = _POLL_KNOWN if run.calls else _POLL
            wait = poll if left is None else min(poll, int(left))
            run = yield from self.get(run, wait, run.updated_ms if run.calls else None, program)
        return run.outcome

    # Open calls.

    def reply(self, call: OpenCall, result: Any) -> Steps[Run]:
        """Replies to an open call with its result."""
        return (yield from self._answer(call, {"result": to_json(result, "the result")}))

    def fail(self, call: OpenCall, message: str, code: str | int | None) -> Steps[Run]:
        """Replies to an open call with an error."""
        error = {"message": message} if code is None else {"message": message, "code": code}
        return (yield from self._answer(call, {"error": json.dumps(error)}))

    def approve(self, call: OpenCall, arguments: Mapping[str, Any] | None) -> Steps[Run]:
        """Approves an open call."""
        body = {"approve": "true"}
        if arguments is not None:
            body["arguments"] = to_json(arguments, "arguments")
        return (yield from self._answer(call, body))

    def reject(self, call: OpenCall, reason: str) -> Steps[Run]:
        """Rejects an open call."""
        return (yield from self._answer(call, {"reject": json.dumps(reason)}))

    def _answer(self, call: OpenCall, body: Mapping[str, str]) -> Steps[Run]:
        # With its phase, an answer that comes late cannot answer a later question.
        text = _object({**body, "phase": json.dumps(call.phase)})
        return (yield from self._post_reply(call.run_id, call.name, text))

    def _post_reply(self, run_id: str, call: str, text: str) -> Steps[Run]:
        path = f"/v1/runs/{run_id}/calls/{quote(call)}"
        answer = yield from self.exchange(Send("POST", path, "always", body=text))
        return Run._of(answer.json())

    def post_served(self, served: Served, reply: str) -> Steps[None]:
        """Posts the reply of a function of this process. A result that the call cannot take becomes its error."""
        call = served.open_call
        try:
            yield from self._post_reply(call.run_id, call.name, reply)
        except Problem as problem:
            if problem.status in (413, 422):
                text = served.error(f"its result is not valid: {problem.detail}")
                yield from self.post_served(served, text) if reply != text else _nothing()
            elif problem.status != 409:
                raise
            # With 409 the call has an answer, from an attempt that was lost or from another client, or the run is over.

    # Checks, prompts and sessions.

    def check(self, program: str, tools: Iterable[ToolLike], options: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Returns what a check of a program finds."""
        body = self._request(program, self._offered(tools), options)
        answer = yield from self.exchange(Send("POST", "/v1/check", "always", body=body))
        found: dict[str, Any] = answer.json()
        return found

    def prompt(self, tools: Iterable[ToolLike], json_keys: str | None) -> Steps[str]:
        """Returns the system prompt with the tools of the service and of this process."""
        fields = {"tools": _tools(self._offered(tools))}
        if json_keys is not None:
            fields["json_keys"] = json.dumps(json_keys)
        answer = yield from self.exchange(Send("POST", "/v1/prompt", "always", body=_object(fields)))
        return answer.text

    def open_session(self, options: Mapping[str, Any]) -> Steps[SessionState]:
        """Opens a session."""
        send = Send("POST", "/v1/sessions", "unless_started", body=_object(_fields(options)))
        answer = yield from self.exchange(send)
        return SessionState._of(answer.json())

    def session_state(self, session_id: str) -> Steps[SessionState]:
        """Returns the state of a session."""
        answer = yield from self.exchange(Send("GET", f"/v1/sessions/{quote(session_id, safe='')}", "always"))
        return SessionState._of(answer.json())

    def turn(self, session_id: str, program: str, patience: float) -> Steps[Outcome]:
        """Runs a turn."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/turns"
        body = json.dumps({"program": program})
        answer = yield from self.exchange(Send("POST", path, "unless_refused", body=body, patience=patience))
        return Outcome._of(answer.json(), program)

    def change_session(self, session_id: str, what: Literal["fork", "undo"]) -> Steps[SessionState]:
        """Forks a session, or undoes its last turn."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/{what}"
        answer = yield from self.exchange(Send("POST", path, "unless_refused"))
        return SessionState._of(answer.json())

    def delete_session(self, session_id: str) -> Steps[None]:
        """Deletes a session."""
        try:
            yield from self.exchange(Send("DELETE", f"/v1/sessions/{quote(session_id, safe='')}", "always"))
        except Problem as problem:
            # The response of an earlier attempt was lost.
            if problem.status != 404 or problem.attempts == 1:
                raise

    # The texts of requests.

    def _offered(self, tools: Iterable[ToolLike]) -> dict[str, Tool]:
        return {**self.tools, **by_name(tools)}

    def _request(self, program: str, tools: Mapping[str, Tool], options: Mapping[str, Any]) -> str:
        fields = {"program": json.dumps(program), **_fields(options)}
        if tools:
            fields["tools"] = _tools(tools)
        if "memory" not in fields:
            fields["omit"] = '["memory"]'
        return _object(fields)


def _fields(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns options as fields of a request, as JSON text."""
    fields: dict[str, str] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name == "data":
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise TypeError(f'data must be a dict of values by name, as in data={{"orders": [...]}}, not {value!r:.60}')
            values = {key: to_json(one, f"data[{json.dumps(key)}]") for key, one in value.items()}
            fields[name] = _object(values)
        elif name == "limits":
            fields[name] = json.dumps(value._by_name())
        elif name == "memory":
            fields[name] = value
        elif name in ("signature", "strict_data", "setup", "json_keys", "traceparent"):
            fields[name] = json.dumps(list(value) if name == "setup" else value)
        else:
            known = ", ".join(Options.__annotations__)
            raise TypeError(f"unknown option {name}; the options are {known}")
    return fields


def _tools(tools: Mapping[str, Tool]) -> str:
    return _object({name: described(tool) for name, tool in tools.items()})


def _object(fields: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in fields.items()) + "}"


def _run_id(run: Run | str) -> str:
    return run if isinstance(run, str) else run.run_id


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _nothing() -> Steps[None]:
    return
    yield  # makes this a generator


class Feed:
    """The events of a run, across connections."""

    def __init__(self, core: Core, run: Run | str, after: str | None) -> None:
        self._core = core
        self._run_id = _run_id(run)
        self._last = after
        self._rest = b""
        self._lines: dict[str, list[str]] = {}
        self._failures = 0
        self._since = time.monotonic()
        self.is_over = False

    @property
    def request(self) -> Send:
        """The request that continues the stream."""
        headers = {"Accept": "text/event-stream"}
        if self._last is not None:
            headers["Last-Event-ID"] = self._last
        return Send("GET", f"/v1/runs/{self._run_id}/events", "always", headers=headers, patience=_STREAM_SILENCE)

    def take(self, received: bytes) -> list[Event]:
        """Takes a piece of the stream, and returns the events that end in it."""
        # Lines end with LF only: texts of events may have other characters that Python's `splitlines` takes for ends.
        *lines, self._rest = (self._rest + received).split(b"\n")
        events = (self._take_line(line.decode().removesuffix("\r")) for line in lines)
        return [event for event in events if event is not None]

    def _take_line(self, line: str) -> Event | None:
        if line:
            name, _, value = line.partition(":")
            if name:
                self._lines.setdefault(name, []).append(value.removeprefix(" "))
            return None
        lines, self._lines = self._lines, {}
        if "data" not in lines or "event" not in lines:
            return None
        event = Event("".join(lines.get("id", [""])), lines["event"][0], json.loads("\n".join(lines["data"])))
        self._last = event.id
        self._failures = 0
        self.is_over = event.is_last
        return event

    def interrupted(self, got: Answer | Lost | None) -> float:
        """Returns after how many seconds to connect again; raises if no longer. `None` is a stream that ended early."""
        self._rest, self._lines = b"", {}
        if self._failures == 0:
            self._since = time.monotonic()
        self._failures += 1
        shown = got if got is not None else Lost(httpx.RemoteProtocolError("the stream ended before its last event"))
        delay = self._core._delay(self.request, shown, self._failures, time.monotonic() - self._since)
        if delay is None:
            if isinstance(shown, Answer):
                raise problem_of(shown, self._failures)
            raise self._core.lost(shown, self._failures, shown.arrived) from shown.error
        return delay
