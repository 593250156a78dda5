"""Programs in processes of their own."""

import asyncio
import sys
from datetime import date

import pytest

from ptc_lisp import Engine, Limits, Suspended, _ptcl, ask, tool

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or _ptcl.find() is None, reason="process isolation needs Linux and the program ptcl"
)


@pytest.fixture(scope="module")
def engine():
    @tool(effect="read")
    def half(n: float) -> float:
        return n / 2

    @tool
    async def later(n: int) -> int:
        await asyncio.sleep(0.01)
        return n + 1

    return Engine(tools=[half, later], limits=Limits(timeout=10), isolation="process")


def test_a_run(engine):
    outcome = engine.run("(println 1) [(tool/half {:n data/n}) data/s data/d]", data={"n": 3, "s": {1}, "d": date(2024, 1, 2)})
    assert outcome.value == [1.5, {1}, date(2024, 1, 2)] and outcome.prints == ["1"] and outcome.usage.cpu_us is not None
    assert engine.run("(tool/later {:n 1})").value == 2
    assert engine.run("(+ 1 nil)").error.reason == "type_error"


def test_async_runs(engine):
    async def main():
        runs = [engine.run_async("(sum (pmap #(tool/later {:n %}) [1 2 data/n]))", data={"n": n}) for n in range(8)]
        return [outcome.value for outcome in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [n + 6 for n in range(8)]


def test_limits(engine):
    assert engine.run("(reduce + (iterate inc 0))", limits=Limits(timeout=0.1)).error.reason == "timeout"
    assert engine.run("(vec (range 10000000))").verdict == "out_of_memory"


def test_sessions(engine):
    session = engine.session()
    session.run("(def x 4)")
    assert session.run("(* x x)").value == 16
    assert engine.load_session(session.save()).run("x").value == 4


def test_data_sets(engine):
    rows = engine.import_data("rows", [date(2024, 1, 2)])
    assert engine.run("(count data/rows)", data_sets=[rows]).value == 1


def test_approvals():
    @tool(effect="write")
    def pay(amount: int) -> int:
        return amount

    engine = Engine(tools=[pay], policy=lambda call: ask("pay?"), isolation="process")
    suspended = engine.start("(inc (tool/pay {:amount 5}))")
    assert isinstance(suspended, Suspended) and suspended.calls[0].question == "pay?"
    assert suspended.approve(suspended.calls[0]).value == 6


def test_cancelling(engine):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine.run_async("(reduce + (iterate inc 0))"), 0.2)

    asyncio.run(main())
    assert engine.run("1").value == 1


def test_runs_of_a_domain_share_a_process():
    engine = Engine(isolation="process")
    for n in range(3):
        assert engine.run("(+ 1 data/n)", data={"n": n}, domain="acme").value == n + 1
    # A process that lives on has no figures of its own.
    assert engine.run("1", domain="acme").usage.cpu_us is None and engine.run("1").usage.cpu_us is not None
    assert asyncio.run(engine.run_async("(* 2 data/n)", data={"n": 4}, domain="acme")).value == 8
    with pytest.raises(ValueError, match=r'it needs Engine\(isolation="process"\)'):
        Engine().run("1", domain="acme")
