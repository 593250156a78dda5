"""Event loops: how a run is driven on the loop of its caller, and the loop on which `Engine.run` calls async tools."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Coroutine
from typing import Any

from ._engine import AsyncCall, AsyncRun, CoreEngine, Outcome, ToolCall, Wakeups
from ._errors import CallInterrupted, ToolError, log_raised_in_background

_numbers = itertools.count(1)


class _Hub:
    """Wakes the runs of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.wakeups = Wakeups()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.wakeups.fileno(), self._wake)

    def _wake(self) -> None:
        for number in self.wakeups.take():
            self.wake(number)

    def wake(self, number: int) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting[number] = loop.create_future()
        try:
            await waiting
        finally:
            del self._waiting[number]


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_Hub]] = weakref.WeakKeyDictionary()
"""The hubs are held by their loops, whose reader they are. Runs that wait hold their loop: a loop that was closed with some
would never be freed if it were reached from here."""


def _hub_of(loop: asyncio.AbstractEventLoop) -> _Hub:
    known = _hubs.get(loop)
    hub = known() if known is not None else None
    if hub is None:
        hub = _Hub(loop)
        _hubs[loop] = weakref.ref(hub)
    return hub


async def drive(core: CoreEngine, source: str, options: dict[str, Any]) -> Outcome:
    """Runs a program on the running loop: its async tools are tasks of this loop."""
    loop = asyncio.get_running_loop()
    hub, number = _hub_of(loop), next(_numbers)
    run = core.begin(source, options, hub.wakeups, number)
    tasks: dict[int, asyncio.Task[None]] = {}
    try:
        while True:
            if run.is_long:
                # The loop stays free while the program computes.
                outcome = await loop.run_in_executor(None, run.poll_long)
            else:
                outcome = run.poll()
            if outcome is not None:
                return outcome
            for call in run.take_calls():
                task = loop.create_task(_serve(run, call, hub, number))
                tasks[call.number] = task
                task.add_done_callback(functools.partial(_forget, tasks, call.number))
            for dropped in run.take_dropped():
                if dropped in tasks:
                    tasks[dropped].cancel()
            if not run.is_woken:
                await hub.wait(number, loop)
            elif not run.is_long:
                await asyncio.sleep(0)
    finally:
        run.close()
        # The tasks of a closed loop do not run any more.
        if not loop.is_closed():
            await _end(tasks)


async def ended(work: asyncio.Future[Any]) -> None:
    """Waits until work has ended, however often the task is cancelled meanwhile."""
    # A cancelled scope of anyio cancels its task again in each turn of the loop, until the task leaves the scope.
    anyio: Any = sys.modules.get("anyio")
    with anyio.CancelScope(shield=True) if anyio is not None else contextlib.nullcontext():
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])
    if not work.cancelled():
        # Looked at, so that asyncio does not log it: the task of a cancelled run raises something else.
        work.exception()


def _forget(tasks: dict[int, asyncio.Task[None]], number: int, _: asyncio.Task[None]) -> None:
    tasks.pop(number, None)


async def _end(tasks: dict[int, asyncio.Task[None]]) -> None:
    """Cancels the tool calls of a run that has ended."""
    open_tasks = list(tasks.values())
    for task in open_tasks:
        task.cancel()
    if open_tasks:
        await asyncio.wait(open_tasks, timeout=0)


async def _serve(run: AsyncRun, call: AsyncCall, hub: _Hub, number: int) -> None:
    try:
        result = await call.begin()
    except asyncio.CancelledError as error:
        run.fail(call, error)
        hub.wake(number)
        raise
    except GeneratorExit:
        # The loop was closed.
        raise
    except BaseException as error:
        # What ends a process is raised by the run, not by this task, which would end the loop.
        run.fail(call, error)
        hub.wake(number)
    else:
        run.reply(call, result)
        hub.wake(number)


class _Background:
    """An event loop in a thread of its own, for async tools of runs that are not on a loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._turn, name="ptc-lisp-tools", daemon=True)
        self.thread.start()

    def _turn(self) -> None:
        # A task that a tool started, and did not wait for, may raise what ends a loop; and a tool may stop it.
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException as error:
                log_raised_in_background(error)


_background: _Background | None = None
_lock = threading.Lock()


def _after_fork() -> None:
    global _background, _lock
    _background, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _background_loop() -> asyncio.AbstractEventLoop:
    global _background
    with _lock:
        if _background is None or not _background.thread.is_alive():
            _background = _Background()
        return _background.loop


served_calls: contextvars.ContextVar[tuple[ToolCall, ...]] = contextvars.ContextVar("served_calls", default=())
"""The calls of async tools that the code which runs serves, on the loop of the package."""


async def _caught(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> tuple[Any, BaseException | None]:
    """Returns the result or the exception of a tool. `SystemExit` must not reach the loop, which it would end."""
    served_calls.set((*served_calls.get(), call))
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


def wait_for(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> Any:
    """Waits for an async tool of a run that is not on a loop, until the run ends."""
    future = asyncio.run_coroutine_threadsafe(_caught(coroutine, call), _background_loop())
    while True:
        left = call.remaining
        try:
            result, error = future.result(0.02 if left is None else min(left, 0.02))
        except concurrent.futures.TimeoutError:
            if future.done():
                # It ended after the wait did.
                continue
            if call.is_cancelled or (left is not None and left <= 0):
                future.cancel()
                raise CallInterrupted("the run ended before the tool") from None
        except concurrent.futures.CancelledError:
            # Nobody else cancels it.
            raise ToolError("the tool was cancelled") from None
        except BaseException:
            future.cancel()
            raise
        else:
            if error is not None:
                raise error
            return result
