"""The requests of the client, their repetition, and what is made of responses: the same for blocking and async code.

An operation is a generator. It yields *steps*, which a client carries out in its way, and gets what came of them. So what
is sent, and when it is sent again, does not depend on the kind of client.
"""

from __future__ import annotations

import builtins
import json
import re
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union
from urllib.parse import quote

import httpx

from .. import _exchange
from .._engine import to_json
from ..limits import Limits
from ..tools import Tool
from ._errors import BY_STATUS, ConnectionLost, Problem, RunStuck, StillWaiting, UnexpectedAnswer
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
_SAME = 0.2
"""Seconds between two requests for the state of a run that was answered at once, and had not changed."""
_SUBMITTING = 5.0
"""The least number of seconds for the submission of a run that is waited for with a timeout, for the first look at it, and for
the reply to a call."""
_KNOWN_EVENTS = 10_000
"""The number of events that are recognized if they come again."""
MAX_BYTES = 256 * 1024 * 1024
"""The longest response, and the longest event, that is read."""

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
    deadline: float | None = None
    """When to stop waiting for the response, by the monotonic clock."""


@dataclass(frozen=True)
class Pause:
    """A step: waits."""

    seconds: float


@dataclass(frozen=True)
class Serve:
    """A step: serves a call. An async client goes on meanwhile."""

    served: Served
    deadline: float | None = None
    """When the run is waited for no longer, by the monotonic clock."""


Step = Union[Send, Pause, Serve]


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str
    location: str | None = None
    attempts: int = 1

    def read(self, make: Callable[[Any], _T]) -> _T:
        """Returns what is made of the response. Raises `UnexpectedAnswer` if it is not what the service answers."""
        try:
            return make(json.loads(self.text))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UnexpectedAnswer(f"{type(error).__name__}: {error}", self.text) from error

    @property
    def retry_after(self) -> float | None:
        """After how many seconds to send the request again, if the service says so."""
        after = self.headers.get("retry-after", "")
        return float(after[:9]) if after.isascii() and after.isdigit() else None


@dataclass(frozen=True)
class Lost:
    """No response."""

    error: httpx.TransportError
    """Why. One of our own protocol too: what the service sends can make a connection unusable."""

    @property
    def arrived(self) -> bool:
        """Whether the request may have reached the service."""
        return not isinstance(self.error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))

    @property
    def is_refused(self) -> bool:
        """Whether there is nothing at the address that listens."""
        return isinstance(self.error, httpx.ConnectError) and _is_refused(self.error)


def _is_refused(error: BaseException | None) -> bool:
    if error is None or isinstance(error, (ConnectionRefusedError, FileNotFoundError)):
        return error is not None
    # A name may have several addresses, whose errors are in one.
    several: Sequence[BaseException] = getattr(error, "exceptions", ())
    return all(map(_is_refused, several)) if several else _is_refused(error.__cause__ or error.__context__)


def problem_of(answer: Answer, attempts: int = 1) -> Problem:
    """Returns the problem that a response describes."""
    title = httpx.codes.get_reason_phrase(answer.status)
    found: dict[str, Any] = {}
    if "json" in answer.headers.get("content-type", ""):
        try:
            read = json.loads(answer.text)
        except (ValueError, RecursionError):
            read = None
        found = read if isinstance(read, dict) else {}
    given = {name: found[name] for name in ("title", "detail", "field") if isinstance(found.get(name), str)}
    detail = given.get("detail") or answer.text[:500] or "the response has no text"
    if 300 <= answer.status < 400:
        where = answer.location or "another address"
        detail = f"the service redirects to {where}, which is not followed; create the client with that address"
    return BY_STATUS.get(answer.status, Problem)(
        status=answer.status,
        title=given.get("title") or title,
        detail=detail,
        field=given.get("field"),
        retry_after=answer.retry_after,
        attempts=attempts,
    )


@dataclass
class Submission:
    """A durable run that a client has begun to submit."""

    send: Send | None = None
    """The request; `None` before it was sent. It names the run by its key, also after a lost response."""
    run_id: str | None = None
    """The id of the run, once the service has said it."""


