"""Memory does not grow with the number of runs. `RUNS` and `CANCELLATIONS` in the environment set how many."""

import asyncio
import gc
import os
import pathlib
import sys

import pytest

from ptc_lisp import Engine, Limits, tool

RUNS = int(os.environ.get("RUNS", "5000"))
CANCELLATIONS = int(os.environ.get("CANCELLATIONS", "500"))
PROGRAM = '(println "x") (map #(tool/item {:n (:n %)}) data/rows)'
ROWS = [{"n": n, "text": "x" * 50} for n in range(5)]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def resident():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows_by(work, times):
    """Returns the growth over the second half; the first half warms up allocators and caches."""
    work(times // 2)
    before = resident()
    work(times - times // 2)
    return resident() - before


@tool
def item(n: int) -> dict:
    return {"n": n}


@tool(name="item")
async def item_async(n: int) -> dict:
    return {"n": n}


@tool
async def hang(n: int) -> int:
    await asyncio.Event().wait()
    return n


def test_runs():
    engine = Engine(tools=[item])

    def work(times):
        for _ in range(times):
            assert engine.run(PROGRAM, data={"rows": ROWS}).value[0] == {"n": 0}

    assert grows_by(work, RUNS) < 4_000_000


def test_async_runs():
    engine = Engine(tools=[item_async])

    def work(times):
        async def main():
            for _ in range(times):
                assert (await engine.run_async(PROGRAM, data={"rows": ROWS})).ok

        asyncio.run(main())

    assert grows_by(work, RUNS) < 4_000_000


def test_failed_runs_and_engines():
    def work(times):
        for _ in range(times):
            assert not Engine(tools=[item]).run("(+ 1 nil)").ok

    assert grows_by(work, RUNS // 5) < 4_000_000


def test_cancellations():
    engine = Engine(tools=[hang], limits=Limits(timeout=60, parallel_timeout=60))

    def work(times):
        async def main():
            for _ in range(times):
                run = asyncio.ensure_future(engine.run_async("(pmap #(tool/hang {:n %}) [1 2])"))
                await asyncio.sleep(0)
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run

        asyncio.run(main())

    assert grows_by(work, CANCELLATIONS) < 4_000_000
