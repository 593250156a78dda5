"""Runs on an event loop."""

import asyncio
import gc
import os
import sys
import threading
import time

import pytest

from ptc_lisp import Engine, Limits, ToolError, tool
from ptc_lisp._engine import Wakeups

LONG = Limits(timeout=60, parallel_timeout=60, parallel_workers=16, parallel_window=16)


def test_parallel_calls_run_side_by_side():
    running = most = 0

    @tool
    async def order(id: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 8:
            await asyncio.sleep(0.001)
        running -= 1
        return id * 10

    engine = Engine(tools=[order], limits=LONG)
    outcome = asyncio.run(engine.run_async("(sum (pmap #(tool/order {:id %}) (range 8)))"))
    assert outcome.value == 280 and most == 8


def test_a_thousand_runs_on_one_loop():
    @tool
    async def slow(n: int) -> int:
        await asyncio.sleep(0.1)
        return n

    engine = Engine(tools=[slow], limits=LONG)
    program = "(sum (pmap #(tool/slow {:n (+ % data/n)}) [0 1 2]))"

    async def all_of_them():
        return await asyncio.gather(*(engine.run_async(program, data={"n": n}) for n in range(1000)))

    assert [outcome.value for outcome in asyncio.run(all_of_them())] == [3 * n + 3 for n in range(1000)]


def test_sync_tools_run_beside_the_loop():
    @tool
    def slow(n: int) -> int:
        time.sleep(0.05)
        return n

    engine = Engine(tools=[slow], limits=LONG)

    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        outcome = await engine.run_async("(map #(tool/slow {:n %}) [1 2])")
        ticking.cancel()
        return outcome.value, ticks

    value, ticks = asyncio.run(main())
    assert value == [1, 2] and ticks > 5


def test_the_loop_turns_while_a_program_computes():
    engine = Engine(limits=Limits(timeout=60, fuel=0))

    async def main():
        run = asyncio.create_task(engine.run_async("(reduce + (range 3000000))"))
        ticks = 0
        while not run.done():
            await asyncio.sleep(0)
            ticks += 1
        return run.result().ok, ticks

    ok, ticks = asyncio.run(main())
    assert ok and ticks > 100


def test_cancelling_the_task_cancels_run_and_tools():
    began, ended = [], []

    @tool
    async def hang(n: int) -> int:
        began.append(n)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(n)
        return n

    engine = Engine(tools=[hang], limits=LONG)

    async def main():
        run = asyncio.create_task(engine.run_async("(pmap #(tool/hang {:n %}) [1 2 3])"))
        while len(began) < 3:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert sorted(began) == sorted(ended) == [1, 2, 3]


def test_cancelling_ends_a_program_that_computes():
    engine = Engine(limits=Limits(timeout=600, fuel=0))

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine.run_async("(reduce + (iterate inc 0))"), 0.1)

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 60


def test_a_run_ends_at_its_deadline_although_its_tool_hangs():
    cancelled = []

    @tool
    async def hang() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return 1

    engine = Engine(tools=[hang], limits=Limits(timeout=0.1))

    async def main():
        outcome = await engine.run_async("(tool/hang {})")
        await asyncio.sleep(0)
        return outcome

    outcome = asyncio.run(main())
    assert outcome.error.reason == "timeout" and cancelled == [True]
    # The same on the thread of the caller.
    assert engine.run("(tool/hang {})").error.reason == "timeout"


def test_a_failed_call_gives_up_the_others():
    ended = []

    @tool
    async def one(n: int) -> int:
        try:
            await asyncio.sleep(0 if n == 0 else 60)
        finally:
            ended.append(n)
        raise ToolError("no", code="NO")

    engine = Engine(tools=[one], limits=LONG)

    async def main():
        outcome = await engine.run_async("(try (pmap #(tool/one {:n %}) [0 1 2]) (catch Exception e (:code e)))")
        await asyncio.sleep(0)
        return outcome

    assert asyncio.run(main()).value == "NO"
    assert sorted(ended) == [0, 1, 2]


