"""The tasks file, and the comparison of values."""

from __future__ import annotations

import json
import pathlib
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
TASKS = HERE / "tasks.jsonl"
TOLERANCE = 1e-9


def load() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TASKS.read_text(encoding="utf-8").splitlines() if line.strip()]


def save(tasks: list[dict[str, Any]]) -> None:
    TASKS.write_text("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks), encoding="utf-8")


def select(tasks: list[dict[str, Any]], ids: list[str]) -> list[dict[str, Any]]:
    """Returns the tasks with these ids; all if there are none."""
    unknown = set(ids) - {task["id"] for task in tasks}
    if unknown:
        raise SystemExit(f"unknown task: {', '.join(sorted(unknown))}")
    return [task for task in tasks if not ids or task["id"] in ids]


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "..."


def difference(expected: Any, got: Any, where: str = "answer") -> str | None:
    """Returns where two JSON values differ and how, or None. Numbers may differ by 1e-9, absolute or relative; 1 equals 1.0."""
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in (expected, got)]
    if all(numbers):
        close = abs(expected - got) <= TOLERANCE * max(1, abs(expected))
        return None if close else f"{where}: expected {expected}, got {got}"
    if isinstance(expected, dict) and isinstance(got, dict):
        if missing := sorted(expected.keys() - got.keys()):
            return f"{where}: missing {', '.join(missing)}"
        if more := sorted(got.keys() - expected.keys()):
            return f"{where}: unexpected {', '.join(more)}"
        return next((text for key in expected if (text := difference(expected[key], got[key], f"{where}.{key}"))), None)
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{where}: expected {len(expected)} items, got {len(got)}"
        return next((text for n in range(len(expected)) if (text := difference(expected[n], got[n], f"{where}[{n}]"))), None)
    if type(expected) is type(got) and expected == got:
        return None
    return f"{where}: expected {short(expected)}, got {short(got)}"
