"""The native half of the package."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, final

__version__: str

@final
class Position:
    """A range of the source in lines and columns, from 1. Columns count characters."""

    @property
    def line(self) -> int:
        """The line where it starts."""
    @property
    def column(self) -> int:
        """The column where it starts."""
    @property
    def end_line(self) -> int:
        """The line where it ends."""
    @property
    def end_column(self) -> int:
        """The column after its last character."""

@final
class Error:
    """What was wrong with a run."""

    @property
    def reason(self) -> str:
        """The stable name of the error, such as `type_error`, or `fail` for a program that ended with `(fail v)`."""
    @property
    def message(self) -> str:
        """What happened, with the expected and the actual value."""
    @property
    def hint(self) -> str | None:
        """One next step."""
    @property
    def phase(self) -> Literal["compile", "setup", "eval", "result"] | None:
        """When it happened."""
    @property
    def position(self) -> Position | None:
        """The position in the program."""
    @property
    def locals(self) -> dict[str, str]:
        """The values of local names where it happened, as text."""
    @property
    def details(self) -> dict[str, int | str]:
        """Figures and names, such as `limit_bytes`."""
    def report(self) -> str:
        """Returns the error as text for a model that repairs the program: message, source line with a mark, hint, local
        names and the call chain."""

@final
class Usage:
    """The figures of a run."""

    @property
    def fuel(self) -> int:
        """Units of work, counted the same on every machine."""
    @property
    def compute_us(self) -> int:
        """Wall time without the time in tools, in microseconds."""
    @property
    def duration_us(self) -> int:
        """Wall time, in microseconds."""
    @property
    def baseline_bytes(self) -> int | None:
        """Bytes of the data, the memory and the programs."""
    @property
    def heap_peak_bytes(self) -> int:
        """Peak bytes that the program held besides them."""
    @property
    def heap_live_bytes(self) -> int | None:
        """Bytes that the program held at its end, if they were measured."""
    @property
    def allocated_bytes(self) -> int:
        """Bytes that the program allocated in total."""
    @property
    def compactions(self) -> int:
        """Number of heap compactions."""
    @property
    def tool_calls(self) -> int:
        """Number of tool calls, without cached ones."""
    @property
    def workers_peak(self) -> int:
        """Peak number of parallel workers."""
    @property
    def output_bytes(self) -> int:
        """Bytes of the prints and of the result as JSON."""
    @property
    def cpu_us(self) -> int | None:
        """Processor time of the run's process, in microseconds. Only with process isolation."""
    @property
    def rss_peak_bytes(self) -> int | None:
        """Peak memory of the run's process, in bytes. Only with process isolation."""
    def to_dict(self) -> dict[str, int | None]:
        """Returns all figures."""

