"""The limits of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields


_TIMES = ("timeout", "parallel_timeout")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a run. `None` keeps the default of the engine, which is on for every limit.

    As the limits of an engine they apply to every run. As the limits of a run they can only be tighter than those, unless
    the engine has a `ceiling`: a limit above it raises `ValueError`. A limit of 0 is off, except for the timeouts, `parallel_workers` and `session_undo`.
    """

    timeout: float | None = None
    """Wall time of the run, in seconds. The default is 1."""
    heap_mb: float | None = None
    """Megabytes (10^6 bytes) that the program may hold, besides its data. The default is 10. The limit of the data follows
    it: it is 4 times as much."""
    setup_heap_mb: float | None = None
    """Megabytes of the data, the memory and the compiled program. The default is 40."""
    worker_heap_mb: float | None = None
    """Megabytes that each parallel worker may hold. The default is 10."""
    fuel: int | None = None
    """Units of work, counted the same on every machine. The default is 1,000,000,000."""
    tool_calls: int | None = None
    """Tool calls of the run. The default is 10,000."""
    parallel_workers: int | None = None
    """Parallel workers at once in the whole run. The default is 8."""
    parallel_window: int | None = None
    """Workers that one `pmap` or `pcalls` runs at once. The default is 4."""
    parallel_timeout: float | None = None
    """Wall time of one `pmap` or `pcalls`, in seconds. The default is 5."""
    loop_iterations: int | None = None
    """Iterations of one `loop`. The default is 1,000."""
    program_bytes: int | None = None
    """Bytes of the source. The default is 1,000,000."""
    symbols: int | None = None
    """Distinct symbols and keywords of the source. The default is 10,000."""
    print_chars: int | None = None
    """Characters of a printed line. The default is 2,000."""
    prints_bytes: int | None = None
    """Bytes of all printed lines. The default is 1,000,000."""
    result_bytes: int | None = None
    """Bytes of the result as JSON, and of the arguments of one tool call. The default is 4,000,000."""
    session_definitions: int | None = None
    """Definitions of a session. The default is 1,000."""
    session_programs: int | None = None
    """Programs that a session keeps for its functions. The default is 1,000."""
    session_program_bytes: int | None = None
    """Bytes of these programs. The default is 10,000,000."""
    session_bytes: int | None = None
    """Bytes of a saved session. The default is 10,000,000."""
    session_undo: int | None = None
    """Turns of a session that can be undone. The default is 10."""

    def _by_name(self) -> dict[str, int]:
        """Returns the limits that are set, as the engine names and counts them."""
        given: dict[str, int] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**63 / 1e6:
                raise ValueError(f"{field.name} must be a number from 0 to {2**63 / 1e6:.0f}, not {value!r}")
            name, factor = field.name, 1
            if name in _TIMES:
                name, factor = f"{name}_ms", 1_000
            elif name.endswith("_mb"):
                name, factor = f"{name[:-3]}_bytes", 1_000_000
            elif not isinstance(value, int):
                raise ValueError(f"{field.name} must be a whole number, not {value!r}")
            # A timeout below a millisecond is not no time at all.
            given[name] = max(int(value * factor), 1 if value > 0 else 0)
        return given


def _named(name: str) -> tuple[str, int]:
    """Returns the field of a limit that the engine names so, and the engine's units in one of the field's."""
    if name.removesuffix("_ms") in _TIMES:
        return name.removesuffix("_ms"), 1_000
    field = f"{name.removesuffix('_bytes')}_mb"
    return (field, 1_000_000) if field in Limits.__dataclass_fields__ else (name, 1)
