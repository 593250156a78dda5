"""Compares ptc-lisp with pydantic-monty and with CPython's exec, by turns in one process.

    python benches/python/compare.py [ROUNDS] [--profile]

Needs the package as .ci/python --wheel builds it (release, with ptcl), and pydantic-monty. Every program and every operation runs once
in each engine, then again, and so on; a figure is the median of the rounds. Results are checked against each other. Prints tables in
microseconds for benches/RESULTS.md. `--profile` says where the time of a warm run goes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import ptc_lisp
import pydantic_monty
from programs import DATA, PROGRAMS

Run = Callable[[str, str, dict[str, Any]], Any]

ROWS = [{"id": n, "name": f"name {n}", "price": n * 0.5, "tags": ["a", "b"], "note": "x" * 40} for n in range(9_000)]


def price(sku: str) -> float:
    return 2.0


async def price_async(sku: str) -> float:
    return 2.0


def by_exec(source: str, data: dict[str, Any]) -> Any:
    *statements, last = source.split("\n")
    names: dict[str, Any] = {"price": price, **data}
    exec(compile("\n".join(statements), "program", "exec"), names)
    return eval(compile(last, "program", "eval"), names)


class Engines:
    """The engines, each with a tool, and the loop of their async runs."""

    def __init__(self) -> None:
        self.engine = ptc_lisp.Engine(tools=[price])
        self.apart = ptc_lisp.Engine(tools=[price], isolation="process")
        self.with_async = ptc_lisp.Engine(tools=[ptc_lisp.tool(name="price")(price_async)])
        self.apart_async = ptc_lisp.Engine(tools=[ptc_lisp.tool(name="price")(price_async)], isolation="process")
        self.pool = pydantic_monty.Monty()
        self.pool.__enter__()
        self.loop = asyncio.new_event_loop()

    def monty(self, python: str, data: dict[str, Any]) -> Any:
        with self.pool.checkout() as session:
            return session.feed_run(python, inputs=data, external_lookup={"price": price})

    def runs(self) -> dict[str, Run]:
        wait = self.loop.run_until_complete
        return {
            "in-process": lambda lisp, python, data: self.engine.run(lisp, data=data).value,
            "in-process, async": lambda lisp, python, data: wait(self.engine.run_async(lisp, data=data)).value,
            "domain": lambda lisp, python, data: self.apart.run(lisp, data=data, domain="bench").value,
            "process": lambda lisp, python, data: self.apart.run(lisp, data=data).value,
            "Monty": lambda lisp, python, data: self.monty(python, data),
            "exec": lambda lisp, python, data: by_exec(python, data),
        }


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - started) / 1_000, result


def by_turns(calls: dict[str, Callable[[], Any]], rounds: int, expected: Any = None) -> dict[str, float]:
    """Returns the median of each call in microseconds."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            took, result = timed(call)
            assert expected is None or result == expected, (name, result, expected)
            taken[name].append(took)
    return {name: statistics.median(times) for name, times in taken.items()}


def row(name: str, figures: dict[str, float], columns: list[str]) -> None:
    cells = [f"{figures[column]:.1f}" if column in figures else "" for column in columns]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def head(first: str, columns: list[str]) -> None:
    print(f"\n| {first} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|", flush=True)


def programs(engines: Engines, rounds: int) -> None:
    """One warm run of each program: the quartiles of the programs' medians, and of their ratios to Monty."""
    runs = engines.runs()
    medians: dict[str, list[float]] = {name: [] for name in runs}
    for needs, lisp, python in PROGRAMS:
        data = {name: DATA[name] for name in needs.split()}
        calls = {name: lambda run=run: run(lisp, python, data) for name, run in runs.items()}
        for name, figure in by_turns(calls, rounds, by_exec(python, data)).items():
            medians[name].append(figure)
    head(f"60 programs, median of {rounds} runs each, us", list(runs))
    for name, pick in (("fastest", min), ("median", statistics.median), ("slowest", max), ("sum", sum)):
        row(name, {engine: pick(times) for engine, times in medians.items()}, list(runs))
    print("\n| Monty's time / ours, over the 60 programs | least | median | most |\n|---|---|---|---|")
    for engine in ("in-process", "in-process, async", "domain", "process"):
        ratios = [theirs / ours for theirs, ours in zip(medians["Monty"], medians[engine])]
        print(f"| {engine} | {min(ratios):.2f} | {statistics.median(ratios):.2f} | {max(ratios):.2f} |", flush=True)


