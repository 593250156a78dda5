"""Runs on the thread of their caller."""

import os
import pickle
import pydoc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import get_args

import pytest

from ptc_lisp import Engine, Limits, RunError, _ptcl, allow, deny, tool
from ptc_lisp.engine import Check


def test_an_outcome_has_everything():
    engine = Engine(tools=[tool(name="half")(lambda n: n / 2)])
    outcome = engine.run('(println "hello") (tool/half {:n data/n})', data={"n": 5}, run_id="order-7")
    assert outcome.ok and outcome.value == 2.5 and outcome.error is None and outcome.verdict == "ok"
    assert outcome.prints == ["hello"] and outcome.run_id == "order-7" and outcome.text == "2.5"
    [call] = outcome.ledger
    assert (call.tool, call.arguments, call.result, call.status, call.error) == ("half", {"n": 5}, 2.5, "ok", None)
    assert outcome.usage.tool_calls == 1 and outcome.usage.fuel > 0 and outcome.usage.to_dict()["tool_calls"] == 1
    assert outcome.raise_for_error() is outcome and '"order-7"' in outcome.to_json()


def test_an_error_is_a_report_for_a_model():
    outcome = Engine().run("(let [price 5]\n  (+ price nil))")
    error = outcome.error
    assert not outcome.ok and outcome.value is None and outcome.verdict == "error"
    assert (error.reason, error.position.line, error.position.column) == ("type_error", 2, 3)
    assert error.locals == {"price": "5"} and "default" in error.hint and error.phase == "eval"
    assert error.report().splitlines()[1:3] == ["2 |   (+ price nil))", "  |   ^^^^^^^^^^^^^"]
    with pytest.raises(RunError, match="expects numbers") as raised:
        outcome.raise_for_error()
    assert raised.value.outcome is outcome


def test_an_outcome_has_a_report_with_its_warnings():
    mistaken = Engine().run('(println "seen") (sum (map :totl data/orders))', data={"orders": [{"total": 9}]})
    assert mistaken.ok and mistaken.value == 0
    report = mistaken.report().splitlines()
    assert report[:2] == ["seen", "0"] and report[2].startswith("warning: ") and report[2].endswith("write :total")
    failed = Engine().run("(println 1) (+ 1 nil)")
    assert failed.report() == "1\n" + failed.error.report() and "(fail v): 5" in Engine().run("(fail 5)").report()
    # In the words of this package.
    limited = Engine(limits=Limits(heap_mb=1)).run("(vec (range 1000000))")
    assert "raise the limit heap_mb" in limited.report()


def test_a_warning_shows_its_repair():
    [warning] = Engine().run("(sum (map :totl data/orders))", data={"orders": [{"total": 9}]}).warnings
    assert repr(warning) == "<Warning unknown_key: no map here has the key :totl; they have :total; write :total>"


def test_help_lists_the_values_of_check():
    assert all(value in pydoc.render_doc(Engine) for value in get_args(Check))
    with pytest.raises(ValueError, match="check must be"):
        Engine(check="all")


def test_fail_is_an_error_with_its_value():
    outcome = Engine().run("(fail {:why 1})")
    assert not outcome.ok and outcome.failure == {"why": 1} and outcome.value is None
    assert outcome.error.reason == "fail" and "(fail {:why 1})" in outcome.error.report()


def test_a_result_without_a_plain_form_is_an_error():
    outcome = Engine().run('{:a 1 "a" 2}')
    assert not outcome.ok and outcome.value is None and "both become" in outcome.error.message


@pytest.mark.parametrize(
    ("program", "limits", "verdict", "reason"),
    [
        ("(reduce + (iterate inc 0))", Limits(timeout=0.05), "timeout", "timeout"),
        ("(reduce + (range 100000))", Limits(fuel=1000), "timeout", "fuel_exhausted"),
        ("(count (vec (range 1000000)))", Limits(heap_mb=1), "out_of_memory", "memory_exceeded"),
        ("(range 1000000)", Limits(result_bytes=1000, heap_mb=100), "error", "result_limit_exceeded"),
        ("(nope)", None, "error", "unbound_var"),
        ("(", None, "error", "parse_error"),
    ],
)
def test_limits_and_mistakes(program, limits, verdict, reason):
    outcome = Engine(limits=Limits(heap_mb=200)).run(program, limits=limits)
    assert (outcome.verdict, outcome.error.reason) == (verdict, reason)


def test_limits_only_get_tighter_without_a_ceiling():
    many = "(count (vec (range 300000)))"
    tight = Limits(heap_mb=1)
    with pytest.raises(ValueError, match="heap_mb is 50, and the ceiling of the engine is 1"):
        Engine(limits=tight).run(many, limits=Limits(heap_mb=50))
    assert Engine(limits=tight).run(many).error.reason == "memory_exceeded"
    assert Engine(limits=tight, ceiling=Limits(heap_mb=50)).run(many, limits=Limits(heap_mb=50)).value == 300_000


