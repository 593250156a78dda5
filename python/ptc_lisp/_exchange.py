"""Requests of httpx that end in time, and redirects that are only read.

The timeouts of httpx begin again whenever something is received: a service that sends a header each second, or interim
responses without end, would never exceed them.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

_WRITTEN_AT_ONCE = 65_536
"""Bytes between two looks at the clock."""


class Exchange:
    """The time of one request and its response: until `deadline`, by the monotonic clock, and for the first byte of the
    response to the last one of its headers `headers` seconds."""

    def __init__(self, deadline: float | None, headers: float) -> None:
        self._deadline = deadline
        self._headers = headers
        self.until = deadline
        """When the part ends that is in progress."""
        self.may_have_arrived = True
        """Whether the request may have been sent. Not known of transports that are not those of httpx."""
        self.is_traced = False

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Notes how far the exchange is: the extension `trace` of httpx."""
        if not self.is_traced:
            self.is_traced, self.may_have_arrived = True, False
        if event.endswith(".send_request_headers.complete"):
            self.may_have_arrived = True
        elif event.endswith(".receive_response_headers.started"):
            until = time.monotonic() + self._headers
            self.until = until if self._deadline is None else min(until, self._deadline)
        elif event.endswith(".receive_response_headers.complete"):
            self.until = self._deadline


_of_thread = threading.local()


@contextlib.contextmanager
def bounded(exchange: Exchange) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """Ends an exchange of this thread in time, with the timeouts of httpx. Passes the extension `trace` for its request."""
    before = getattr(_of_thread, "exchange", None)
    _of_thread.exchange = exchange

    def trace(event: str, info: dict[str, Any]) -> None:
        exchange.note(event, info)
        if event.endswith((".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")):
            _bound(info["return_value"])

    try:
        yield trace
    finally:
        _of_thread.exchange = before


def _bound(stream: Any) -> None:
    """Makes a connection heed the exchange of its thread, now and when another request uses it."""
    read, write = stream.read, stream.write

    def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
        received: bytes = read(max_bytes, _left(timeout, "Read"))
        return received

    def write_in_time(buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), _WRITTEN_AT_ONCE):
            write(buffer[at : at + _WRITTEN_AT_ONCE], _left(timeout, "Write"))

    stream.read, stream.write = read_in_time, write_in_time


def _left(timeout: float | None, what: str) -> float | None:
    exchange: Exchange | None = getattr(_of_thread, "exchange", None)
    if exchange is None or exchange.until is None:
        return timeout
    left = exchange.until - time.monotonic()
    if left <= 0:
        import httpcore

        kind = httpcore.ReadTimeout if what == "Read" else httpcore.WriteTimeout
        raise kind("the exchange took too long")
    return left if timeout is None else min(timeout, left)


@contextlib.contextmanager
def bounded_async(exchange: Exchange) -> Iterator[Callable[[str, dict[str, Any]], Awaitable[None]]]:
    """Ends an exchange of this task in time, as `bounded` for async code."""
    import anyio

    def set_deadline() -> None:
        until = exchange.until
        scope.deadline = float("inf") if until is None else anyio.current_time() + until - time.monotonic()

    async def trace(event: str, info: dict[str, Any]) -> None:
        exchange.note(event, info)
        set_deadline()

    with anyio.CancelScope() as scope:
        set_deadline()
        yield trace
    if scope.cancelled_caught:
        kind = httpx.ReadTimeout if exchange.may_have_arrived else httpx.ConnectTimeout
        raise kind("the exchange took too long")


def no_cookies() -> CookieJar:
    """Returns a jar that takes no cookie."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def address(url: str) -> httpx.URL | None:
    """Returns an address of HTTP or HTTPS, to which a request can be sent; `None` if it is not one."""
    try:
        parsed = httpx.URL(url)
        # The host is only decoded now.
        host, port = parsed.host, parsed.port
    except (httpx.InvalidURL, TypeError, ValueError):
        return None
    named = re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", parsed.raw_host.decode("ascii"))
    return parsed if parsed.scheme in ("http", "https") and host and named and 0 < (port or 80) < 65_536 else None


def keep_location(response: httpx.Response) -> None:
    """Keeps httpx from making a request of the address that a redirect names, which may be none. A hook for responses."""
    if "location" in response.headers:
        response.extensions["location"] = response.headers.pop("location")


async def keep_location_async(response: httpx.Response) -> None:
    """`keep_location`, for async code."""
    keep_location(response)


def location(response: httpx.Response) -> str | None:
    """Returns where a response redirects to, on one line."""
    to = response.extensions.get("location")
    return None if to is None else "".join(one if one.isprintable() else "?" for one in to[:200])


def encoding_of(response: httpx.Response) -> str | None:
    """Returns how a response is compressed."""
    encoding: str = response.headers.get("content-encoding", "")
    return None if encoding in ("", "identity") else encoding[:20]
