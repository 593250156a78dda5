"""The client for blocking code."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from .. import _exchange
from .._loop import wait_for
from ._models import Event, OpenCall, Outcome, Run, RunPage, SessionState, Status
from ._errors import ServiceError, UnexpectedAnswer
from ._requests import MAX_BYTES, Answer, Core, Feed, Lost, Options, Pause, Send, SessionOptions, Step, Submission
from ._retries import Retries
from ._tools import Served, ToolLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

_T = TypeVar("_T")


class Client:
    """A client of `ptcl serve` for blocking code. `AsyncClient` has the same methods.

    A context manager, which closes its connections. It can be shared by threads.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7117",
        *,
        token: str | None = None,
        tools: Iterable[ToolLike] = (),
        timeout: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Creates a client.

        - `url` is `http://..`, `https://..`, or `unix:/path/of.sock`. `token` is that of the tenant, or of an approver.
        - `tools` are offered with each run, and called in this process; a function becomes a tool as with the decorator
          `tool`. Sessions and checks do not call them.
        - `timeout` is how many seconds the headers of a response may take, beyond the time of a run, and then the service may
          send nothing.
        - `retries` says how requests are repeated.
        - `transport` is a transport of httpx, for proxies and certificates of your own. With one of another library, timeouts
          hold as far as it heeds those of httpx.

        Raises `ValueError` for another URL, or a tool with an option that the service does not have.
        """
        self._core = Core(url, token, tools, timeout, retries or Retries())
        if transport is None and self._core.socket is not None:
            transport = httpx.HTTPTransport(uds=self._core.socket)
        self._http = httpx.Client(
            base_url=self._core.url,
            headers=self._core.headers,
            timeout=timeout,
            transport=transport,
            # One with other characters than ASCII could not be sent back.
            cookies=_exchange.no_cookies(),
            event_hooks={"response": [_exchange.keep_location]},
        )

    def run(
        self,
        program: str,
        *,
        tools: Iterable[ToolLike] = (),
        idempotency_key: str | None = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Runs a program and waits for its outcome. `options` are those of `Options`.

        With tools of this process, a `timeout` or an `idempotency_key` the run is durable: it survives a restart of the service, and
        requests are repeated without running it twice. A repeated key names the same run. Without them, a connection that
        breaks ends the run, and raises `ConnectionLost`: the calls of its tools may have been made.

        A run that needs an approval is waited for, at most `timeout` seconds; then `StillWaiting` is raised, and the run
        goes on. Ctrl-C, and `sys.exit` in a tool, cancel a run without an `idempotency_key`.

        Raises a `Problem` if the service refuses the request, and `RunStuck` if the run cannot continue.
        """
        submission = Submission()
        try:
            return self._drive(self._core.run(program, tools, idempotency_key, timeout, options, submission))
        except (KeyboardInterrupt, SystemExit):
            if idempotency_key is None:
                with contextlib.suppress(Exception):
                    self._drive(self._core.abandon(submission))
            raise

    def start(
        self,
        program: str,
        *,
        tools: Iterable[ToolLike] = (),
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Run:
        """Submits a durable run and returns its state at once. `wait` serves its calls of `tools` and returns its outcome."""
        return self._drive(self._core.start(program, tools, idempotency_key, options))

    def get(self, run: Run | str, *, wait: float = 0.0, since_ms: int | None = None) -> Run:
        """Returns the state of a run. With `wait`, it is returned when the run is done, is stuck, has open calls, or after
        so many seconds (at most 60); with `since_ms` of a known state (`updated_ms`) too, when it has changed."""
        return self._drive(self._core.get(run, wait, since_ms))

    def list(self, *, status: Status | None = None, limit: int | None = None, cursor: str | None = None) -> RunPage:
        """Returns the newest runs of the tenant, without outcomes: at most `limit` (1 to 1,000; 100 by default). `next` of
        the page is the `cursor` of the next one."""
        return self._drive(self._core.list(status, limit, cursor))

    def cancel(self, run: Run | str) -> Run:
        """Cancels a run. One that is done does not change."""
        return self._drive(self._core.cancel(run))

    def wait(self, run: Run | str, *, tools: Iterable[ToolLike] = (), timeout: float | None = None) -> Outcome:
        """Waits until a run is done, at most `timeout` seconds, and serves its calls of `tools` and of the client's tools
        meanwhile. Raises `StillWaiting` and `RunStuck` as `run`."""
        return self._drive(self._core.wait(run, tools, timeout))

    def reply(self, call: OpenCall, result: Any) -> Run:
        """Replies to an open call with its result."""
        return self._drive(self._core.reply(call, result))

    def fail(self, call: OpenCall, message: str, *, code: str | int | None = None) -> Run:
        """Replies to an open call with an error, which the program can catch."""
        return self._drive(self._core.fail(call, message, code))

    def approve(self, call: OpenCall, arguments: Mapping[str, Any] | None = None) -> Run:
        """Approves an open call that has a question, with other arguments if they are given."""
        return self._drive(self._core.approve(call, arguments))

    def reject(self, call: OpenCall, reason: str) -> Run:
        """Rejects an open call that has a question. The program ends with `tool_denied` and the reason."""
        return self._drive(self._core.reject(call, reason))

    def events(self, run: Run | str, *, after: str | None = None) -> Iterator[Event]:
        """Returns the events of a durable run, from its start or after the event with the id `after`, up to its answer.

        A connection that breaks is made again, and the stream continues after the last event.
        """
        feed = Feed(self._core, run, after)
        while not feed.is_over:
            got: Answer | Lost | None = None
            try:
                response = self._opened(feed.request)
                try:
                    if response.status_code != 200:
                        got = _answer(response, _whole(response, feed.request))
                    else:
                        for received in _plain(response).iter_raw():
                            yield from feed.take(received)
                finally:
                    response.close()
            except httpx.TransportError as error:
                got = Lost(error)
            if not feed.is_over:
                time.sleep(feed.interrupted(got))

    def check(self, program: str, *, tools: Iterable[ToolLike] = (), **options: Unpack[Options]) -> dict[str, Any]:
        """Checks a program without running it. Returns `{"warnings": [...]}`, with `"error"` if it cannot run."""
        return self._drive(self._core.check(program, tools, options))

    def prompt(self, *, tools: Iterable[ToolLike] = (), json_keys: str | None = None) -> str:
        """Returns the system prompt for a model, with the tools of the service, of the client and these. It is for runs:
        sessions do not have tools of clients. Their prompt is that of a client without tools."""
        return self._drive(self._core.prompt(tools, json_keys))

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Opens a session: programs that run one after another and share their definitions."""
        return Session(self, self._drive(self._core.open_session(options)), options.get("limits"))

    def load_session(self, session_id: str) -> Session:
        """Returns a session that was opened before, by any client of the tenant."""
        return Session(self, self._drive(self._core.session_state(session_id)), None)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._core.address}>"

    def _drive(self, steps: Generator[Step, Any, _T]) -> _T:
        got: Any = None
        while True:
            try:
                step = steps.send(got)
            except StopIteration as done:
                result: _T = done.value
                return result
            got = None
            if isinstance(step, Send):
                got = self._send(step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            else:
                self._drive(self._core.post_served(step.served, _serve(step.served), step.deadline))

    def _send(self, send: Send) -> Answer | Lost:
        try:
            with _exchange.bounded(_exchange_of(send, self._core)) as trace:
                with self._http.stream(send.method, send.path, **_sent(send, self._core, trace)) as response:
                    return _answer(response, _whole(response, send))
        except httpx.TransportError as error:
            return Lost(error)

    def _opened(self, send: Send) -> httpx.Response:
        """Sends a request, and returns its response when its headers are here."""
        with _exchange.bounded(_exchange_of(send, self._core)) as trace:
            request = self._http.build_request(send.method, send.path, **_sent(send, self._core, trace))
            return self._http.send(request, stream=True)


def _serve(served: Served) -> str:
    """Calls the function of a tool, and returns the reply."""
    try:
        returned = served.begin()
        if inspect.isawaitable(returned):
            returned = wait_for(returned, served.call)  # type: ignore[arg-type]
        return served.result(returned)
    except Exception as error:
        return served.failed(error)


def _sent(send: Send, core: Core, trace: Any) -> dict[str, Any]:
    """Returns the arguments of httpx for a request."""
    # The size of what a compressed response becomes is not known before.
    headers = {"Accept-Encoding": "identity", **send.headers}
    if send.body is not None:
        headers["Content-Type"] = "application/json"
    left = float("inf") if send.deadline is None else max(send.deadline - time.monotonic(), 0.01)
    timeout = httpx.Timeout(min(core.timeout, left), read=min(core.timeout + send.patience, left))
    content = None if send.body is None else send.body.encode()
    made = {"params": dict(send.query), "content": content, "headers": headers, "timeout": timeout}
    return {**made, "extensions": {"trace": trace}}


def _exchange_of(send: Send, core: Core) -> _exchange.Exchange:
    """Returns the time of a request and its response."""
    return _exchange.Exchange(send.deadline, core.timeout + send.patience)


def _plain(response: httpx.Response) -> httpx.Response:
    """Returns a response that is not compressed."""
    encoding = _exchange.encoding_of(response)
    if encoding is not None:
        raise UnexpectedAnswer(f"it is compressed with {encoding!r}, which was not asked for", "")
    return response


class Reading:
    """The bytes of a response, within its bounds."""

    def __init__(self, send: Send) -> None:
        self._deadline = send.deadline
        self._parts: list[bytes] = []
        self._bytes = 0

    def take(self, received: bytes) -> None:
        """Takes a part of the response."""
        self._parts.append(received)
        self._bytes += len(received)
        if self._bytes > MAX_BYTES:
            raise UnexpectedAnswer(f"it has more than {MAX_BYTES} bytes", "")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise httpx.ReadTimeout("the response took too long")

    def whole(self) -> bytes:
        """Returns all of it."""
        return b"".join(self._parts)


def _whole(response: httpx.Response, send: Send) -> bytes:
    reading = Reading(send)
    for received in _plain(response).iter_raw():
        reading.take(received)
    return reading.whole()


def _answer(response: httpx.Response, content: bytes) -> Answer:
    text = content.decode("utf-8", "replace")
    return Answer(response.status_code, response.headers, text, _exchange.location(response))


class Session:
    """A session in the service. Each program is a turn; one that fails changes nothing.

    As a context manager it is deleted at the end. It is kept by the service otherwise: `Client.load_session` continues it.
    """

    def __init__(self, client: Client, state: SessionState, limits: Any) -> None:
        """Not called by hosts: `Client.session` and `Client.load_session` create sessions."""
        self._client = client
        self._patience: float = (limits.timeout or 0.0) if limits is not None else 0.0
        self.session_id = state.session_id
        """The id of the session."""

    def run(self, program: str) -> Outcome:
        """Runs one more program."""
        return self._client._drive(self._client._core.turn(self.session_id, program, self._patience))

    def state(self) -> SessionState:
        """Returns the state of the session."""
        return self._client._drive(self._client._core.session_state(self.session_id))

    def undo(self) -> SessionState:
        """Undoes the last turn that succeeded, except for what its tools did. Raises `Conflict` if there is none."""
        return self._client._drive(self._client._core.change_session(self.session_id, "undo"))

    def fork(self) -> Session:
        """Returns a second session with the same definitions."""
        return Session(self._client, self._client._drive(self._client._core.change_session(self.session_id, "fork")), None)

    def delete(self) -> None:
        """Deletes the session."""
        self._client._drive(self._client._core.delete_session(self.session_id))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.delete()
            return
        # The exception of the caller is the one to see.
        with contextlib.suppress(ServiceError):
            self.delete()
