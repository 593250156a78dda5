"""The client for async code."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from .. import _exchange
from .._loop import ended
from ._models import Event, OpenCall, Outcome, Run, RunPage, SessionState, Status
from ._errors import ServiceError
from ._requests import Answer, Core, Feed, Lost, Options, Pause, Send, SessionOptions, Step, Submission
from ._retries import Retries
from ._sync import Reading, _answer, _exchange_of, _plain, _sent
from ._tools import Served, ToolLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

_T = TypeVar("_T")

_CONNECTIONS = 100
"""The maximum number of connections."""
_CANCELLING = 5.0
"""Seconds that cancelling a run may take after its task was cancelled."""


class _Pool:
    """Connections, and the requests that use them or wait for one."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.exchanges: set[_exchange.Exchange] = set()


class AsyncClient:
    """A client of `ptcl serve` for async code, with the methods of `Client`.

    An async context manager, which closes its connections. A client belongs to one event loop.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7117",
        *,
        token: str | None = None,
        tools: Iterable[ToolLike] = (),
        timeout: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Creates a client, with the options of `Client`.

        Async tools are tasks of the loop, other tools run in threads. Calls of one run are served side by side.
        """
        self._core = Core(url, token, tools, timeout, retries or Retries())
        self._timeout, self._transport = timeout, transport
        self._pool = self._new_pool()
        self._old_pools: set[_Pool] = set()

    def _new_pool(self) -> _Pool:
        transport = self._transport
        if transport is None and self._core.socket is not None:
            transport = httpx.AsyncHTTPTransport(uds=self._core.socket)
        http = httpx.AsyncClient(
            base_url=self._core.url,
            headers=self._core.headers,
            timeout=self._timeout,
            transport=transport,
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=20),
            # One with other characters than ASCII could not be sent back.
            cookies=_exchange.no_cookies(),
            event_hooks={"response": [_exchange.keep_location_async]},
        )
        return _Pool(http)

    async def run(
        self,
        program: str,
        *,
        tools: Iterable[ToolLike] = (),
        idempotency_key: str | None = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """`Client.run`. Cancelling the task cancels its tools, and the run unless it has an `idempotency_key`."""
        submission = Submission()
        try:
            return await self._drive(self._core.run(program, tools, idempotency_key, timeout, options, submission))
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            if idempotency_key is None:
                await self._abandon(submission)
            raise

    async def start(
        self,
        program: str,
        *,
        tools: Iterable[ToolLike] = (),
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Run:
        """`Client.start`."""
        return await self._drive(self._core.start(program, tools, idempotency_key, options))

    async def get(self, run: Run | str, *, wait: float = 0.0, since_ms: int | None = None) -> Run:
        """`Client.get`."""
        return await self._drive(self._core.get(run, wait, since_ms))

    async def list(
        self, *, status: Status | None = None, limit: int | None = None, cursor: str | None = None
    ) -> RunPage:
        """`Client.list`."""
        return await self._drive(self._core.list(status, limit, cursor))

    async def cancel(self, run: Run | str) -> Run:
        """`Client.cancel`."""
        return await self._drive(self._core.cancel(run))

    async def wait(self, run: Run | str, *, tools: Iterable[ToolLike] = (), timeout: float | None = None) -> Outcome:
        """`Client.wait`. Cancelling the task leaves the run as it is."""
        return await self._drive(self._core.wait(run, tools, timeout))

    async def reply(self, call: OpenCall, result: Any) -> Run:
        """`Client.reply`."""
        return await self._drive(self._core.reply(call, result))

    async def fail(self, call: OpenCall, message: str, *, code: str | int | None = None) -> Run:
        """`Client.fail`."""
        return await self._drive(self._core.fail(call, message, code))

    async def approve(self, call: OpenCall, arguments: Mapping[str, Any] | None = None) -> Run:
        """`Client.approve`."""
        return await self._drive(self._core.approve(call, arguments))

    async def reject(self, call: OpenCall, reason: str) -> Run:
        """`Client.reject`."""
        return await self._drive(self._core.reject(call, reason))

    async def events(self, run: Run | str, *, after: str | None = None) -> AsyncIterator[Event]:
        """`Client.events`, as an async iterator."""
        feed = Feed(self._core, run, after)
        while not feed.is_over:
            got: Answer | Lost | None = None
            try:
                async with self._exchanged(feed.request) as (http, exchange):
                    response = await self._opened(http, exchange, feed.request)
                    try:
                        if response.status_code != 200:
                            got = _answer(response, await _whole(response, feed.request))
                        else:
                            async for received in _plain(response).aiter_raw():
                                for event in feed.take(received):
                                    yield event
                    finally:
                        await response.aclose()
            except httpx.TransportError as error:
                got = Lost(error)
            if not feed.is_over:
                await asyncio.sleep(feed.interrupted(got))

    async def check(self, program: str, *, tools: Iterable[ToolLike] = (), **options: Unpack[Options]) -> dict[str, Any]:
        """`Client.check`."""
        return await self._drive(self._core.check(program, tools, options))

    async def prompt(self, *, tools: Iterable[ToolLike] = (), json_keys: str | None = None) -> str:
        """`Client.prompt`."""
        return await self._drive(self._core.prompt(tools, json_keys))

    async def session(self, **options: Unpack[SessionOptions]) -> AsyncSession:
        """`Client.session`: `async with await client.session() as session`."""
        return AsyncSession(self, await self._drive(self._core.open_session(options)), options.get("limits"))

    async def load_session(self, session_id: str) -> AsyncSession:
        """`Client.load_session`."""
        return AsyncSession(self, await self._drive(self._core.session_state(session_id)), None)

    async def close(self) -> None:
        """Closes the connections."""
        for pool in (self._pool, *self._old_pools):
            await pool.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._core.address}>"

    async def _abandon(self, submission: Submission) -> None:
        """Cancels the run of a task that was cancelled. What hinders that is not raised: the task ends anyway."""
        cancelling = asyncio.ensure_future(self._drive(self._core.abandon(submission)))
        waited = asyncio.ensure_future(asyncio.wait([cancelling], timeout=_CANCELLING))
        await ended(waited)
        if not cancelling.done():
            cancelling.cancel()
        elif not cancelling.cancelled():
            # Looked at, so that asyncio does not log it.
            cancelling.exception()

    async def _drive(self, steps: Generator[Step, Any, _T]) -> _T:
        serving: set[asyncio.Task[None]] = set()
        got: Any = None
        try:
            while True:
                try:
                    step = steps.send(got)
                except StopIteration as done:
                    result: _T = done.value
                    return result
                got = None
                if isinstance(step, Send):
                    got = await _unless_one_fails(self._send(step), serving)
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                else:
                    serving.add(asyncio.ensure_future(self._serve(step.served, step.deadline)))
        finally:
            for task in serving:
                task.cancel()
            if serving:
                await asyncio.wait(serving)

    async def _send(self, send: Send) -> Answer | Lost:
        try:
            async with self._exchanged(send) as (http, exchange):
                with _exchange.bounded_async(exchange) as trace:
                    async with http.stream(send.method, send.path, **_sent(send, self._core, trace)) as response:
                        return _answer(response, await _whole(response, send))
        except httpx.TransportError as error:
            return Lost(error)
        raise AssertionError("an exchange that is cut off raises")

    @contextlib.asynccontextmanager
    async def _exchanged(self, send: Send) -> AsyncIterator[tuple[httpx.AsyncClient, _exchange.Exchange]]:
        """Passes the connections for a request. A request that is cancelled before it has its connection may leave one that is
        never free again (httpcore 1.0): if none is free although requests have not got them all, there are new ones."""
        pool, exchange = self._pool, _exchange_of(send, self._core)
        pool.exchanges.add(exchange)
        try:
            yield pool.http, exchange
        except httpx.PoolTimeout:
            used = sum(one.is_traced for one in pool.exchanges)
            if pool is self._pool and self._transport is None and used < _CONNECTIONS:
                self._old_pools.add(pool)
                self._pool = self._new_pool()
            raise
        finally:
            pool.exchanges.discard(exchange)
            if pool in self._old_pools and not pool.exchanges:
                self._old_pools.discard(pool)
                await pool.http.aclose()

    async def _opened(self, http: httpx.AsyncClient, exchange: _exchange.Exchange, send: Send) -> httpx.Response:
        """Sends a request, and returns its response when its headers are here."""
        with _exchange.bounded_async(exchange) as trace:
            request = http.build_request(send.method, send.path, **_sent(send, self._core, trace))
            return await http.send(request, stream=True)
        raise AssertionError("an exchange that is cut off raises")

    async def _serve(self, served: Served, deadline: float | None) -> None:
        try:
            if served.tool.is_async:
                returned = await served.begin()
            else:
                returned = await asyncio.to_thread(served.begin)
                if asyncio.iscoroutine(returned):
                    returned = await returned
            reply = served.result(returned)
        except asyncio.CancelledError:
            served.call.is_cancelled = True
            raise
        except Exception as error:
            reply = served.failed(error)
        await self._drive(self._core.post_served(served, reply, deadline))


async def _whole(response: httpx.Response, send: Send) -> bytes:
    reading = Reading(send)
    async for received in _plain(response).aiter_raw():
        reading.take(received)
    return reading.whole()


async def _unless_one_fails(sending: Any, serving: set[asyncio.Task[None]]) -> Answer | Lost:
    """Waits for a response; raises at once if one of the calls that are served cannot be answered."""
    request = asyncio.ensure_future(sending)
    try:
        while not request.done():
            await asyncio.wait({request, *serving}, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in serving if task.done()]:
                serving.discard(task)
                task.result()
        answer: Answer | Lost = request.result()
        return answer
    finally:
        request.cancel()


class AsyncSession:
    """A session in the service, as `Session` for async code."""

    def __init__(self, client: AsyncClient, state: SessionState, limits: Any) -> None:
        """Not called by hosts: `AsyncClient.session` and `AsyncClient.load_session` create sessions."""
        self._client = client
        self._patience: float = (limits.timeout or 0.0) if limits is not None else 0.0
        self.session_id = state.session_id
        """The id of the session."""

    async def run(self, program: str) -> Outcome:
        """`Session.run`."""
        return await self._client._drive(self._client._core.turn(self.session_id, program, self._patience))

    async def state(self) -> SessionState:
        """`Session.state`."""
        return await self._client._drive(self._client._core.session_state(self.session_id))

    async def undo(self) -> SessionState:
        """`Session.undo`."""
        return await self._client._drive(self._client._core.change_session(self.session_id, "undo"))

    async def fork(self) -> AsyncSession:
        """`Session.fork`."""
        state = await self._client._drive(self._client._core.change_session(self.session_id, "fork"))
        return AsyncSession(self._client, state, None)

    async def delete(self) -> None:
        """`Session.delete`."""
        await self._client._drive(self._client._core.delete_session(self.session_id))

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self.delete()
            return
        # The exception of the caller is the one to see.
        with contextlib.suppress(ServiceError):
            await self.delete()