def test_a_tool_runs_another_program():
    @tool
    async def inner(n: int) -> int:
        return (await engine.run_async("(* 2 data/n)", data={"n": n})).value

    @tool
    def nested(n: int) -> int:
        return plain.run("(* 3 data/n)", data={"n": n}).value

    plain = Engine(tools=[nested])
    engine = Engine(tools=[inner, nested])
    assert asyncio.run(engine.run_async("[(tool/inner {:n 4}) (tool/nested {:n 4})]")).value == [8, 12]
    assert plain.run("(tool/nested {:n 5})").value == 15


def test_run_on_a_loop_with_async_tools_is_misuse():
    @tool
    async def one() -> int:
        return 1

    engine = Engine(tools=[one])

    async def main():
        with pytest.raises(RuntimeError, match="await engine.run_async"):
            engine.run("(tool/one {})")

    asyncio.run(main())
    assert engine.run("(tool/one {})").value == 1


def test_many_loops_one_after_another():
    @tool
    async def one() -> int:
        await asyncio.sleep(0)
        return 1

    engine = Engine(tools=[one])
    for _ in range(20):
        assert asyncio.run(engine.run_async("(tool/one {})")).value == 1


def test_anyio():
    anyio = pytest.importorskip("anyio")

    @tool
    async def one(n: int) -> int:
        await anyio.sleep(0.001)
        return n

    engine = Engine(tools=[one], limits=LONG)

    async def main():
        values = []
        async with anyio.create_task_group() as group:

            async def run(n):
                values.append((await engine.run_async("(tool/one {:n data/n})", data={"n": n})).value)

            for n in range(5):
                group.start_soon(run, n)
        with anyio.move_on_after(0.05) as scope:
            await engine.run_async("(reduce + (iterate inc 0))", limits=Limits(timeout=30))
        return sorted(values), scope.cancelled_caught

    assert anyio.run(main) == ([0, 1, 2, 3, 4], True)


def test_uvloop():
    uvloop = pytest.importorskip("uvloop")

    @tool
    async def one(n: int) -> int:
        await asyncio.sleep(0.001)
        return n

    engine = Engine(tools=[one], limits=LONG)
    loop = uvloop.new_event_loop()
    outcome = loop.run_until_complete(engine.run_async("(sum (pmap #(tool/one {:n %}) (range 8)))"))
    loop.close()
    assert outcome.value == 28


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_passes_through_an_async_tool(kind):
    @tool
    async def leave() -> int:
        raise kind

    @tool
    async def stray() -> int:
        async def leave():
            raise kind

        asyncio.get_running_loop().create_task(leave())
        await asyncio.sleep(0)
        return 1

    @tool
    async def one() -> int:
        await asyncio.sleep(0)
        return 1

    engine = Engine(tools=[leave, stray, one], limits=LONG)
    with pytest.raises(kind):
        engine.run("(try (tool/leave {}) (catch Exception e 1))")
    # The loop that calls async tools goes on, for all engines.
    assert engine.run("(tool/one {})").value == 1
    assert engine.run("[(tool/stray {}) (tool/one {})]").value == [1, 1]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_passes_through_run_async(kind):
    def leave():
        raise kind

    async def leave_async() -> int:
        raise kind

    hook = Engine(tools=[tool(name="t")(lambda: 1)], policy=lambda call: leave(), limits=LONG)
    engine = Engine(tools=[tool(leave), tool(leave_async)], limits=LONG)

    async def main():
        for name in ("leave", "leave_async"):
            with pytest.raises(kind):
                await engine.run_async(f"(try (tool/{name} {{}}) (catch Exception e 1))")
            with pytest.raises(kind):
                await engine.run_async(f"(pmap (fn [_] (try (tool/{name} {{}}) (catch Exception e 1))) [1 2 3])")
        with pytest.raises(kind):
            await hook.run_async("(tool/t {})")
        with pytest.raises(kind):
            await engine.run_async('(println "x") (reduce + (iterate inc 0))', on_print=lambda line: leave())
        return (await engine.run_async("1")).value

    assert asyncio.run(main()) == 1


