"""Sessions."""

import asyncio

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