@final
class LedgerEntry:
    """A tool call of a run, as the host saw it."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
    @property
    def arguments(self) -> Any:
        """The arguments; the beginning of their JSON text if they are longer than 2,000 bytes."""
    @property
    def result(self) -> Any:
        """The result; the beginning of its JSON text if it is longer than 2,000 bytes."""
    @property
    def status(self) -> Literal["ok", "error", "cached", "unknown"]:
        """How the call ended."""
    @property
    def refused(self) -> bool:
        """Whether the tool was not called. `error` says why."""
    @property
    def error(self) -> str | None:
        """The error message, if the call failed."""
    @property
    def duration_us(self) -> int:
        """The duration of the call, in microseconds."""
    @property
    def worker(self) -> list[int]:
        """The path of worker indexes to the caller; empty for the main program."""

@final
class Warning:
    """A probable mistake in a program, found before or during its run."""

    @property
    def kind(self) -> str:
        """The stable name of the kind, such as `unknown_key`."""
    @property
    def message(self) -> str:
        """What happened."""
    @property
    def repair(self) -> str | None:
        """One next step."""
    @property
    def position(self) -> Position | None:
        """The position in the program."""

@final
class Outcome:
    """The outcome of a run. Every run has one, also if the program failed."""

    def report(self) -> str:
        """Returns what happened as text for the model that wrote the program: the printed lines, the value or the error, and the
        warnings with their repairs."""
    @property
    def ok(self) -> bool:
        """Whether the program ended with a value."""
    @property
    def value(self) -> Any:
        """The result; `None` if the run failed. Keywords are strings, and so are the keys of maps. NaN and infinities are
        `None`, with a warning. Times that Python's types cannot hold are text, and so are functions."""
    @property
    def failure(self) -> Any:
        """The value of a program that ended with `(fail value)`."""
    @property
    def error(self) -> Error | None:
        """What was wrong, unless the run is `ok`."""
    @property
    def verdict(self) -> Literal["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"]:
        """How the run ended, in one word. It is `ok` also for `(fail value)`: the program ended by itself."""
    @property
    def text(self) -> str | None:
        """The result in Clojure syntax."""
    @property
    def json(self) -> str | None:
        """The result as JSON text."""
    @property
    def prints(self) -> list[str]:
        """The lines that the program printed."""
    @property
    def prints_dropped(self) -> int:
        """Number of printed lines beyond the limit, which were not kept."""
    @property
    def ledger(self) -> list[LedgerEntry]:
        """Every tool call in program order, including calls that were not made."""
    @property
    def usage(self) -> Usage:
        """The figures of the run."""
    @property
    def warnings(self) -> list[Warning]:
        """Probable mistakes in the program."""
    @property
    def run_id(self) -> str:
        """The id of the run."""
    @property
    def memory(self) -> str | None:
        """The definitions after the run as JSON text, if `memory` was given."""
    def to_json(self) -> str:
        """Returns the whole outcome as JSON text, as the service and the command line return it."""
    def raise_for_error(self) -> Outcome:
        """Returns this outcome if it is `ok`. Otherwise raises `RunError` with the report."""

@final
class DataSet:
    """Data that is imported once and shared by many runs. `Engine.import_data` makes one."""

    @property
    def name(self) -> str:
        """Its name in programs: `data/NAME`."""
    @property
    def bytes(self) -> int:
        """The bytes that the values take."""

@final
class ToolCall:
    """A call as the function of a tool sees it, in a parameter that is annotated with this class."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
    @property
    def place(self) -> str:
        """The name of the call in its run. It is the same in every attempt of a recorded run."""
    @property
    def key(self) -> str | None:
        """A unique key of the call for what the tool does, the same in every attempt; `None` if the run is not
        recorded."""
    @property
    def traceparent(self) -> str | None:
        """The trace that the run is part of."""
    @property
    def remaining(self) -> float | None:
        """How long the run may still take, in seconds; `None` is no limit."""
    @property
    def is_cancelled(self) -> bool:
        """Whether the run was cancelled."""

@final
class AskedCall:
    """A call that a policy decides on."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments."""
    @property
    def effect(self) -> Literal["read", "write", "unknown"]:
        """What the tool declared that its calls do."""
    @property
    def place(self) -> str:
        """The name of the call in its run."""
    @property
    def tenant(self) -> str | None:
        """The tenant of the run."""
    @property
    def calls(self) -> int:
        """How many calls the run has made before."""
    @property
    def calls_of_tool(self) -> int:
        """How many of them were of this tool."""

