"""Compares runs of ptc-lisp, pydantic-monty and CPython's exec, by turns in one process.

    python benches/python/compare.py [ROUNDS]

Each workload runs once in every engine, then again, and so on; the figure of an engine is the median of its rounds. The
programs compute the same result, which is checked. Prints a table in microseconds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ptc_lisp

try:
    import pydantic_monty
except ImportError:
    pydantic_monty = None

ORDERS = [
    {"id": n, "customer": f"c{n % 7}", "total": n * 1.5, "status": "paid" if n % 3 else "open", "lines": [n, n + 1]}
    for n in range(100)
]
ROWS = [{"id": n, "name": f"name {n}", "price": n * 0.5, "tags": ["a", "b"], "note": "x" * 40} for n in range(9_000)]


def price(sku: str) -> float:
    return 2.0


async def price_async(sku: str) -> float:
    return 2.0


# Name, program, the same in Python (an expression or statements that end in one), data, result.
WORKLOADS: list[tuple[str, str, str, dict[str, Any], Any]] = [
    ("a number", "(+ 1 2)", "1 + 2", {}, 3),
    (
        "total of the paid orders",
        '(sum-by :total (filter #(= "paid" (:status %)) data/orders))',
        'sum([o["total"] for o in orders if o["status"] == "paid"])',
        {"orders": ORDERS},
        sum(order["total"] for order in ORDERS if order["status"] == "paid"),
    ),
    (
        "totals by customer",
        "(update-vals (group-by :customer data/orders) #(sum-by :total %))",
        'r = {}\nfor o in orders:\n    r[o["customer"]] = r.get(o["customer"], 0) + o["total"]\nr',
        {"orders": ORDERS},
        {f"c{c}": sum(order["total"] for order in ORDERS if order["customer"] == f"c{c}") for c in range(7)},
    ),
    (
        "the largest three",
        "(mapv :id (take 3 (sort-by :total > data/orders)))",
        '[o["id"] for o in sorted(orders, key=lambda o: -o["total"])[:3]]',
        {"orders": ORDERS},
        [99, 98, 97],
    ),
    ("a loop of 500", "(loop [i 0 s 0] (if (< i 500) (recur (inc i) (+ s i)) s))", "s = 0\nfor i in range(500):\n    s += i\ns", {}, 124_750),
]
CALL = ("a tool call", '(tool/price {:sku "a"})', "price('a')", {}, 2.0)
TEN = ("10 tool calls", '(sum (map #(tool/price {:sku (str %)}) (range 10)))', "sum([price(str(i)) for i in range(10)])", {}, 20.0)


def compiled(source: str) -> tuple[Any, Any]:
    *statements, last = source.split("\n")
    return compile("\n".join(statements), "program", "exec"), compile(last, "program", "eval")


def by_exec(source: str, data: dict[str, Any]) -> Any:
    names: dict[str, Any] = {"price": price, **data}
    statements, last = compiled(source)
    exec(statements, names)
    return eval(last, names)


def engines(isolated: bool) -> dict[str, Callable[[str, str, dict[str, Any]], Any]]:
    engine = ptc_lisp.Engine(tools=[price])
    loop = asyncio.new_event_loop()
    run_async = engine.run_async
    made: dict[str, Callable[[str, str, dict[str, Any]], Any]] = {
        "ptc-lisp": lambda program, python, data: engine.run(program, data=data).value,
        "ptc-lisp, async": lambda program, python, data: loop.run_until_complete(run_async(program, data=data)).value,
        "exec": lambda program, python, data: by_exec(python, data),
    }
    if isolated:
        apart = ptc_lisp.Engine(tools=[price], isolation="process")
        made["ptc-lisp, process"] = lambda program, python, data: apart.run(program, data=data).value
    if pydantic_monty is not None:
        pool = pydantic_monty.Monty()
        pool.__enter__()

        def monty(program: str, python: str, data: dict[str, Any]) -> Any:
            with pool.checkout() as session:
                return session.feed_run(python, inputs=data, external_lookup={"price": price})

        made["monty"] = monty
    return made


def measure(call: Callable[[], Any], expected: Any) -> float:
    started = time.perf_counter_ns()
    result = call()
    took = time.perf_counter_ns() - started
    assert result == expected, (result, expected)
    return took / 1_000


def table(rounds: int) -> None:
    made = engines("--process" in sys.argv)
    print(f"| us, median of {rounds} | " + " | ".join(made) + " |")
    print("|---" * (len(made) + 1) + "|")
    for name, program, python, data, expected in [*WORKLOADS, CALL, TEN]:
        taken: dict[str, list[float]] = {engine: [] for engine in made}
        for _ in range(rounds):
            for engine, run in made.items():
                taken[engine].append(measure(lambda: run(program, python, data), expected))
        print(f"| {name} | " + " | ".join(f"{statistics.median(times):.1f}" for times in taken.values()) + " |")


def others(rounds: int) -> None:
    def median(call: Callable[[], Any], times: int = rounds) -> float:
        taken = []
        for _ in range(times):
            started = time.perf_counter_ns()
            call()
            taken.append((time.perf_counter_ns() - started) / 1_000)
        return statistics.median(taken)

    engine = ptc_lisp.Engine(tools=[price, ptc_lisp.Tool.external("ask")])
    with_async = ptc_lisp.Engine(tools=[ptc_lisp.tool(name="price")(price_async)])
    loop = asyncio.new_event_loop()
    call, ten = CALL[1], '(sum (pmap #(tool/price {:sku (str %)}) (range 10)))'
    run = with_async.run_async
    suspended = engine.start("(tool/ask {})")
    assert isinstance(suspended, ptc_lisp.Suspended)

    def resumed() -> None:
        assert engine.resume(bytes(engine.start("(tool/ask {})").record)).reply("1", 5).value == 5

    print("\n| other | us |\n|---|---|")
    for name, measured in [
        ("an async tool call, on a loop", lambda: loop.run_until_complete(run(call))),
        ("10 async tool calls in parallel", lambda: loop.run_until_complete(run(ten))),
        ("start, store, resume, reply", resumed),
        ("building an engine with a tool", lambda: ptc_lisp.Engine(tools=[price])),
        ("importing 1 MB of rows", lambda: engine.import_data("rows", ROWS)),
    ]:
        print(f"| {name} | {median(measured):.1f} |")


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument.isdigit()]
    table(int(given[0]) if given else 200)
    others(int(given[0]) // 4 if given else 50)