@pytest.mark.parametrize("limits", [{"timeout": -1}, {"fuel": 1.5}, {"timeout": "1"}, {"heap_mb": float("nan")}])
def test_wrong_limits_are_misuse(limits):
    with pytest.raises(ValueError, match="must be"):
        Engine(limits=Limits(**limits))


def test_misuse_is_an_exception():
    with pytest.raises(ValueError, match='"read", "write" or "unknown"'):
        Engine(tools=[tool(name="t", effect="rad")(lambda: 1)])
    with pytest.raises(ValueError, match="isolation must be"):
        Engine(isolation="thread")
    with pytest.raises(ValueError, match="check must be"):
        Engine(check="no")
    twice = [tool(name="a")(lambda: 1), tool(name="a")(lambda: 2)]
    with pytest.raises(ValueError, match="a"):
        Engine(tools=twice)


def test_checks_before_a_run():
    engine = Engine()
    checked = engine.check("(sum (map :totl data/orders))", data={"orders": [{"total": 9}]})
    assert checked.ok and [warning.repair for warning in checked.warnings] == ["write :total"]
    assert engine.check("(tool/nope {})").error.reason == "unknown_tool"
    refusing = Engine(tools=[tool(name="pay")(lambda amount: True)], check="refuse")
    assert refusing.run("(tool/pay {:amuont 5})").error.reason == "check_failed"


def test_prints_arrive_as_they_are_printed():
    lines = []
    outcome = Engine().run('(println 1) (println "b")', on_print=lines.append)
    assert lines == outcome.prints == ["1", "b"]


def test_memory_signature_setup_and_clock():
    engine = Engine()
    first = engine.run("(def ids [1 2])", memory="{}")
    assert engine.run("(twice (count ids))", memory=first.memory, setup=["(defn twice [x] (* 2 x))"]).value == 4
    assert engine.run('{"total" "x"}', signature="{total :float}").error.reason == "validation_error"
    assert engine.run("(System/currentTimeMillis)", now_ms=5).value == 5
    assert engine.run("data/nope", strict_data=True).ok is False


def test_a_policy_decides():
    asked = []

    def policy(call):
        asked.append((call.tool, call.arguments, call.effect, call.tenant, call.calls))
        if call.arguments["n"] > 10:
            return deny("too much")
        return allow({"n": 1}) if call.arguments["n"] == 7 else allow()

    engine = Engine(tools=[tool(name="take", effect="write")(lambda n: n)], policy=policy)
    assert engine.run("[(tool/take {:n 5}) (tool/take {:n 7})]", tenant="acme").value == [5, 1]
    assert asked == [("take", {"n": 5}, "write", "acme", 0), ("take", {"n": 7}, "write", "acme", 1)]
    denied = engine.run("(try (tool/take {:n 50}) (catch Exception e 0))")
    assert denied.error.reason == "tool_denied" and "too much" in denied.error.message


def test_a_policy_that_raises_denies():
    def policy(call):
        raise RuntimeError("secret")

    outcome = Engine(tools=[tool(name="t")(lambda: 1)], policy=policy).run("(tool/t {})")
    assert outcome.error.reason == "tool_denied" and "secret" not in outcome.error.report()


def test_other_threads_run_while_a_program_computes():
    engine = Engine(limits=Limits(timeout=30, fuel=0))
    stop = threading.Event()
    turns = 0

    def count():
        nonlocal turns
        while not stop.is_set():
            turns += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    outcome = engine.run("(reduce + (range 3000000))")
    stop.set()
    thread.join()
    assert outcome.ok and turns > 10