@final
class OpenCall:
    """A call of a suspended run that has not ended."""

    @property
    def name(self) -> str:
        """The name of the call in its run."""
    @property
    def tool(self) -> str:
        """The name of the tool."""
    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments."""
    @property
    def question(self) -> str | None:
        """The question of the policy, if the call needs an approval."""
    @property
    def is_unknown(self) -> bool:
        """Whether it had started when its process ended, so that it may or may not have been made."""

@final
class Record:
    """The record of a run, with which any process can continue it. `bytes(record)` is what to store."""

    def __new__(cls, content: bytes | str) -> Record:
        """Reads a record. A last line that was cut off is ignored. Raises `ValueError` for other texts."""
    def __bytes__(self) -> bytes: ...
    @property
    def run_id(self) -> str:
        """The id of the run."""
    @property
    def program(self) -> str:
        """The source of the program."""
    @property
    def answer(self) -> str | None:
        """The outcome of the run as JSON text, if it has ended: `json.loads(record.answer)`. It is not an `Outcome`."""
    @property
    def calls(self) -> list[OpenCall]:
        """The calls that have not ended."""
    def approve(self, call: OpenCall | str, arguments: Mapping[str, Any] | None = None) -> None:
        """Approves a call that has a question, with other arguments if they are given. It is made when the run is resumed.
        A call is one of `calls`, or its name."""
    def reject(self, call: OpenCall | str, reason: str) -> None:
        """Rejects a call that has a question."""
    def reply(self, call: OpenCall | str, result: Any) -> None:
        """Notes the result of a call."""
    def fail(self, call: OpenCall | str, message: str, code: str | None = None) -> None:
        """Notes that a call failed."""
    def not_made(self, call: OpenCall | str) -> None:
        """Notes that a call with an unknown result was not made. It is made when the run is resumed."""

# What follows is used by the package only.

@final
class AsyncCall:
    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    def begin(self) -> Coroutine[Any, Any, Any]: ...
    def reply(self, result: Any) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class AsyncRun:
    def poll(self) -> Outcome | None: ...
    def poll_long(self) -> Outcome | None: ...
    @property
    def is_woken(self) -> bool: ...
    @property
    def is_long(self) -> bool: ...
    def take_calls(self) -> list[AsyncCall]: ...
    def take_dropped(self) -> list[int]: ...
    def reply(self, call: AsyncCall, result: Any) -> None: ...
    def fail(self, call: AsyncCall, error: BaseException) -> None: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...

@final
class Wakeups:
    def __new__(cls) -> Wakeups: ...
    def fileno(self) -> int: ...
    def take(self) -> list[int]: ...

@final
class CoreSession:
    def begin(self) -> int: ...
    def run(self, source: str, turn: int) -> Outcome: ...
    def save(self) -> str: ...
    def memory(self) -> str: ...
    def undo(self) -> None: ...
    def fork(self) -> CoreSession: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def waiting(self) -> int: ...
    def has_call(self, call: ToolCall) -> bool: ...
    def cancel(self, turn: int | None = None) -> None: ...

@final
class Cancellation:
    def __new__(cls) -> Cancellation: ...
    def cancel(self) -> None: ...

class CoreEngine:
    def __new__(cls, setting: dict[str, Any]) -> CoreEngine: ...
    @property
    def has_async_tools(self) -> bool: ...
    def run(self, source: str, options: dict[str, Any]) -> Outcome: ...
    def begin(self, source: str, options: dict[str, Any], wakeups: Wakeups, number: int) -> AsyncRun: ...
    def start(
        self, source: str, options: dict[str, Any], recorder: Callable[[str], object] | None = None
    ) -> Outcome | Record: ...
    def resume(
        self, record: Record, options: dict[str, Any], recorder: Callable[[str], object] | None = None
    ) -> Outcome | Record: ...
    def check(self, source: str, options: dict[str, Any]) -> Outcome: ...
    def import_data(self, name: str, value: Any) -> DataSet: ...
    def limits_for(self, asked: dict[str, int]) -> dict[str, int]: ...
    def prompt(self, tenant: str | None) -> str: ...
    def signatures(self) -> list[tuple[str, str]]: ...
    def session(self, options: dict[str, Any], saved: str | None = None) -> CoreSession: ...

def close() -> None: ...
def forked() -> None: ...
def check_tool(tool: Any) -> None: ...
def to_json(object: Any, name: str) -> str: ...
def from_json(text: str) -> Any: ...
def describe(name: str) -> str | None: ...
def reworded(text: str) -> str: ...
