"""Sessions."""

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from ptc_lisp import Engine, Limits, Session, tool


def test_definitions_stay():
    with Engine().session(data={"rate": 2}) as session:
        assert session.run("(defn gross [net] (* net data/rate))").ok
        assert session.run("(gross 10)").value == 20
        assert session.run("(+ *1 nil)").ok is False
        assert session.run("[*1 (gross 1)]").value == [20, 2]
        assert session.names == ["gross"]


def test_save_and_load():
    engine = Engine(tools=[tool(name="inc")(lambda n: n + 1)])
    session = engine.session()
    session.run("(def seen #{1 2}) (defn more [n] (tool/inc {:n n}))")
    saved = session.save()
    assert isinstance(saved, bytes)
    later = engine.load_session(saved)
    assert later.run("[seen (more 4)]").value == [{1, 2}, 5]
    with pytest.raises(ValueError):
        engine.load_session(b"nonsense")
    with pytest.raises(ValueError, match="inc"):
        Engine().load_session(saved)


def test_fork_undo_and_memory():
    session = Engine().session()
    session.run("(def x 1)")
    other = session.fork()
    other.run("(def x 2)")
    assert (session.run("x").value, other.run("x").value) == (1, 2)
    assert session.memory() == '{"x":1}'
    session.run("(def x 5)")
    session.undo()
    assert session.run("x").value == 1
    with pytest.raises(ValueError):
        Engine().session().undo()


def test_async_turns():
    async def main():
        session = Engine(limits=Limits(timeout=600, fuel=0, loop_iterations=0)).session()
        await session.run_async("(def x 4)")
        turn = asyncio.create_task(session.run_async("(loop [] (recur))"))
        await asyncio.sleep(0.05)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return (await session.run_async("x")).value

    assert asyncio.run(main()) == 4


def test_a_tool_cannot_use_its_own_session():
    uses = {
        "run": lambda: session.run("1"),
        "undo": lambda: session.undo(),
        "save": lambda: session.save(),
        "names": lambda: session.names,
        "memory": lambda: session.memory(),
        "fork": lambda: session.fork(),
    }

    @tool
    def use(how: str) -> bool:
        uses[how]()
        return True

    @tool
    async def use_async(how: str) -> bool:
        uses[how]()
        return True

    engine = Engine(tools=[use, use_async], limits=Limits(timeout=20))
    session = engine.session()
    for how in uses:
        for name in ("use", "use_async"):
            error = session.run(f'(tool/{name} {{:how "{how}"}})').error
            assert "a tool cannot use its own session, open another with engine.session()" in error.message
            error = session.run(f'(pmap #(tool/{name} {{:how %}}) ["{how}" "{how}"])').error
            assert "a tool cannot use its own session" in error.report()
    assert session.run("1").value == 1


def test_other_threads_wait_for_the_turn():
    began, go_on, seen = threading.Event(), threading.Event(), []

    @tool
    def wait() -> bool:
        began.set()
        return go_on.wait(60)

    session = Engine(tools=[wait], limits=Limits(timeout=60)).session()
    turn = threading.Thread(target=lambda: session.run("(def x (tool/wait {}))"))
    turn.start()
    assert began.wait(60)
    other = threading.Thread(target=lambda: seen.append(session.run("x").value))
    other.start()
    go_on.set()
    turn.join()
    other.join()
    assert seen == [True]


class Gate:
    """A tool that says when it was called, and waits until it may return."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        self.calls = 0
        self.raises: BaseException | None = None

    def __call__(self) -> int:
        self.calls += 1
        self.entered.set()
        assert self.open.wait(20)
        if self.raises is not None:
            raise self.raises
        return self.calls


def _gated() -> tuple[Gate, Session]:
    gate = Gate()

    @tool(name="gate", effect="write")
    def gated() -> int:
        "Waits."
        return gate()

    return gate, Engine(tools=[gated], limits=Limits(timeout=20)).session()


def test_what_ends_a_turn_is_raised_by_that_turn():
    gate, session = _gated()
    gate.raises = SystemExit("from the first turn")
    ended: dict[str, Any] = {}

    def turn(name: str, program: str) -> None:
        try:
            ended[name] = session.run(program).value
        except BaseException as error:
            ended[name] = error

    first = threading.Thread(target=turn, args=("first", "(tool/gate)"))
    first.start()
    assert gate.entered.wait(20)
    second = threading.Thread(target=turn, args=("second", "(+ 1 1)"))
    second.start()
    # It has its number, or is about to take it.
    second.join(0.05)
    gate.open.set()
    first.join(20)
    second.join(20)
    assert isinstance(ended["first"], SystemExit), ended
    assert ended["second"] == 2


def test_a_waiting_turn_takes_back_no_cancellation():
    gate, session = _gated()

    async def turns() -> tuple[Any, ...]:
        first = asyncio.create_task(session.run_async("(tool/gate) (tool/gate) (def x 1)"))
        await asyncio.to_thread(gate.entered.wait, 20)
        first.cancel()
        second = asyncio.create_task(session.run_async("(+ 1 1)"))
        third = asyncio.create_task(session.run_async("(def y 1)"))
        await asyncio.sleep(0)
        third.cancel()
        await asyncio.sleep(0.05)
        gate.open.set()
        return tuple(await asyncio.gather(first, second, third, return_exceptions=True))

    first, second, third = asyncio.run(turns())
    assert isinstance(first, asyncio.CancelledError) and isinstance(third, asyncio.CancelledError)
    assert second.value == 2
    # The first turn ended at its first call, and the third before it began.
    assert gate.calls == 1 and session.names == []


def test_a_signal_ends_the_wait_for_another_turn():
    script = """
import os, signal, threading, time
from ptc_lisp import Engine, Limits, tool
entered, release = threading.Event(), threading.Event()
@tool
def gate() -> int:
    "Waits."
    entered.set()
    release.wait(20)
    return 1
session = Engine(tools=[gate], limits=Limits(timeout=20)).session()
other = threading.Thread(target=session.run, args=("(tool/gate)",))
other.start()
assert entered.wait(20)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
for wait in (lambda: session.run("(+ 1 1)"), session.save):
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", not release.is_set())
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        print("not interrupted")
try:
    time.sleep(5)
except KeyboardInterrupt:
    release.set()
other.join()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[:2] == ["interrupted True", "interrupted True"], done


def test_turns_come_in_the_order_of_their_calls():
    gate, session = _gated()
    threads = [threading.Thread(target=session.run, args=("(tool/gate)",))]
    threads[0].start()
    assert gate.entered.wait(20)
    for n in range(5):
        threads.append(threading.Thread(target=session.run, args=(f"(def order (conj (or order []) {n}))",)))
        threads[-1].start()
        # It has its place in the queue.
        while session._session.waiting < n + 1:
            time.sleep(0.001)
    gate.open.set()
    for thread in threads:
        thread.join(20)
    assert session.run("order").value == [0, 1, 2, 3, 4]


def test_a_program_is_a_str():
    session = Engine().session()
    with pytest.raises(TypeError, match="a program is a str, not NoneType"):
        session.run(None)  # type: ignore[arg-type]
