"""The engine and its sessions."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NoReturn

from . import _ptcl
from ._engine import (
    AskedCall,
    Cancellation,
    CoreEngine,
    CoreSession,
    DataSet,
    OpenCall,
    Outcome,
    Record,
    ToolCall,
    close,
    forked,
)
from ._loop import drive, ended, served_calls
from .limits import Limits, _named
from .policy import Decision, checked
from .suspended import Suspended
from .tools import Tool

Check = Literal["off", "warn", "refuse"]
"""Whether programs are checked before they run."""

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _after_fork() -> None:
    forked()
    # Threads do not survive a fork: engines are built again when they are used.
    for engine in list(_engines):
        engine._core_or_none = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
# Daemon threads may still run programs when the interpreter ends.
atexit.register(close)


class Engine:
    """Runs programs, with the tools and the limits that it holds.

    Build one and share it: between threads, event loops and forked processes.
    """

    def __init__(
        self,
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        limits: Limits | None = None,
        ceiling: Limits | None = None,
        policy: Callable[[AskedCall], Decision] | None = None,
        check: Check = "warn",
        json_keys: Literal["strings", "keywords"] = "strings",
        isolation: Literal["in_process", "process"] = "in_process",
        template: str | os.PathLike[str] | None = None,
        prompt_tools_bytes: int | None = None,
    ) -> None:
        """Creates an engine.

        - `tools` may be called by programs; a function becomes a tool as with the decorator `tool`.
        - `limits` apply to every run. `ceiling` is the most that a run may ask for; the default is `limits`.
        - `policy` is called before each tool call and returns `allow()`, `deny(reason)` or `ask(question)`.
        - `check`: what to do with mistakes that are found before a run. `"off"` looks for none, `"warn"` (the default) puts
          them into `Outcome.warnings`, and `"refuse"` does not begin a run whose tool calls would fail.
        - `json_keys`: whether the keys of dicts are strings or keywords in programs. With strings, a program can still
          read them by keyword.
        - `isolation="process"` runs each program in a locked-down process of its own (Linux). `template` is the program
          `ptcl`; the default is that of this package, or of `PATH`.
        - `prompt_tools_bytes` bounds the tools in the prompt; the default is 16,000.

        Raises `ValueError` for two tools with the same name, invalid schemas or limits, and `RuntimeError` if process
        isolation is not possible on this system.
        """
        if callable(tools) or isinstance(tools, str):
            raise TypeError("tools must be a list, as in tools=[price]")
        made = [_tool(tool) for tool in tools]
        for name, given in (("limits", limits), ("ceiling", ceiling)):
            if given is not None:
                _KINDS["limits"](name, given)
        if policy is not None:
            _callable("policy", policy)
        self._tools = {tool.name: tool for tool in made}
        self._setting: dict[str, Any] = {
            "tools": made,
            "limits": limits._by_name() if limits else {},
            "ceiling": ceiling._by_name() if ceiling else None,
            "policy": checked(policy) if policy else None,
            "check": check,
            "json_keys": json_keys,
            "isolation": isolation,
            "template": None if isolation == "in_process" else _template(template),
            "prompt_tools_bytes": prompt_tools_bytes,
        }
        self._core_or_none: CoreEngine | None = CoreEngine(self._setting)
        _engines.add(self)

    @property
    def _core(self) -> CoreEngine:
        core = self._core_or_none
        if core is None:
            core = self._core_or_none = CoreEngine(self._setting)
        return core

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools of the engine."""
        return list(self._tools.values())

    def run(
        self,
        program: str,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        limits: Limits | None = None,
        tenant: str | None = None,
        run_id: str | None = None,
        signature: str | None = None,
        strict_data: bool = False,
        memory: str | None = None,
        setup: Sequence[str] | None = None,
        on_print: Callable[[str], object] | None = None,
        traceparent: str | None = None,
        now_ms: int | None = None,
        check: Check | None = None,
        domain: str | None = None,
    ) -> Outcome:
        """Runs a program to its end, on this thread. Other Python threads run meanwhile.

        - `data` binds `data/NAME` to each value: None, bool, int, float, str, list, tuple, dict with str keys, set, date,
          datetime and timedelta, nested up to 512 deep. `data_sets` are those of `import_data`.
        - `limits` for this run: tighter than those of the engine, or up to its `ceiling`. A limit above it is an error.
        - `tenant` is the name of the client for the policy. `run_id` is an id of yours for the run.
        - `signature` is the type of the result, such as `"{total :float}"`; another result is an error.
        - `strict_data`: a missing `data/NAME` is an error instead of nil.
        - `memory` has the definitions of an earlier run: its `Outcome.memory`. `Outcome.memory` is only made if `memory`
          is given; begin with `"{}"`. `setup` are programs to run first, for their definitions.
        - `on_print` is called with each printed line.
        - `traceparent` is passed to tools. `now_ms` fixes the clock of the program.
        - `check`, `"off"`, `"warn"` or `"refuse"`, can weaken the check of the engine.
        - `domain`, with `isolation="process"`: runs of one domain share processes, because they trust each other, such as
          those of one tenant. That is several times faster than a process for each run.

        Whatever the program does, nothing is raised: look at `Outcome.ok`, or call `Outcome.raise_for_error()`. Async tools
        run on an event loop of the package; in async code, use `run_async`. Ctrl-C ends the run, at the latest when a single
        built-in over many elements has ended.

        Raises `TypeError` or `ValueError`, with the path of the value, for data that cannot be passed, and `ValueError` for
        limits above the ceiling.
        """
        options = self._limited(_options(locals()))
        self._must_not_block("run()", "engine.run_async(...)")
        return self._core.run(program, options)

    async def run_async(
        self,
        program: str,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        limits: Limits | None = None,
        tenant: str | None = None,
        run_id: str | None = None,
        signature: str | None = None,
        strict_data: bool = False,
        memory: str | None = None,
        setup: Sequence[str] | None = None,
        on_print: Callable[[str], object] | None = None,
        traceparent: str | None = None,
        now_ms: int | None = None,
        check: Check | None = None,
        domain: str | None = None,
    ) -> Outcome:
        """Runs a program on the running event loop, with the options of `run`.

        Async tools are tasks of this loop; calls of `pmap` run side by side. Other tools run in threads. Cancelling the
        task ends the run and cancels the tools that it waits for. A program that computes for more than about a
        millisecond continues in a thread of the loop's default executor.
        """
        options = self._limited(_options(locals()))
        return await drive(self._core, program, options)

    def start(
        self,
        program: str,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        limits: Limits | None = None,
        tenant: str | None = None,
        run_id: str | None = None,
        signature: str | None = None,
        strict_data: bool = False,
        memory: str | None = None,
        setup: Sequence[str] | None = None,
        on_print: Callable[[str], object] | None = None,
        traceparent: str | None = None,
        now_ms: int | None = None,
        check: Check | None = None,
        recorder: Callable[[str], object] | None = None,
    ) -> Suspended | Outcome:
        """Runs a program until it ends or needs somebody: a reply to an external tool, or an approval that the policy asks
        for. Tools with a function are called as in `run`, one after another.

        The run is recorded. `recorder` stores each line of the record before the call that the line announces is made, so
        that a process that dies loses nothing: see `Engine.resume`. It also gets each answer to a `Suspended` before the run
        continues. A line ends with its line break: write it as it is. The other options are those of `run`.
        """
        options = self._limited(_options(locals()))
        self._must_not_block("start()", "engine.start_async(...)")
        return self._start(program, options)

    def resume(
        self,
        record: Record | bytes | str,
        *,
        data_sets: Sequence[DataSet] | None = None,
        recorder: Callable[[str], object] | None = None,
        limits: Limits | None = None,
        on_print: Callable[[str], object] | None = None,
    ) -> Suspended | Outcome:
        """Continues a recorded run, in any process whose engine has the same tools.

        What the record has is repeated without calling a tool. `data_sets` of the run are given again. A call whose result
        is unknown, because its process died or the run ended during the call, is repeated if its tool is `effect="read"`;
        otherwise the run ends with `unknown_call` unless the record says what happened (`Record.reply`, `Record.fail`,
        `Record.not_made`). `recorder` adds to the stored record what happens from here on.

        Raises `ValueError` if the record is not valid, or does not fit this engine; if its run has ended and it lacks a reply
        or decision, which would be asked for again; and, with a `recorder`, if it ends in the middle of a line.
        """
        given = {"data_sets": data_sets, "recorder": recorder, "limits": limits, "on_print": on_print}
        self._must_not_block("resume()", "engine.resume_async(...)")
        return self._resume(record, self._limited(_options(given)))

    async def start_async(self, program: str, **options: Any) -> Suspended | Outcome:
        """`start`, in a thread: it does not block the event loop. Async tools run on an event loop of the package, not on
        the caller's. Cancelling the task ends the run when the tool that it waits for has ended."""
        given = self._limited(_options(options))
        return await _in_thread(lambda: self._start(program, given), given)

    async def resume_async(self, record: Record | bytes | str, **options: Any) -> Suspended | Outcome:
        """`resume`, as `start_async` is `start`."""
        given = self._limited(_options(options))
        return await _in_thread(lambda: self._resume(record, given), given)

    def _start(self, program: str, options: dict[str, Any]) -> Suspended | Outcome:
        recorder = options.pop("recorder", None)
        given = {"data_sets": options.get("data_sets"), "recorder": recorder}
        return self._progressed(self._core.start(program, options, recorder), given)

    def _resume(self, record: Record | bytes | str, options: dict[str, Any]) -> Suspended | Outcome:
        recorder = options.pop("recorder", None)
        if not isinstance(record, Record):
            if recorder is not None and _is_torn(record):
                raise ValueError(
                    "the record ends in the middle of a line, and the recorder would add to that line; first replace what"
                    " is stored by bytes(Record(stored))"
                )
            record = Record(record)
        lacking = [call.name for call in record.calls if not call.is_unknown and self._waits_outside(call)]
        if record.answer is not None and lacking:
            raise ValueError(
                "the run has ended, and its record lacks the reply or decision for call"
                f" {', '.join(lacking)}: resuming would ask for it again; record.answer has the outcome"
            )
        given = {"data_sets": options.get("data_sets"), "recorder": recorder}
        return self._progressed(self._core.resume(record, options, recorder), given)

    def _waits_outside(self, call: OpenCall) -> bool:
        tool = self._tools.get(call.tool)
        return call.question is not None or (tool is not None and tool.function is None)

    def _progressed(self, progressed: Outcome | Record, given: dict[str, Any]) -> Suspended | Outcome:
        return Suspended(self, progressed, given) if isinstance(progressed, Record) else progressed

    def _must_not_block(self, what: str, instead: str) -> None:
        if self._core.has_async_tools and _on_a_loop():
            raise RuntimeError(f"{what} would block the event loop that async tools need; write: await {instead}")

    def check(
        self,
        program: str,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        tenant: str | None = None,
        setup: Sequence[str] | None = None,
    ) -> Outcome:
        """Checks a program without running it, against the data and the tools.

        Returns an outcome without a value: `Outcome.error` if the program does not compile or names what does not exist,
        and `Outcome.warnings` for mistakes such as misspelt keys, each with a repair.
        """
        return self._core.check(program, _options(locals()))

    def prompt(self, *, tenant: str | None = None) -> str:
        """Returns the system prompt for a model: the language, and the tools with their signatures. With a tenant, only
        the tools that the policy shows to it."""
        return self._core.prompt(tenant)

    def import_data(self, name: str, value: Any) -> DataSet:
        """Imports a value once, as `data/NAME` of any number of runs, which share it without copying.

        Raises `TypeError` or `ValueError`, with the path of the value, if it cannot be passed or exceeds `setup_heap_mb`.
        """
        return self._core.import_data(name, value)

    def session(
        self,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        limits: Limits | None = None,
        tenant: str | None = None,
        setup: Sequence[str] | None = None,
        on_print: Callable[[str], object] | None = None,
    ) -> Session:
        """Starts a session: programs that run one after another and share their definitions."""
        return Session(self._core.session(self._limited(_options(locals())), None))

    def load_session(
        self,
        saved: bytes | str,
        *,
        data: Mapping[str, Any] | None = None,
        data_sets: Sequence[DataSet] | None = None,
        limits: Limits | None = None,
        tenant: str | None = None,
        on_print: Callable[[str], object] | None = None,
    ) -> Session:
        """Continues a session that `Session.save` returned, in any process. Its data is given again.

        Raises `ValueError` if the text is not a saved session, or calls a tool that the engine does not have.
        """
        options = self._limited(_options(locals()))
        text = saved.decode() if isinstance(saved, bytes) else saved
        return Session(self._core.session({name: options[name] for name in options if name != "saved"}, text))

    def _limited(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a run; raises if it asks for more than the ceiling, which would hold instead."""
        asked: Limits | None = options.get("limits")
        if asked is not None:
            by_name = options["limits"] = asked._by_name()
            most = self._core.limits_for(by_name)
            above = [name for name in by_name if most[name] != by_name[name]]
            if above:
                raise ValueError(_above_the_ceiling(asked, {name: most[name] for name in above}))
        return options

    def __reduce__(self) -> str:
        raise TypeError("an engine cannot be pickled; create one in each process, or before the processes are forked")

    def __repr__(self) -> str:
        return f"<Engine with the tools {', '.join(self._tools) or 'none'}>"


class Session:
    """Programs that run one after another and share their definitions. Each is a turn; one that fails changes nothing.

    A session runs one turn at a time: other threads wait for it, and a tool cannot use the session that calls it
    (`RuntimeError`). It is also a context manager, which ends a turn that is running.
    """

    def __init__(self, core: CoreSession) -> None:
        """Not called by hosts: `Engine.session` and `Engine.load_session` create sessions."""
        self._session = core

    @property
    def _core(self) -> CoreSession:
        # The thread of the turn waits for the tool, so the tool must not wait for the turn. Other kinds of tools are on
        # threads that the session knows.
        # Calls of the client, which are none of a session here, are served on the same loop.
        if any(isinstance(call, ToolCall) and self._session.has_call(call) for call in served_calls.get()):
            raise RuntimeError(
                "the session is running a turn; a tool cannot use its own session, open another with engine.session()"
            )
        return self._session

    def run(self, program: str, **unknown: NoReturn) -> Outcome:
        """Runs one more program. Data is given to `Engine.session`, for all turns."""
        _only_a_program(program, unknown)
        core = self._core
        return core.run(program, core.begin())

    async def run_async(self, program: str, **unknown: NoReturn) -> Outcome:
        """Runs one more program in a thread. Cancelling the task ends the turn; the task ends when the tool that the turn waits
        for has ended, however often it is cancelled."""
        _only_a_program(program, unknown)
        core = self._core
        # Before the thread starts: the task may be cancelled first.
        number = core.begin()
        turn = asyncio.ensure_future(asyncio.to_thread(core.run, program, number))
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            core.cancel(number)
            # The next turn must not begin before this one has ended.
            await ended(turn)
            raise

    def save(self) -> bytes:
        """Returns the definitions, functions too, and the last results, for `Engine.load_session`. Raises `ValueError` if
        they exceed the limit `session_bytes`."""
        return self._core.save().encode()

    def memory(self) -> str:
        """Returns the definitions as a JSON object, without functions."""
        return self._core.memory()

    def undo(self) -> None:
        """Undoes the last turn that succeeded, except for what its tools did. Raises `ValueError` if there is none."""
        self._core.undo()

    def fork(self) -> Session:
        """Returns a second session with the same definitions; the two are independent."""
        return Session(self._core.fork())

    @property
    def names(self) -> list[str]:
        """The names that the session has defined."""
        return self._core.names

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._session.cancel()

    def __reduce__(self) -> str:
        raise TypeError(
            "a session cannot be pickled, because it holds its engine; store session.save() and pass it to"
            " engine.load_session(...)"
        )


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of a run that are set."""
    options = {
        name: value
        for name, value in given.items()
        if value is not None and value is not False and name not in ("self", "program")
    }
    if not isinstance(given.get("program", ""), str):
        raise TypeError(f"a program is a str, not {type(given['program']).__name__}")
    for name, value in options.items():
        if name in _KINDS:
            _KINDS[name](name, value)
    if "data" in options:
        options["data"] = dict(options["data"])
    return options


def _tool(given: Tool | Callable[..., Any]) -> Tool:
    if isinstance(given, Tool):
        return given
    if not callable(given):
        raise TypeError(f"a tool is a function or a Tool, not {type(given).__name__}")
    return Tool.from_function(given)


def _must_be(kind: type | tuple[type, ...], what: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {what}, not {type(value).__name__}")

    return check


def _programs(name: str, value: Any) -> None:
    if isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise TypeError(f'{name} must be a list of programs, as in {name}=["(def rate 1.5)"]')


def _callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {type(value).__name__}")


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:(?<!^00.{53})-.*)?\Z")


def _traceparent(name: str, value: Any) -> None:
    _must_be(str, "a str")(name, value)
    if not _TRACEPARENT.match(value):
        raise ValueError(
            f"{name} must be a traceparent of W3C Trace Context, such as"
            f' "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", not {value[:100]!r}'
        )


def _now_ms(name: str, value: Any) -> None:
    _must_be(int, "an int: milliseconds since 1970")(name, value)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} must be an int of 64 bits: milliseconds since 1970, as in int(time.time() * 1000)")