async def opened(pool: Any) -> Any:
    return await pool.__aenter__()


async def closed(pool: Any) -> None:
    await pool.__aexit__(None, None, None)


async def monty_parallel(pool: Any) -> Any:
    source = "import asyncio\nasync def main():\n    return sum(await asyncio.gather(*[price(str(i)) for i in range(10)]))\nawait main()"
    async with pool.checkout() as session:
        return await session.feed_run(source, external_lookup={"price": price_async})


def operations(engines: Engines, rounds: int) -> None:
    """Calls of tools, and suspending and resuming: the difference to a run without calls is what a call takes."""
    runs, wait = engines.runs(), engines.loop.run_until_complete
    columns = ["in-process", "domain", "process", "Monty"]
    head(f"a run with.., median of {rounds}, us", columns)
    workloads = [
        ("no call", "2.0", "2.0", 2.0),
        ("1 call", '(tool/price {:sku "a"})', "price('a')", 2.0),
        ("11 calls", '(sum (map #(tool/price {:sku (str %)}) (range 11)))', "sum([price(str(i)) for i in range(11)])", 22.0),
    ]
    for name, lisp, python, expected in workloads:
        calls = {column: lambda run=runs[column]: run(lisp, python, {}) for column in columns}
        row(name, by_turns(calls, rounds, expected), columns)
    one, ten = '(tool/price {:sku "a"})', '(sum (pmap #(tool/price {:sku (str %)}) (range 10)))'
    pool = wait(opened(pydantic_monty.AsyncMonty()))
    for name, lisp, expected in (("1 async call, on a loop", one, 2.0), ("10 async calls in parallel", ten, 20.0)):
        calls = {
            "in-process": lambda: wait(engines.with_async.run_async(lisp)).value,
            "domain": lambda: wait(engines.apart_async.run_async(lisp, domain="bench")).value,
            "process": lambda: wait(engines.apart_async.run_async(lisp)).value,
        }
        if lisp is ten:
            calls["Monty"] = lambda: wait(monty_parallel(pool))
        row(name, by_turns(calls, rounds, expected), columns)
    wait(closed(pool))
    asking = ptc_lisp.Engine(tools=[ptc_lisp.Tool.external("ask")])

    def ours() -> Any:
        stored = bytes(asking.start("(inc (tool/ask {}))").record)
        run = asking.resume(stored)
        return run.reply(run.calls[0], 4).value

    def theirs() -> Any:
        with engines.pool.checkout() as session:
            stored = session.feed_start("ask() + 1").dump()
        with engines.pool.checkout() as session:
            return session.load_snapshot(stored).resume({"return_value": 4}).output

    row("start, store, resume, reply", by_turns({"in-process": ours, "Monty": theirs}, rounds, 5), columns)
    calls = {"in-process": lambda: engines.engine.import_data("rows", ROWS), "Monty": lambda: engines.monty("len(rows)", {"rows": ROWS})}
    row("importing 1 MB of rows (Monty: as an input)", by_turns(calls, max(rounds // 20, 3)), columns)


def memory(name: str, source: str) -> None:
    """Prints the memory per idle engine: 100 of them in a new process, and its children, after each has run a program."""
    script = f"""
import os, gc
def memory():
    total = 0
    for pid in [os.getpid(), *children(os.getpid())]:
        for line in open(f"/proc/{{pid}}/smaps_rollup"):
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total
def children(pid):
    found = []
    for task in os.listdir(f"/proc/{{pid}}/task"):
        for child in open(f"/proc/{{pid}}/task/{{task}}/children").read().split():
            found += [int(child), *children(int(child))]
    return found
{source}
first = make()
before = memory()
kept = [make() for _ in range(COUNT)]
gc.collect()
print((memory() - before) / COUNT)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(f"| {name} | {float(done.stdout):.1f} |", flush=True)


MEMORY = {
    "ptc-lisp, an engine in-process": "import ptc_lisp\nCOUNT=2000\ndef make():\n    e = ptc_lisp.Engine(); e.run('(+ 1 2)'); return e",
    "ptc-lisp, an engine with process isolation": "import ptc_lisp\nCOUNT=20\ndef make():\n    e = ptc_lisp.Engine(isolation='process'); e.run('(+ 1 2)'); return e",
    "ptc-lisp, an open session in-process": "import ptc_lisp\nengine = ptc_lisp.Engine()\nCOUNT=2000\ndef make():\n    s = engine.session(); s.run('(def a 1)'); return s",
    "ptc-lisp, an open session, process": "import ptc_lisp\nengine = ptc_lisp.Engine(isolation='process')\nCOUNT=20\ndef make():\n    s = engine.session(); s.run('(def a 1)'); return s",
    "Monty, a pool": "import pydantic_monty\nCOUNT=20\ndef make():\n    p = pydantic_monty.Monty(); p.__enter__()\n    with p.checkout() as s: s.feed_run('1 + 2')\n    return p",
}


def starting() -> None:
    """Prints the size of the installed packages, and how long importing and the first run take in a new process."""
    print("\n| | ptc-lisp | pydantic-monty |\n|---|---|---|")
    sizes = []
    for packages in (["ptc_lisp"], ["pydantic_monty", "pydantic_monty_client", "pydantic_monty_runtime"]):
        code = "import importlib.util, sys, json\nprint(json.dumps([list(importlib.util.find_spec(n).submodule_search_locations)[0] for n in sys.argv[1:] if importlib.util.find_spec(n)]))"
        found = eval(subprocess.run([sys.executable, "-c", code, *packages], capture_output=True, text=True, cwd="/").stdout)
        sizes.append(sum(file.stat().st_size for folder in found for file in pathlib.Path(folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts))
    # The program of Monty's workers is beside the interpreter.
    worker = pathlib.Path(sys.prefix, "bin", "monty")
    sizes[1] += worker.stat().st_size if worker.exists() else 0
    print("| installed, MB | " + " | ".join(f"{size / 1e6:.1f}" for size in sizes) + " |")
    for name, ours, theirs in (
        ("import", "import ptc_lisp", "import pydantic_monty"),
        (
            "import and first run",
            "import ptc_lisp; ptc_lisp.Engine().run('(+ 1 2)')",
            "import pydantic_monty\nwith pydantic_monty.Monty() as p:\n    with p.checkout() as s: s.feed_run('1 + 2')",
        ),
    ):
        calls = {code: lambda code=code: subprocess.run([sys.executable, "-c", code], check=True, cwd="/") for code in ("", ours, theirs)}
        medians = by_turns(calls, 15)
        print(f"| {name}, ms, without Python's own start | " + " | ".join(f"{(medians[code] - medians['']) / 1_000:.1f}" for code in (ours, theirs)) + " |")


def profile(engines: Engines, rounds: int) -> None:
    """Says where the time of a warm run goes: what the run itself reports, and what is around it."""
    core = engines.engine._core
    head(f"where a warm run goes, median of {rounds}, us", ["whole run", "of it in the engine", "importing data", "options and outcome"])
    columns = ["whole run", "of it in the engine", "importing data", "options and outcome"]
    for name, lisp, data in (
        ("(+ 1 2), no data", "(+ 1 2)", {}),
        ("sum of 200 numbers", "(sum data/numbers)", {"numbers": DATA["numbers"]}),
        ("100 orders, sum of the paid ones", PROGRAMS[35][1], {"orders": DATA["orders"]}),
        ("100 orders, program (+ 1 2)", "(+ 1 2)", {"orders": DATA["orders"]}),
    ):
        whole, inside = [], []
        for _ in range(rounds):
            took, outcome = timed(lambda: engines.engine.run(lisp, data=data))
            whole.append(took)
            inside.append(outcome.usage.duration_us)
        imported = by_turns({"": lambda: [core.import_data(key, value) for key, value in data.items()]}, rounds)[""]
        taken, engine = statistics.median(whole), statistics.median(inside)
        row(name, {"whole run": taken, "of it in the engine": engine, "importing data": imported, "options and outcome": taken - engine}, columns)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument.isdigit()]
    rounds = int(given[0]) if given else 100
    engines = Engines()
    gc.disable()
    if "--profile" in sys.argv:
        profile(engines, rounds)
        sys.exit()
    print(f"ptc-lisp {ptc_lisp.__version__}, pydantic-monty {pydantic_monty.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    programs(engines, rounds)
    operations(engines, rounds)
    print("\n| memory per idle engine, beyond the first, with its processes | kB |\n|---|---|")
    for name, source in MEMORY.items():
        memory(name, source)
    starting()
