"""Sessions."""

import asyncio
import threading

import pytest

from ptc_lisp import Engine, Limits, tool


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