def test_eight_threads_share_an_engine():
    engine = Engine(tools=[tool(name="inc")(lambda n: n + 1)], limits=Limits(timeout=30))
    results = [[] for _ in range(8)]

    def work(number):
        for n in range(50):
            results[number].append(engine.run("(tool/inc {:n data/n})", data={"n": number * 1000 + n}).value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert results == [[number * 1000 + n + 1 for n in range(50)] for number in range(8)]


INTERRUPTED = """
import signal, sys
from ptc_lisp import Engine, Limits
# A shell that starts this in the background ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = Engine(isolation=sys.argv[1], limits=Limits(timeout=100, fuel=0, loop_iterations=0))
run = {"run": engine.run, "start": engine.start, "session": engine.session().run}[sys.argv[2]]
# The first run, which loads the program, is not measured.
engine.run("1")
print("ready", flush=True)
try:
    run("(loop [n 0] (recur (inc n)))")
except KeyboardInterrupt:
    print("interrupted", engine.run("1").value, flush=True)
"""


@pytest.mark.parametrize("how", ["run", "start", "session"])
@pytest.mark.parametrize("isolation", ["in_process", "process"])
def test_ctrl_c_ends_a_run(isolation, how):
    if isolation == "process" and _ptcl.find() is None:
        pytest.skip("there is no program ptcl; set PTCL")
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, isolation, how], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert child.communicate(timeout=80)[0] == "interrupted 1\n"
    assert time.monotonic() - started < 60 and child.returncode == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_passes_through_a_tool(kind):
    def leave():
        raise kind

    engine = Engine(tools=[tool(leave)])
    with pytest.raises(kind):
        engine.run("(try (tool/leave {}) (catch Exception e 1))")
    with pytest.raises(kind):
        engine.start("(tool/leave {})")
    with pytest.raises(kind):
        engine.session().run("(tool/leave {})")
    with pytest.raises(kind):
        engine.run("(pmap (fn [_] (try (tool/leave {}) (catch Exception e 1))) [1 2 3])")
    assert engine.run("1").value == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_passes_through_hooks(kind):
    def leave(*_):
        raise kind

    class Leaves(Mapping):
        __getitem__ = __iter__ = __len__ = leave

    engine = Engine(tools=[tool(name="t")(lambda: 1)], limits=Limits(timeout=60, fuel=0))
    denying = Engine(tools=[tool(name="t")(lambda: 1)], policy=leave)
    endless = '(println "x") (reduce + (iterate inc 0))'
    for run in (engine.run, engine.start, engine.session(on_print=leave).run):
        with pytest.raises(kind):
            run(endless, **({} if "Session" in repr(run) else {"on_print": leave}))
    for run in (denying.run, denying.start, denying.session().run):
        with pytest.raises(kind):
            run("(tool/t {})")
    with pytest.raises(kind):
        engine.start("(tool/t {})", recorder=leave)
    with pytest.raises(kind):
        engine.run("1", data={"a": [Leaves()]})
    with pytest.raises(kind):
        Engine(tools=[tool(name="t")(Leaves)]).run("(try (tool/t {}) (catch Exception e 1))")
    assert engine.run("1").value == 1


@pytest.mark.parametrize(
    "options",
    [{"now_ms": 10**30}, {"now_ms": -(10**30)}, {"traceparent": "x"}, {"traceparent": f"00-{'0' * 32}-{'1' * 16}-01"},
     {"traceparent": f"00-{'1' * 32}-{'1' * 16}-01-more"}],
)
def test_options_out_of_range(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be"):
        Engine().run("1", **options)
    assert Engine().run("1", traceparent=f"01-{'1' * 32}-{'1' * 16}-01-more", now_ms=-5).ok


def test_what_cannot_be_pickled_says_what_to_do():
    engine = Engine()
    failed = engine.run("(+ 1 nil)")
    for what, hint in [
        (failed, r"outcome\.to_json"),
        (RunError(failed), r"outcome\.to_json"),
        (engine.import_data("rows", [1]), r"engine\.import_data"),
        (engine.session(), r"session\.save"),
    ]:
        with pytest.raises(TypeError, match=hint):
            pickle.dumps(what)


LEAVES = """
import threading, time, sys
from ptc_lisp import Engine, Limits, tool
@tool
def wait(n: int) -> int:
    time.sleep(0.001)
    return n
@tool
async def later(n: int) -> int:
    return n
engine = Engine(tools=[wait, later], limits=Limits(timeout=60))
turns = [0] * 6
def work(number):
    while True:
        try:
            engine.run("(pmap #(tool/wait {:n %}) (range 8)) (map #(tool/wait {:n %}) (range 20)) (tool/later {:n 1})")
        except RuntimeError:
            return
        turns[number] += 1
for number in range(6):
    threading.Thread(target=work, args=(number,), daemon=True).start()
while min(turns) < 1:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("_", range(3))
def test_the_interpreter_ends_while_daemon_threads_run_programs(_):
    done = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


FORKED = """
import multiprocessing, os
from ptc_lisp import Engine, Limits, tool
@tool
def inc(n: int) -> int:
    return n + 1
@tool
async def later(n: int) -> int:
    return n + 2
engine = Engine(tools=[inc, later], limits=Limits(timeout=20))
PROGRAM = "[(sum (pmap #(tool/inc {:n %}) (range 20))) (tool/later {:n 1}) (count (sort (range 200000 0 -1)))]"
def work(n):
    return engine.run(PROGRAM, limits=Limits(heap_mb=10)).value
if __name__ == "__main__":
    assert work(0) == [210, 3, 200000], work(0)
    with multiprocessing.get_context(KIND).Pool(2) as pool:
        print(pool.map(work, range(4)) == [[210, 3, 200000]] * 4)
"""


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_runs_after_a_fork(kind, tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED.replace("KIND", repr(kind)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100, env={**os.environ})
    assert done.stdout == "True\n", done.stderr
