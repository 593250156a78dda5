"""A workload in CPython: prints the median of its times in microseconds, a tab, and the answer (benches/src/peers/process.rs)."""

import json
import sys
from time import thread_time_ns as now

kind, program, orders_file, text_file = sys.argv[1:5]
warm, measure, fewest, most = map(int, sys.argv[5:])


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


source, orders_json = read(program), read(orders_file)
names = {"orders": json.loads(orders_json), "text": read(text_file)}
compiled = compile(source, program, "exec")


def run(code, orders):
    """Runs a program in a module of its own; its answer is what it calls so."""
    module = dict(names, orders=orders)
    exec(code, module)
    return module["answer"]


works = {
    "compile": lambda: compile(source, program, "exec") and "",
    "inside": lambda: run(compile(source, program, "exec"), names["orders"]),
    "bring": lambda: run(compile(source, program, "exec"), json.loads(orders_json)),
    "compiled-inside": lambda: run(compiled, names["orders"]),
    "compiled-bring": lambda: run(compiled, json.loads(orders_json)),
    "import": lambda: json.loads(orders_json) and "",
    "long": lambda: run(compiled, names["orders"]),
}

work = works[kind]
begun = now()
answer = work()
if now() - begun > 1_000_000_000:
    fewest = 1
while now() - begun < warm * 1_000_000:
    work()
times = []
spent = 0
while len(times) < fewest or (spent < measure * 1_000_000 and len(times) < most):
    start = now()
    work()
    time = now() - start
    spent += time
    times.append(time)
times.sort()
print(times[len(times) // 2] / 1_000, answer, sep="\t")