def test_a_cancelled_tool_is_an_error_of_the_tool():
    @tool
    async def give_up() -> int:
        raise asyncio.CancelledError

    engine = Engine(tools=[give_up], limits=LONG)
    assert asyncio.run(engine.run_async("(try (tool/give_up {}) (catch Exception e 1))")).value == 1
    assert engine.run("(try (tool/give_up {}) (catch Exception e (:message e)))").value == "tool/give_up: the tool was cancelled"


@pytest.mark.parametrize("how", ["run_async", "start_async", "session"])
@pytest.mark.parametrize("program", ["(tool/hang {})", "(pmap (fn [_] (tool/hang {})) [1 2])", "(tool/give_up {})"])
def test_no_exception_is_logged_of_a_tool_that_raised_none(how, program, caplog):
    began = threading.Event()

    @tool
    async def hang() -> int:
        began.set()
        await asyncio.sleep(600)
        return 1

    @tool
    async def give_up() -> int:
        began.set()
        raise asyncio.CancelledError

    engine = Engine(tools=[hang, give_up], limits=LONG)
    brief = Engine(tools=[hang, give_up], limits=Limits(timeout=0.1))

    def begin(engine):
        return (engine.session().run_async if how == "session" else getattr(engine, how))(program)

    async def main():
        task = asyncio.create_task(begin(engine))
        await asyncio.to_thread(began.wait)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or "give_up" in program
        assert not (await begin(brief)).ok

    asyncio.run(main())
    # Tasks that other tests left behind may be logged now.
    assert not [record.getMessage() for record in caplog.records if record.getMessage().startswith("tool/")]


@pytest.mark.parametrize("how", ["start_async", "session"])
@pytest.mark.parametrize("scope", [False, True])
def test_a_task_that_is_cancelled_twice_ends_after_its_tool(how, scope):
    began, goes_on = threading.Event(), threading.Event()
    ended = []

    @tool
    def slow() -> int:
        began.set()
        assert goes_on.wait(60)
        ended.append(True)
        return 1

    engine = Engine(tools=[slow], limits=LONG)

    async def begin():
        await (engine.session().run_async if how == "session" else engine.start_async)("(tool/slow {})")

    async def in_scope():
        anyio = pytest.importorskip("anyio")
        with anyio.CancelScope() as cancelled:
            asyncio.get_running_loop().call_later(0.05, cancelled.cancel)
            await begin()

    async def main():
        task = asyncio.create_task(in_scope() if scope else begin())
        await asyncio.to_thread(began.wait)
        for _ in range(20):
            if not scope:
                task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done() and not ended
        goes_on.set()
        await asyncio.wait([task])
        assert ended == [True] and task.cancelled() == (not scope)

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_loops_that_are_closed_during_runs_are_freed():
    engine = Engine(tools=[tool(name="hang")(hang_forever)], limits=LONG)

    def close_one():
        loop = asyncio.new_event_loop()
        run = loop.create_task(engine.run_async("(tool/hang {})"))
        run._log_destroy_pending = False
        while not began:
            loop.run_until_complete(asyncio.sleep(0))
        began.clear()
        loop.close()

    close_one()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        close_one()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


began = []


async def hang_forever() -> int:
    asyncio.current_task()._log_destroy_pending = False
    began.append(True)
    await asyncio.get_running_loop().create_future()
    return 1


def test_a_closed_run_is_not_polled_for_ever():
    engine = Engine(limits=Limits(timeout=60, loop_iterations=0, fuel=0))
    run = engine._core.begin("(loop [i 0] (recur (inc i)))", {}, Wakeups(), 1)
    while not run.is_woken:
        assert run.poll() is None
    # As if the task was cancelled between two polls of its thread.
    run.close()
    thread = threading.Thread(target=run.poll_long, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