_KINDS: dict[str, Callable[[str, Any], None]] = {
    "data": _must_be(
        Mapping, 'a dict of values by name, as in data={"orders": [...]}, of which the program reads each as data/NAME'
    ),
    "limits": _must_be(Limits, "Limits(...)"),
    "tenant": _must_be(str, "a str"),
    "run_id": _must_be(str, "a str"),
    "signature": _must_be(str, 'a str, such as "{total :float}"'),
    "memory": _must_be(str, 'a str: outcome.memory of an earlier run, or "{}"'),
    "traceparent": _traceparent,
    "domain": _must_be(str, "a str"),
    "now_ms": _now_ms,
    "setup": _programs,
    "on_print": _callable,
    "recorder": _callable,
}


def _above_the_ceiling(asked: Limits, most: Mapping[str, int]) -> str:
    texts = []
    for name, amount in most.items():
        name, factor = _named(name)
        shown = amount // factor if amount % factor == 0 else amount / factor
        texts.append(f"{name} is {getattr(asked, name)}, and the ceiling of the engine is {shown}")
    return "; ".join(texts) + "; ask for less, or create the engine with a higher ceiling: Engine(ceiling=Limits(...))"


async def _in_thread(work: Callable[[], Suspended | Outcome], options: dict[str, Any]) -> Suspended | Outcome:
    """Does work in a thread. If the task is cancelled, however often, the run ends, and the task when it has."""
    cancellation = options["cancellation"] = Cancellation()
    done = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        cancellation.cancel()
        await ended(done)
        raise


def _only_a_program(program: object, given: Mapping[str, Any]) -> None:
    if not isinstance(program, str):
        raise TypeError(f"a program is a str, not {type(program).__name__}")
    for name in given:
        why = (
            f"give {name} to the session, for all turns: engine.session({name}=...)"
            if name in ("data", "data_sets", "limits", "tenant", "setup", "on_print")
            else "run the program with engine.run(...)"
        )
        raise TypeError(f"a turn of a session has no {name}; {why}")


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_torn(record: bytes | str) -> bool:
    """Returns whether a record that is not empty ends in the middle of a line."""
    return bool(record) and not (record.endswith("\n") if isinstance(record, str) else bytes(record).endswith(b"\n"))


def _template(template: str | os.PathLike[str] | None) -> str | None:
    return os.fspath(template) if template is not None else _ptcl.find()