class Core:
    """The operations of both clients."""

    def __init__(self, url: str, token: str | None, tools: Iterable[ToolLike], timeout: float, retries: Retries) -> None:
        if not url.startswith(("http://", "https://", "unix:")):
            raise ValueError(f"url must start with http://, https:// or unix:, not {url[:60]!r}")
        if url == "unix:":
            raise ValueError("url must have the path of a socket, as in unix:/run/ptcl.sock")
        if not url.startswith("unix:"):
            address = _exchange.address(url)
            if address is None:
                # Without the address: it may have a password.
                raise ValueError("url is not a valid address; write it as in http://127.0.0.1:7117")
            if address.userinfo:
                raise ValueError("url must not have a user and a password; give the token with token=")
        if token is not None and not _is_header(token):
            raise ValueError("token must be printable ASCII characters, without spaces at its ends")
        self.socket = url.removeprefix("unix:") if url.startswith("unix:") else None
        self.url = "http://localhost" if self.socket else url.rstrip("/")
        self.address = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.tools = by_name(tools)
        self.timeout = timeout
        self.retries = retries
        self.was_reached = False
        """Whether a request has reached the service."""

    # Requests and their repetition.

    def exchange(self, send: Send) -> Steps[Answer]:
        """Sends a request, again if that may be and helps, and returns the response. Raises for other statuses."""
        started, attempts, arrived = time.monotonic(), 0, False
        while True:
            attempts += 1
            got: Answer | Lost = yield send
            self.was_reached = self.was_reached or isinstance(got, Answer) or got.arrived
            if isinstance(got, Answer) and 200 <= got.status < 300:
                return replace(got, attempts=attempts)
            if isinstance(got, Lost):
                arrived = arrived or got.arrived
            delay = self._delay(send, got, attempts, time.monotonic() - started)
            if delay is None or (send.deadline is not None and time.monotonic() + delay > send.deadline):
                if isinstance(got, Answer):
                    raise problem_of(got, attempts)
                raise self.lost(got, attempts, arrived) from got.error
            yield Pause(delay)

    def _delay(self, send: Send, got: Answer | Lost, attempts: int, elapsed: float) -> float | None:
        retry_after, is_refused = None, False
        if isinstance(got, Lost):
            again = send.repeat == "always" or not got.arrived
            is_refused = not self.was_reached and got.is_refused
        else:
            retry_after = got.retry_after
            again = (
                got.status == 429
                or (got.status == 503 and retry_after is not None and send.repeat != "unless_refused")
                or (got.status in (502, 504) and send.repeat == "always")
            )
        return self.retries.delay(attempts, elapsed, retry_after, is_refused=is_refused) if again else None

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
        submission: Submission,
    ) -> Steps[Outcome]:
        """Runs a program and waits for its outcome. Notes in `submission` how far a durable run has come."""
        offered = self._offered(tools)
        deadline = _deadline(timeout)
        # With a timeout the run goes on when nobody waits for it any more.
        if key is not None or offered or deadline is not None:
            # Without the response to its submission nobody would know the run.
            until = _at_least(deadline, _SUBMITTING)
            run = yield from self._submit(program, offered, key, options, submission, until)
        else:
            limits: Limits | None = options.get("limits")
            patience = limits.timeout if limits is not None and limits.timeout else 0.0
            body = self._request(program, offered, options)
            send = Send("POST", "/v1/run", "unless_started", body=body, patience=patience)
            answer = yield from self.exchange(send)
            if answer.status == 200:
                return answer.read(lambda read: Outcome._of(read, program))
            run = answer.read(lambda read: Run._of(read, program))
            submission.run_id = run.run_id
        return (yield from self._until_done(run, offered, deadline, program))

    def start(
        self, program: str, tools: Iterable[ToolLike], key: str | None, options: Mapping[str, Any]
    ) -> Steps[Run]:
        """Submits a durable run."""
        return (yield from self._submit(program, self._offered(tools), key, options, Submission(), None))

    def _submit(
        self,
        program: str,
        tools: Mapping[str, Tool],
        key: str | None,
        options: Mapping[str, Any],
        submission: Submission,
        deadline: float | None,
    ) -> Steps[Run]:
        if key is not None and not _is_header(key):
            raise ValueError("idempotency_key must be printable ASCII characters, without spaces at its ends")
        headers = {"Idempotency-Key": key if key is not None else uuid.uuid4().hex}
        body = self._request(program, tools, options)
        send = Send("POST", "/v1/runs", "always", body=body, headers=headers, deadline=deadline)
        submission.send = send
        answer = yield from self.exchange(send)
        run = answer.read(lambda read: Run._of(read, program))
        submission.run_id = run.run_id
        return run

    def abandon(self, submission: Submission) -> Steps[None]:
        """Cancels a run of which nobody waits for the outcome. One whose submission was interrupted is submitted again: with
        its key it is the same run."""
        run_id = submission.run_id
        if run_id is None and submission.send is not None:
            answer = yield from self.exchange(replace(submission.send, deadline=None))
            run_id = answer.read(Run._of).run_id
        if run_id is not None:
            yield from self.cancel(run_id)

    def get(
        self,
        run: Run | str,
        wait: float = 0.0,
        since_ms: int | None = None,
        program: str | None = None,
        deadline: float | None = None,
    ) -> Steps[Run]:
        """Returns the state of a run, at the latest after `wait` seconds."""
        query: dict[str, str | int] = {}
        if wait > 0:
            query["wait"] = min(max(round(wait), 1), 60)
            if since_ms is not None:
                query["since"] = since_ms
        patience = float(query.get("wait", 0))
        send = Send("GET", f"/v1/runs/{_run_id(run)}", "always", query, patience=patience, deadline=deadline)
        answer = yield from self.exchange(send)
        return answer.read(lambda read: Run._of(read, program))

    def list(self, status: str | None, limit: int | None, cursor: str | None) -> Steps[RunPage]:
        """Returns a page of runs."""
        given = {"status": status, "limit": limit, "cursor": cursor}
        query = {name: value for name, value in given.items() if value is not None}
        answer = yield from self.exchange(Send("GET", "/v1/runs", "always", query))
        return answer.read(RunPage._of)

    def cancel(self, run: Run | str) -> Steps[Run]:
        """Cancels a run."""
        answer = yield from self.exchange(Send("DELETE", f"/v1/runs/{_run_id(run)}", "always"))
        return answer.read(Run._of)

    def wait(self, run: Run | str, tools: Iterable[ToolLike], timeout: float | None) -> Steps[Outcome]:
        """Waits until a run is done, and serves its calls of tools that this process has."""
        deadline = _deadline(timeout)
        state = yield from self.get(run, deadline=_at_least(deadline, _SUBMITTING))
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
                        yield Serve(Served(tool, call), deadline)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise StillWaiting(run)
            poll = _POLL_KNOWN if run.calls else _POLL
            # The service waits whole seconds.
            wait = poll if left is None else min(poll, int(left))
            if wait == 0:
                yield Pause(min(left or 0.0, _SAME))
            before, asked = run, time.monotonic()
            # The last look is due although the time is over.
            until = _at_least(deadline, 1.0)
            try:
                run = yield from self.get(run, wait, run.updated_ms if run.calls else None, program, until)
            except (ConnectionLost, Problem) as error:
                if deadline is not None and time.monotonic() >= deadline:
                    raise StillWaiting(run) from error
                raise
            if run.updated_ms == before.updated_ms and time.monotonic() - asked < _SAME:
                yield Pause(_SAME)
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

    def _post_reply(self, run_id: str, call: str, text: str, deadline: float | None = None) -> Steps[Run]:
        path = f"/v1/runs/{_run_id(run_id)}/calls/{_segment('the name of a call', call)}"
        answer = yield from self.exchange(Send("POST", path, "always", body=text, deadline=deadline))
        return answer.read(Run._of)

    def post_served(self, served: Served, reply: str, deadline: float | None) -> Steps[None]:
        """Posts the reply of a function of this process. A result that the call cannot take becomes its error."""
        call = served.open_call
        try:
            yield from self._post_reply(call.run_id, call.name, reply, _at_least(deadline, _SUBMITTING))
        except Problem as problem:
            if problem.status in (413, 422):
                text = served.error(f"its result is not valid: {problem.detail}")
                yield from self.post_served(served, text, deadline) if reply != text else _nothing()
            elif problem.status != 409:
                raise
            # With 409 the call has an answer, from an attempt that was lost or from another client, or the run is over.

    # Checks, prompts and sessions.

    def check(self, program: str, tools: Iterable[ToolLike], options: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Returns what a check of a program finds."""
        body = self._request(program, self._offered(tools), options)
        answer = yield from self.exchange(Send("POST", "/v1/check", "always", body=body))
        return answer.read(_checked)

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
        return answer.read(SessionState._of)

    def session_state(self, session_id: str) -> Steps[SessionState]:
        """Returns the state of a session."""
        answer = yield from self.exchange(Send("GET", f"/v1/sessions/{_segment('session_id', session_id)}", "always"))
        return answer.read(SessionState._of)

    def turn(self, session_id: str, program: str, patience: float) -> Steps[Outcome]:
        """Runs a turn."""
        path = f"/v1/sessions/{_segment('session_id', session_id)}/turns"
        body = json.dumps({"program": program})
        answer = yield from self.exchange(Send("POST", path, "unless_refused", body=body, patience=patience))
        return answer.read(lambda read: self._of_session(Outcome._of(read, program)))

    def _of_session(self, outcome: Outcome) -> Outcome:
        """Returns the outcome of a turn. If a tool of the client was called, its error says that sessions have none."""
        error = outcome.error
        if error is None or error.reason != "unknown_tool":
            return outcome
        named = re.search(r"tool/([A-Za-z_][\w-]*)", error.message)
        if named is None or named[1] not in self.tools:
            return outcome
        hint = (
            f"tool/{named[1]} is a tool of the client, and sessions do not have those; do without it here, or run a program"
            " of its own with client.run(...)"
        )
        return replace(outcome, error=replace(error, hint=hint))

    def change_session(self, session_id: str, what: Literal["fork", "undo"]) -> Steps[SessionState]:
        """Forks a session, or undoes its last turn."""
        path = f"/v1/sessions/{_segment('session_id', session_id)}/{what}"
        answer = yield from self.exchange(Send("POST", path, "unless_refused"))
        return answer.read(SessionState._of)

    def delete_session(self, session_id: str) -> Steps[None]:
        """Deletes a session."""
        try:
            yield from self.exchange(Send("DELETE", f"/v1/sessions/{_segment('session_id', session_id)}", "always"))
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


def _checked(read: Any) -> dict[str, Any]:
    if not isinstance(read, dict) or not isinstance(read.get("warnings"), list):
        raise TypeError("it must be an object with warnings")
    return read


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
            fields[name] = _memory(value)
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


def _memory(text: str) -> str:
    """Returns the definitions of an earlier run, if they are one JSON object."""

    def refuse(word: str) -> None:
        raise ValueError(f"JSON has no {word}")

    try:
        read = json.loads(text, parse_constant=refuse)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"memory must be the JSON text of Outcome.memory: {error}") from None
    if not isinstance(read, dict):
        raise ValueError('memory must be a JSON object, such as the text of Outcome.memory or "{}"')
    return text


def _run_id(run: Run | str) -> str:
    return _segment("run_id", run if isinstance(run, str) else run.run_id)


def _segment(name: str, text: str) -> str:
    """Returns a text as a part of a path."""
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise ValueError(f"{name} must be as the service gave it, not {text!r:.60}")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be as the service gave it, not {text!r:.60}") from None


def _is_header(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and text == text.strip()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _at_least(deadline: float | None, seconds: float) -> float | None:
    """Returns a deadline that leaves so many seconds for a request."""
    return None if deadline is None else max(deadline, time.monotonic() + seconds)


def _nothing() -> Steps[None]:
    return
    yield  # makes this a generator


class Feed:
    """The events of a run, across connections."""

    def __init__(self, core: Core, run: Run | str, after: str | None) -> None:
        if after is not None and not _is_header(after):
            raise ValueError("after must be the id of an event")
        self._core = core
        self._run_id = _run_id(run)
        self._last = after
        self._seen: dict[str, None] = {}
        self._bytes = 0
        self._rest: builtins.list[bytes] = []
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
        self._core.was_reached = True
        self._bytes += len(received)
        if self._bytes > MAX_BYTES:
            raise UnexpectedAnswer(f"an event has more than {MAX_BYTES} bytes", "")
        if b"\n" not in received:
            self._rest.append(received)
            return []
        *lines, rest = b"".join([*self._rest, received]).split(b"\n")
        self._rest = [rest]
        try:
            events = [self._take_line(line.decode().removesuffix("\r")) for line in lines]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UnexpectedAnswer(f"an event is not readable: {error}", "") from error
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
        event_id = "".join(lines.get("id", ()))
        if not _is_header(event_id) or len(event_id) > 200:
            # The next connection continues after this id, which is then a header.
            raise ValueError(f"its id is {event_id!r:.60}")
        event = Event._of(event_id, lines["event"][0], json.loads("\n".join(lines["data"])))
        self._bytes = 0
        if event.id in self._seen:
            # The service sends no event twice.
            return None
        self._seen[event.id] = None
        if len(self._seen) > _KNOWN_EVENTS:
            del self._seen[next(iter(self._seen))]
        self._last = event.id
        self._failures = 0
        self.is_over = event.is_last
        return event

    def interrupted(self, got: Answer | Lost | None) -> float:
        """Returns after how many seconds to connect again; raises if no longer. `None` is a stream that ended early."""
        self._rest, self._lines, self._bytes = [], {}, 0
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
