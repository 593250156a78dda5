"""The client, against a real service. Methods of both clients are tried through `Both`: they must do the same."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import inspect
import gzip
import json
import logging
import pathlib
import pickle
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from random import Random
from typing import Any

import httpx
import pytest
from service import Proxy, Service, sha256

from ptc_lisp import Engine, Limits, RunError, Tool, ToolCall, ToolError, tool
from ptc_lisp.client import (
    AsyncClient,
    AsyncSession,
    Busy,
    Client,
    Conflict,
    ConnectionLost,
    Event,
    Forbidden,
    InvalidRequest,
    NotFound,
    OpenCall,
    Outcome,
    Retries,
    Run,
    Problem,
    RunStuck,
    ServiceError,
    Session,
    SessionState,
    StillWaiting,
    Unauthorized,
    UnexpectedAnswer,
)
from ptc_lisp._exchange import Exchange
from ptc_lisp.client import _requests, _sync


class Both:
    """A client of either kind, for code that blocks."""

    def __init__(self, kind: str, url: str, **options: Any) -> None:
        self.client: Any = AsyncClient(url, **options) if kind == "async" else Client(url, **options)
        self.loop = asyncio.new_event_loop() if kind == "async" else None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.do(getattr(self.client, name)(*args, **kwargs))

    def do(self, given: Any) -> Any:
        if inspect.isawaitable(given):
            assert self.loop is not None
            return self.loop.run_until_complete(given)
        return given

    def close(self) -> None:
        self.do(self.client.close())
        if self.loop:
            self.loop.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(params=["blocking", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    made: list[Both] = []

    def connect(url: str, **options: Any) -> Both:
        made.append(Both(request.param, url, **options))
        return made[-1]

    yield connect
    for client in made:
        client.close()


@tool(effect="read")
def price(sku: str) -> float:
    "Price of one item."
    return {"KB-01": 49.5}.get(sku, 19.0)


@tool
async def stock(sku: str, call: ToolCall) -> dict[str, Any]:
    "Items in stock."
    await asyncio.sleep(0)
    return {"sku": sku, "key": call.key, "remaining": call.remaining}


def waiting(client: Any, run: Run) -> Run:
    """Returns the run once it waits for calls."""
    while not run.calls:
        assert not run.done, run
        run = client.get(run, wait=20)
    return run


def test_run(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    outcome = client.run("(println :seen) (sum (map :n data/rows))", data={"rows": [{"n": 1}, {"n": 2**70}]})
    assert outcome.ok and outcome.value == 2**70 + 1 and outcome.prints == [":seen"]
    assert outcome.usage.fuel > 0 and outcome.usage.to_dict()["fuel"] == outcome.usage.fuel
    assert outcome.json == str(2**70 + 1) and outcome.text and outcome.run_id and outcome.ledger == []
    assert outcome.memory is None and outcome.raise_for_error() is outcome


def test_an_error_has_a_report(service: Service, connect: Callable[..., Any]) -> None:
    outcome = connect(service.url).run("(let [price 5]\n  (+ price nil))")
    assert not outcome.ok and outcome.value is None and outcome.verdict == "error"
    assert outcome.error.reason == "type_error" and outcome.error.position.line == 2 and outcome.error.phase == "eval"
    report = outcome.error.report()
    assert "\n2 |   (+ price nil))\n  |   ^^^^" in report and outcome.error.message in report
    with pytest.raises(RunError, match="type_error"):
        outcome.raise_for_error()


def test_a_program_that_fails(service: Service, connect: Callable[..., Any]) -> None:
    outcome = connect(service.url).run('(fail {:why "no stock"})')
    assert (outcome.ok, outcome.value, outcome.failure) == (False, None, {"why": "no stock"})
    assert outcome.error.reason == "fail"


def test_options(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    first = client.run("(def n (+ n data/m))", memory='{"n": 1}', data={"m": 2}, strict_data=True)
    assert json.loads(first.memory) == {"n": 3}
    assert client.run("(inc n)", memory=first.memory, signature=":int").value == 4
    assert client.run("(twice 4)", setup=["(defn twice [x] (* 2 x))"], limits=Limits(loop_iterations=10)).value == 8
    assert client.run("(:day data/day)", data={"day": {"day": datetime.date(2026, 1, 2)}}).value == "2026-01-02"
    assert client.run("(keys data/m)", data={"m": {"a": 1}}, json_keys="keywords").text == "[:a]"
    assert client.run("1", limits=Limits(tool_calls=7)).limits["tool_calls"] == 7


def test_misuse_is_an_exception(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    with pytest.raises(TypeError, match=r'data\["rows"\]\[1\]'):
        client.run("1", data={"rows": [1, object()]})
    with pytest.raises(TypeError, match="data must be a dict of values by name"):
        client.run("1", data=[1])
    with pytest.raises(TypeError, match="unknown option signatur; the options are data, limits"):
        client.run("1", signatur=":int")
    with pytest.raises(InvalidRequest, match="traceparent") as refused:
        client.run("1", traceparent=5)
    assert (refused.value.status, refused.value.field) == (400, "traceparent")
    with pytest.raises(ValueError, match="the tool t has max_calls.*configure the tool in the service"):
        client.run("1", tools=[Tool("t", function=print, max_calls=1)])
    with pytest.raises(ValueError, match="url must start with"):
        connect("localhost:7117")


def test_tools_of_this_process(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url, tools=[price])
    outcome = client.run('[(tool/price {:sku "KB-01"}) (tool/stock {:sku "X"})]', tools=[stock])
    assert outcome.value == [49.5, {"sku": "X", "key": f"{outcome.run_id}/2", "remaining": None}]
    assert [(entry.tool, entry.status, entry.worker) for entry in outcome.ledger] == [("price", "ok", ()), ("stock", "ok", ())]
    assert outcome.ledger[0].arguments == {"sku": "KB-01"} and outcome.ledger[0].result == 49.5
    assert "tool/price" in client.prompt() and "tool/stock" not in client.prompt()
    found = client.check('(tool/price {:sk "a"})')
    assert found["warnings"][0]["kind"] == "unknown_argument"


def test_parallel_calls(service: Service, connect: Callable[..., Any]) -> None:
    outcome = connect(service.url).run('(sum (pmap #(tool/price {:sku (str %)}) (range 5)))', tools=[price])
    assert outcome.value == 5 * 19.0 and len(outcome.ledger) == 5


def test_async_calls_are_served_side_by_side(service: Service) -> None:
    async def main() -> None:
        arrived, all_here = 0, asyncio.Event()

        async def meet(n: int) -> int:
            nonlocal arrived
            arrived += 1
            if arrived == 3:
                all_here.set()
            await all_here.wait()
            return n

        async with AsyncClient(service.url, tools=[meet]) as client:
            outcome = await client.run("(vec (pmap #(tool/meet {:n %}) [1 2 3]))")
        assert outcome.value == [1, 2, 3]

    asyncio.run(main())


def test_a_tool_that_raises(service: Service, connect: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    def broken(n: int) -> int:
        if n == 1:
            raise ToolError("no such item", code="NOT_FOUND")
        if n == 2:
            return "two"  # type: ignore[return-value]
        raise KeyError("n")

    program = "(try (tool/broken {:n data/n}) (catch Exception e [(:message e) (:code e)]))"
    client = connect(service.url, tools=[broken])
    outcomes = [client.run(program, data={"n": n}) for n in (1, 2, 3)]
    assert outcomes[0].value[0].endswith("no such item") and outcomes[0].value[1] == "NOT_FOUND"
    assert "its result is not valid" in outcomes[1].value[0]
    assert outcomes[2].value[0].endswith("KeyError: 'n'")
    assert [record.exc_info is not None for record in caplog.records if record.name == "ptc_lisp"] == [True]
    assert "test_client.py" in caplog.text


def test_a_tool_runs_a_session_of_its_own(service: Service, connect: Callable[..., Any]) -> None:
    session = Engine().session()

    async def counted(n: int) -> int:
        return (await asyncio.to_thread(session.run, f"(+ {n} 1)")).value + session.run("1").value

    assert connect(service.url, tools=[counted]).run("(tool/counted {:n 1})").raise_for_error().value == 3


def test_durable_run(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    run = waiting(client, client.start('(inc (tool/ask {:n 1}))', tools=[Tool.external("ask", "(n :int) -> :int")]))
    assert run.status == "waiting" and not run.done
    (call,) = run.calls
    assert (call.tool, call.arguments, call.question, call.phase, call.is_unknown) == ("ask", {"n": 1}, None, "result", False)
    assert run.run_id in [listed.run_id for listed in client.list(status="waiting").runs]
    with pytest.raises(StillWaiting, match=r"waits for its calls 1 of ask; wait again with client.wait\(") as still:
        client.wait(run, timeout=0.01)
    assert still.value.run.calls == run.calls
    with pytest.raises(InvalidRequest, match="1 of ask|result|int"):
        client.reply(call, "many")
    client.reply(call, 41)
    assert client.wait(run).value == 42
    with pytest.raises(Conflict) as conflict:
        client.fail(call, "too late")
    assert conflict.value.attempts == 1 and "earlier attempt" not in str(conflict.value)
    failed = waiting(client, client.start("(tool/ask {})", tools=[Tool.external("ask")]))
    client.fail(failed.calls[0], "nobody is here", code="AWAY")
    assert "nobody is here" in client.wait(failed).error.message


def test_list_has_pages(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    started = {client.start("1").run_id for _ in range(3)}
    page = client.list(limit=2)
    seen = [run.run_id for run in page.runs]
    assert len(seen) == 2 and page.next is not None
    seen += [run.run_id for run in client.list(limit=2, cursor=page.next).runs]
    assert started <= set(seen)


def test_cancel(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    run = waiting(client, client.start("(tool/ask {})", tools=[Tool.external("ask")]))
    client.cancel(run)
    outcome = client.wait(run)
    assert outcome.verdict == "cancelled" and outcome.ledger[0].status == "unknown"
    with pytest.raises(NotFound):
        client.get("no-such-run")


def test_cancelling_the_task_cancels_the_run_and_its_tools(service: Service) -> None:
    async def main() -> None:
        entered, cancelled = asyncio.Event(), asyncio.Event()

        async def slow(call: ToolCall) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with AsyncClient(service.url, tools=[slow]) as client:
            before = {run.run_id for run in (await client.list()).runs}
            task = asyncio.ensure_future(client.run("(tool/slow {})"))
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert cancelled.is_set()
            (run,) = [run for run in (await client.list()).runs if run.run_id not in before]
            assert (await client.wait(run)).verdict == "cancelled"

    asyncio.run(main())


def test_sessions(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    session = client.session(data={"n": 20}, limits=Limits(timeout=60))
    do = client.do
    assert do(session.run("(def m (+ data/n 1))")).ok and do(session.run("(* 2 m)")).value == 42
    assert do(session.state()).turns == 2
    fork = do(session.fork())
    do(session.undo())
    do(session.undo())
    with pytest.raises(Conflict):
        do(session.undo())
    assert not do(session.run("m")).ok and do(fork.run("m")).value == 21
    assert do(client.load_session(fork.session_id).run("(inc m)")).value == 22
    do(fork.delete())
    with pytest.raises(NotFound):
        client.load_session(fork.session_id)


def test_sessions_as_context_managers(service: Service) -> None:
    with Client(service.url) as client:
        with client.session() as session:
            assert session.run("1").value == 1
        with pytest.raises(NotFound):
            session.state()

    async def main() -> None:
        async with AsyncClient(service.url) as client:
            async with await client.session() as session:
                assert (await session.run("2")).value == 2
            with pytest.raises(NotFound):
                await session.state()

    asyncio.run(main())


# Lost connections, restarts and repeated requests.


def events_of(client: Any, run: Run, each: Callable[[Event], None] = lambda event: None, **options: Any) -> list[Event]:
    """Returns the events of a run; calls `each` when one arrives."""
    seen: list[Event] = []

    def take(event: Event) -> None:
        seen.append(event)
        each(event)

    async def take_async() -> None:
        async for event in client.client.events(run, **options):
            await asyncio.to_thread(take, event)

    if client.loop:
        client.do(take_async())
    else:
        for event in client.client.events(run, **options):
            take(event)
    return seen


def test_events_continue_after_a_lost_connection(service: Service, connect: Callable[..., Any]) -> None:
    with Proxy(service.port) as proxy, Client(service.url) as other:
        client = connect(proxy.url)
        program = '(println "a") (println (tool/ask {})) (println "b") 7'
        run = client.start(program, tools=[Tool.external("ask")])

        def each(event: Event) -> None:
            if event.kind == "waiting":
                proxy.cut()
                other.reply(waiting(other, other.get(run)).calls[0], "answered")

        before = proxy.connections
        seen = events_of(client, run, each)
        assert [event.id for event in seen] == [str(n + 1) for n in range(len(seen))]
        assert [event.data["line"] for event in seen if event.kind == "print"] == ["a", "answered", "b"]
        assert seen[-1].is_last and seen[-1].outcome is not None and seen[-1].outcome.value == 7
        assert proxy.connections > before
        rest = events_of(client, run, after=seen[2].id)
        assert [event.id for event in rest] == [event.id for event in seen[3:]]


def test_events_have_any_characters(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    text = "a\u2028b\x85c\x0cd\u2029e"
    run = client.start("(println data/text)", data={"text": text})
    assert [event.data["line"] for event in events_of(client, run) if event.kind == "print"] == [text]


def test_events_of_an_unknown_run(service: Service, connect: Callable[..., Any]) -> None:
    with pytest.raises(NotFound):
        events_of(connect(service.url), "no-such-run")  # type: ignore[arg-type]


def test_a_repeated_request_does_not_run_twice(service: Service, connect: Callable[..., Any]) -> None:
    calls: list[int] = []

    def note(n: int) -> int:
        calls.append(n)
        return n

    with Proxy(service.port) as proxy:
        client = connect(proxy.url, tools=[note])
        before = {run.run_id for run in client.list(limit=1000).runs}
        proxy.lose_responses(1)
        requests = proxy.requests
        run = client.start("(tool/note {:n 1})", idempotency_key=f"once {id(client)}")
        assert proxy.requests == requests + 2
        assert client.wait(run).value == 1
        assert client.run("(tool/note {:n 1})", idempotency_key=f"once {id(client)}").run_id == run.run_id
        assert calls == [1]
        new = {run.run_id for run in client.list(limit=1000).runs} - before
        assert new == {run.run_id}
        with pytest.raises(InvalidRequest, match="Idempotency-Key"):
            client.run("(tool/note {:n 2})", idempotency_key=f"once {id(client)}")


def test_a_lost_reply_is_repeated(service: Service, connect: Callable[..., Any]) -> None:
    with Proxy(service.port) as proxy:

        def losing(n: int) -> int:
            proxy.lose_responses(1)
            return n

        assert connect(proxy.url).run("(inc (tool/losing {:n 1}))", tools=[losing]).value == 2


def test_a_run_without_a_key_is_not_repeated(service: Service, connect: Callable[..., Any]) -> None:
    with Proxy(service.port) as proxy:
        client = connect(proxy.url)
        proxy.lose_responses(1)
        requests = proxy.requests
        with pytest.raises(ConnectionLost, match="it is unknown whether.*idempotency_key") as lost:
            client.run("1")
        assert lost.value.may_have_happened and proxy.requests == requests + 1


def test_a_service_that_is_not_there(connect: Callable[..., Any]) -> None:
    client = connect("http://127.0.0.1:9", retries=Retries(max_seconds=0.2))
    with pytest.raises(ConnectionLost, match=r"cannot be reached after \d+ attempts.*ptcl serve") as lost:
        client.run("1")
    assert not lost.value.may_have_happened


def test_a_service_that_never_was_there_is_given_up_early(connect: Callable[..., Any]) -> None:
    client = connect("http://127.0.0.1:9", retries=Retries(max_seconds=600))
    started = time.monotonic()
    with pytest.raises(ConnectionLost, match=r"cannot be reached after \d+ attempts.*ptcl serve"):
        client.run("1")
    assert 1 < time.monotonic() - started < 60
    with Client("http://127.0.0.1:9", retries=Retries(max_seconds=600)) as blocking:
        with pytest.raises(ConnectionLost, match="cannot be reached"):
            next(blocking.events("r1"))


def test_only_refused_connections_of_a_service_never_reached_are_given_up_early() -> None:
    core = _requests.Core("http://127.0.0.1:9", None, (), 1.0, Retries(max_seconds=600))
    send = _requests.Send("GET", "/v1/runs", "always")

    def lost(cause: BaseException) -> _requests.Lost:
        error = httpx.ConnectError("All connection attempts failed")
        error.__cause__ = OSError("All connection attempts failed")
        error.__cause__.__cause__ = cause
        return _requests.Lost(error)

    class Several(Exception):
        exceptions = (ConnectionRefusedError(), ConnectionRefusedError())

    class Mixed(Exception):
        exceptions = (ConnectionRefusedError(), TimeoutError())

    for refused in (ConnectionRefusedError(), FileNotFoundError(), Several()):
        assert core._delay(send, lost(refused), 1, 1.0) is not None and core._delay(send, lost(refused), 1, 3.0) is None
    for other in (TimeoutError(), Mixed()):
        assert core._delay(send, lost(other), 1, 3.0) is not None
    # It was there: it may be back.
    steps = core.exchange(send)
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(_requests.Answer(200, {}, "{}"))
    assert core._delay(send, lost(ConnectionRefusedError()), 1, 3.0) is not None


def test_outcomes_and_warnings_are_shown_in_short(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    assert repr(client.run("(+ 1 1)")) == "<Outcome ok: 2>"
    assert repr(client.run("(vec (range 1000))")) == "<Outcome ok: [" + " ".join(map(str, range(1000)))[:119] + ">"
    assert repr(client.run("(+ 1 nil)")).startswith("<Outcome type_error: ") and len(repr(client.run("(+ 1 nil)"))) < 200
    [warning] = client.run("(sum (map :totl data/rows))", data={"rows": [{"total": 1}]}).warnings
    assert repr(warning) == "<Warning unknown_key: no map here has the key :totl; they have :total; write :total>"


def test_a_report_is_that_of_an_engine(service: Service, connect: Callable[..., Any]) -> None:
    client, data = connect(service.url), {"rows": [{"total": 1}]}
    for program in ("(println :seen) (sum (map :totl data/rows))", "(println 1) (+ 1 nil)", "(+ 1", "nil"):
        assert client.run(program, data=data).report() == Engine().run(program, data=data).report()
    assert "(fail 5)" in client.run("(fail 5)").report()
    many = '(dotimes [_ 600000] (println "x"))'
    printed = client.run(many).report().splitlines()
    assert re.fullmatch(r"\[\d+ more lines were printed and not kept\]", printed[-2]) and printed[-1] == "nil"


def test_tools_of_a_client_are_not_those_of_sessions(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url, tools=[price])
    session = client.session()
    outcome = client.do(session.run('(tool/price {:sku "KB-01"})'))
    assert outcome.error.reason == "unknown_tool"
    assert "tool of the client, and sessions do not have those" in outcome.error.hint
    assert outcome.error.hint in outcome.error.report() and "this run has no tools" not in outcome.error.report()
    assert "this run has no tools" in client.do(session.run("(tool/other {})")).error.hint
    client.do(session.delete())


def test_a_service_that_restarts_between_start_and_reply(tmp_path: pathlib.Path, connect: Callable[..., Any]) -> None:
    with Service(tmp_path) as service:
        calls: list[int] = []

        def ask(n: int) -> int:
            calls.append(n)
            service.kill()
            service.begin()
            return n + 1

        client = connect(service.url, retries=Retries(max_seconds=60))
        run = client.start("(inc (tool/ask {:n 1}))", tools=[ask])
        assert client.wait(run, tools=[ask]).value == 3
        assert calls == [1]


def test_another_process_goes_on(tmp_path: pathlib.Path, connect: Callable[..., Any]) -> None:
    with Service(tmp_path) as service:
        run = connect(service.url).start('(tool/price {:sku "KB-01"})', tools=[price])
        service.kill()
        service.start()
        assert connect(service.url, tools=[price]).wait(run.run_id).value == 49.5


def test_delays_are_bounded() -> None:
    retries = Retries(max_seconds=10, first_delay=0.1, max_delay=2)
    for attempt in range(1, 40):
        delay = retries.delay(attempt, 0, None)
        assert delay is not None and 0.05 <= delay <= 2
    assert retries.delay(1, 9.99, 0.5) is None and retries.delay(1, 0, 11) is None
    after = retries.delay(1, 0, 3)
    assert after is not None and 3 <= after <= 3.3
    assert Retries(max_seconds=0).delay(1, 0, None) is None


# Tenants, limits of the service, approvals.


class _Refunds(BaseHTTPRequestHandler):
    made: list[Any] = []

    def do_POST(self) -> None:
        self.made.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = b'{"done": true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    server = HTTPServer(("127.0.0.1", 0), _Refunds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    config = f"""
[[tenants]]
name = "shop"
token_sha256 = "{sha256("bob")}"
approver_token_sha256 = "{sha256("carol")}"

[[tenants]]
name = "slow"
token_sha256 = "{sha256("dave")}"
runs_per_second = 1
burst = 1
tools = []

[tools.refund]
url = "http://127.0.0.1:{port}/refunds"
policy = "ask"
question = "Refund {{amount}}?"

[network]
allow_private = ["127.0.0.1:{port}"]
"""
    with Service(tmp_path_factory.mktemp("tenants"), config) as running:
        yield running
    server.shutdown()
    server.server_close()


def test_tenants_are_apart(tenants: Service, connect: Callable[..., Any]) -> None:
    shop, slow = connect(tenants.url, token="bob"), connect(tenants.url, token="dave")
    run = shop.start("(tool/ask {})", tools=[Tool.external("ask")])
    with pytest.raises(NotFound):
        slow.get(run)
    assert run.run_id in [listed.run_id for listed in shop.list().runs]
    assert run.run_id not in [listed.run_id for listed in slow.list().runs]
    with pytest.raises(Unauthorized) as refused:
        connect(tenants.url, token="eve").run("1")
    assert refused.value.status == 401 and refused.value.attempts == 1
    shop.cancel(run)


def test_approval_by_another_client(tenants: Service, connect: Callable[..., Any]) -> None:
    made = len(_Refunds.made)
    client, approver = connect(tenants.url, token="bob"), Client(tenants.url, token="carol")
    with pytest.raises(StillWaiting) as still:
        client.run("(tool/refund {:amount 20})", timeout=0.1)
    run = waiting(client, still.value.run)
    (call,) = run.calls
    assert (call.question, call.phase) == ("Refund 20?", "gate")
    with pytest.raises(Forbidden):
        client.approve(call)
    (seen,) = [listed for listed in approver.list(status="waiting").runs if listed.run_id == run.run_id]
    approver.approve(seen.calls[0], {"amount": 15})
    assert client.wait(run).value == {"done": True} and _Refunds.made[made:] == [{"amount": 15}]
    rejected = waiting(client, client.start("(tool/refund {:amount 1000})"))
    approver.reject(rejected.calls[0], "too much")
    outcome = client.wait(rejected)
    assert outcome.error.reason == "tool_denied" and "too much" in outcome.error.message
    assert len(_Refunds.made) == made + 1
    approver.close()


def test_a_rate_that_is_exceeded(tenants: Service, connect: Callable[..., Any]) -> None:
    hasty = connect(tenants.url, token="dave", retries=Retries(max_seconds=0))
    with pytest.raises(Busy) as busy:
        for _ in range(100):
            hasty.run("1")
    assert busy.value.status == 429 and busy.value.retry_after is not None and busy.value.retry_after >= 1
    assert connect(tenants.url, token="dave").run("(+ 1 2)").value == 3


def test_a_stuck_run(tmp_path: pathlib.Path, connect: Callable[..., Any]) -> None:
    config = f"""
[tools.refund]
url = "http://127.0.0.1:1/"
policy = "ask"
[network]
allow_private = ["127.0.0.1:1"]
"""
    with Service(tmp_path, config) as service:
        with Client(service.url) as client:
            run = waiting(client, client.start("(tool/refund {}) (tool/ask {})", tools=[Tool.external("ask")]))
            client.reject(run.calls[0], "no")
            client.wait(run)
            run = waiting(client, client.start("(tool/ask {}) (tool/refund {})", tools=[Tool.external("ask")]))
        service.kill()
    with Service(tmp_path) as service:
        client = connect(service.url)
        with pytest.raises(RunStuck, match="refund") as stuck:
            client.wait(run)
        assert stuck.value.run.status == "stuck" and stuck.value.run.error


# The description of the service.


class Described(dict[str, Any]):
    """An object of a response that checks that the document has each field that is read."""

    def __init__(self, fields: dict[str, Any], schema: dict[str, Any], document: dict[str, Any], read: set[str]) -> None:
        self._document, self._read = document, read
        self._schema = self._resolved(schema)
        super().__init__({name: self._of(name, value) for name, value in fields.items()})

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        for one in [schema, *schema.get("oneOf", ()), *schema.get("allOf", ())]:
            if "$ref" in one:
                found: dict[str, Any] = self._document["components"]["schemas"][one["$ref"].rsplit("/", 1)[1]]
                return found
        return schema

    def _of(self, name: str, value: Any) -> Any:
        schema = self._resolved(self._schema.get("properties", {}).get(name, {}))
        if isinstance(value, list) and "items" in schema:
            items = schema["items"]
            return [Described(one, items, self._document, self._read) if isinstance(one, dict) else one for one in value]
        if isinstance(value, dict) and "properties" in self._resolved(schema):
            return Described(value, schema, self._document, self._read)
        return value

    def _note(self, name: str) -> None:
        properties = self._schema.get("properties")
        described = properties if properties is not None else self._schema.get("description", "")
        assert name in described, f"{name} is not in {json.dumps(self._schema)[:300]}"
        self._read.add(name)

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return super().get(name, default)


def test_the_document_has_what_is_read(service: Service) -> None:
    document = httpx.get(service.url + "/openapi.json").json()
    schemas = document["components"]["schemas"]
    answer = httpx.post(
        service.url + "/v1/run",
        json={
            "program": '(tool/t {:n 1}) (:totl data/o) (+ 1\n nil)',
            "data": {"o": {"total": 1}},
            "tools": {"t": {"returns": 2}},
        },
    ).json()
    assert answer["error"] and answer["warnings"] and answer["ledger"], answer
    read: set[str] = set()
    outcome = Outcome._of(Described(answer, schemas["Answer"], document, read))
    assert not outcome.ok and outcome.prints_dropped == 0
    assert {"verdict", "reason", "kind", "worker", "fuel", "rss_peak_bytes", "truncated"} <= read
    with Client(service.url) as client:
        run = waiting(client, client.start("(tool/ask {})", tools=[Tool.external("ask")]))
        session = client.session().state()
    state = httpx.get(f"{service.url}/v1/runs/{run.run_id}").json()
    page = {"runs": [state]}
    from ptc_lisp.client import RunPage, SessionState

    (listed,) = RunPage._of(Described(page, schemas["RunList"], document, read)).runs
    assert (listed.run_id, listed.status, listed.calls) == (run.run_id, run.status, run.calls)
    found = httpx.get(f"{service.url}/v1/sessions/{session.session_id}").json()
    assert SessionState._of(Described(found, schemas["SessionState"], document, read)) == session
    problem = httpx.get(f"{service.url}/v1/runs/none").json()
    assert {"title", "detail", "status"} <= set(schemas["ProblemDetails"]["properties"]) and problem["detail"]
    assert "field" in schemas["ProblemDetails"]["properties"]


class Recorded(httpx.HTTPTransport):
    """A transport that keeps the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[httpx.Request, bytes]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request, request.read()))
        return super().handle_request(request)


def test_the_document_has_what_is_sent(service: Service) -> None:
    document = httpx.get(service.url + "/openapi.json").json()
    schemas = document["components"]["schemas"]
    transport = Recorded()
    with Client(service.url, transport=transport) as client:
        client.run("1", data={"a": 1}, limits=Limits(timeout=1, heap_mb=5), signature=":int", strict_data=True,
                   memory="{}", setup=["1"], json_keys="strings", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")
        client.run('(tool/price {:sku "a"})', tools=[price, Tool("u", function=print, cached=True)])
        run = waiting(client, client.start("(tool/ask {})", tools=[Tool.external("ask", "() -> :any")]))
        client.get(run, wait=1, since_ms=run.updated_ms - 1)
        client.fail(run.calls[0], "no", code=5)
        client.list(status="done", limit=1, cursor=client.list(limit=1).next)
        list(client.events(run, after="1"))
        with client.session(data={"n": 1}, setup=["1"]) as session:
            session.run("1")
            session.undo()
            session.fork().delete()
            session.state()
        client.cancel(run)
        client.check("1", data={"a": 1})
        client.prompt(json_keys="keywords")
    seen = set()
    for request, body in transport.requests:
        method, path = request.method.lower(), request.url.path
        (route,) = [route for route in document["paths"] if _fits(route, path) and method in document["paths"][route]]
        operation = document["paths"][route][method]
        seen.add((method, route))
        parameters = {parameter["name"]: parameter["in"] for parameter in operation.get("parameters", ())}
        assert set(request.url.params) <= {name for name, where in parameters.items() if where == "query"}
        own = {name for name in ("Idempotency-Key", "Last-Event-ID") if name in request.headers}
        assert own <= {name for name, where in parameters.items() if where == "header"}
        if body:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            _check(json.loads(body), schema, schemas)
    assert len(seen) == 15, seen


def _fits(route: str, path: str) -> bool:
    pattern, parts = route.split("/"), path.split("/")
    return len(pattern) == len(parts) and all(a == b or a.startswith("{") for a, b in zip(pattern, parts))


def _check(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Checks that a schema has each field of an object that it describes."""
    for one in [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]:
        if "$ref" in one:
            schema = schemas[one["$ref"].rsplit("/", 1)[1]]
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(value, dict) and properties is not None:
        assert set(value) <= set(properties), (value, sorted(properties))
        for name, inner in value.items():
            _check(inner, properties[name], schemas)
    elif isinstance(value, dict) and isinstance(others, dict):
        for inner in value.values():
            _check(inner, others, schemas)


def test_a_unix_socket(tmp_path: pathlib.Path, connect: Callable[..., Any]) -> None:
    with Service(tmp_path, socket=str(tmp_path / "ptc.sock")) as service:
        client = connect(service.url)
        assert client.run("(+ 1 2)").value == 3
        assert repr(client.client).endswith(f"Client of unix:{tmp_path}/ptc.sock>")


def test_ids_are_no_paths(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    session = client.session()
    client.do(session.run("(def x 1)"))
    for run in ("../sessions/" + session.session_id, f"x/../../sessions/{session.session_id}", "x?wait=60", "x#"):
        with pytest.raises(NotFound):
            client.cancel(run)
    assert client.do(session.run("x")).value == 1
    for run in ("", ".", ".."):
        with pytest.raises(ValueError, match="run_id must be as the service gave it"):
            client.get(run)
    with pytest.raises(ValueError, match="session_id"):
        client.load_session("..")


def test_memory_is_one_object(service: Service, connect: Callable[..., Any]) -> None:
    client = connect(service.url)
    assert client.run("(inc x)", memory='{"x": 1}').value == 2
    for memory in ('{},"program":"(+ 40 2)"', "[1]", "", '{"x": NaN}', "[" * 100_000):
        with pytest.raises(ValueError, match="memory must be"):
            client.run("1", memory=memory)


class Fake:
    """A server that answers each request with the same bytes, and counts them."""

    def __init__(
        self, answer: bytes, hangs: bool = False, drips: bool | bytes = False, drips_for: bytes | None = None
    ) -> None:
        self.answer, self._hangs, self._drips = answer, hangs, b" " if drips is True else drips
        self._drips_for = drips_for
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                received = b""
                while b"\r\n\r\n" not in received:
                    received += client.recv(65536)
                self.requests += 1
                drips = self._drips and (self._drips_for is None or self._drips_for in received.partition(b"\r\n")[0])
                if not drips or self._drips_for is None:
                    client.sendall(self.answer)
                while drips and not self._over.wait(0.02):
                    client.sendall(self._drips or b"")
                if self._hangs:
                    self._over.wait()
            except OSError:
                pass

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._listener.close()


def http(status: str, body: bytes, *headers: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "answer",
    [
        http("200 OK", b""),
        http("200 OK", b"<html>"),
        http("200 OK", b"{}"),
        http("200 OK", b"[]"),
        http("200 OK", b"[" * 200_000),
        http("200 OK", gzip.compress(b"{}"), "Content-Encoding: gzip"),
        http("302 Found", b"", "Location: http://elsewhere.example/"),
        http("400 Bad Request", b"{", "Content-Type: application/json"),
        http("400 Bad Request", b'{"detail": [1]}', "Content-Type: application/json"),
        http("503 Service Unavailable", b"", "Retry-After: \u00b2"),
        http("500 Internal Server Error", b"\xff\xfe"),
    ],
)
def test_whatever_is_answered_is_an_exception_of_the_client(connect: Callable[..., Any], answer: bytes) -> None:
    with Fake(answer) as fake:
        client = connect(fake.url, retries=Retries(max_seconds=0))
        for request in (lambda: client.run("1"), lambda: client.start("1"), lambda: client.list(), lambda: client.session()):
            with pytest.raises(ServiceError):
                request()
        blocking = Client(fake.url, retries=Retries(max_seconds=0))
        with pytest.raises(ServiceError):
            list(blocking.events("r1"))
        blocking.close()


# Answers that are not those of the service, made of recorded ones.


class Whole(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The bytes of a response."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class Recorder(httpx.HTTPTransport):
    """A transport that keeps the answers, by the kind of their request."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[str, int, str]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        got = super().handle_request(request)
        text = b"".join(got.stream).decode()  # type: ignore[arg-type]
        self.answers.append((kind_of(request), got.status_code, text))
        return httpx.Response(got.status_code, headers=got.headers, stream=Whole(text.encode()))


def kind_of(request: httpx.Request) -> str:
    """Returns the method and the path of a request, without names."""
    parts = request.url.path.split("/")
    return " ".join([request.method, "/".join("*" if at in (3, 5) else part for at, part in enumerate(parts))])


def recorded(service: Service) -> list[tuple[str, int, str]]:
    """Returns an answer of each kind, those of runs of several outcomes."""
    transport = Recorder()
    ask = Tool.external("ask", "(n :int) -> :int")
    with Client(service.url, transport=transport) as client:
        program = "(println 1) (let [y (:totl data/o)]\n  (tool/ask {:n 1}) (+ 1 y))"
        for memory in (None, "{}"):
            client.run('(println "a") (:totl data/o) [1 {:a 2}]', data={"o": {"total": 1}}, memory=memory)
        client.run("(let [x 5]\n (+ x nil))")
        client.run("(fail {:a 1})")
        run = waiting(client, client.start(program, tools=[ask], data={"o": {"total": 1}}))
        client.reply(run.calls[0], 1)
        client.wait(run)
        client.cancel(run)
        list(client.events(run))
        client.list(limit=1)
        with client.session(setup=["(def x 1)"]) as session:
            session.run("(def y (inc x))")
            session.undo()
            session.fork()
            session.state()
        client.check("(foo)")
        for wrong in (lambda: client.get("none"), lambda: client.run("1", traceparent=5)):
            with pytest.raises(Problem):
                wrong()  # type: ignore[no-untyped-call]
    # Of equal ones, the first.
    return list({(kind, status, re.sub(r"\d+", "0", text)): (kind, status, text) for kind, status, text in transport.answers}.values())


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from paths_of(one, (*path, key))


ABSENT = object()
OTHERS = [
    ABSENT, None, True, 0, 5, -1, 10**30, 1.5, "", "x", "..", "\ud800", "a\nb", [], [1], [[]], {}, {"a": 1}, {"a": []},
]


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Returns a value with another one at a path."""
    if not path:
        return other
    if len(path) == 1 and other is ABSENT:
        return {k: v for k, v in value.items() if k != path[0]} if isinstance(value, dict) else value[: path[0]]
    copied = value.copy()
    copied[path[0]] = changed(copied[path[0]], path[1:], other)
    return copied


def look_at(value: Any) -> None:
    """Uses all that an object of the client has in public."""
    if isinstance(value, (list, tuple)):
        for one in value:
            look_at(one)
    if not dataclasses.is_dataclass(value):
        return
    repr(value)
    for name in dir(type(value)) + list(vars(value)):
        if not name.startswith("_"):
            got = getattr(value, name)
            if callable(got):
                with contextlib.suppress(RunError):
                    got()
            else:
                look_at(got)


def uses_of(kind: str, client: Both, call: OpenCall) -> list[Callable[[], Any]]:
    """Returns what reads an answer to a request."""
    do = client.do
    session = SessionState("s", 1, 1, 1, 1, 1)
    own: Any = (AsyncSession if client.loop else Session)(client.client, session, None)

    def page() -> None:
        look_at(first := client.list())
        for run in first.runs:
            client.get(run)
        client.list(cursor=first.next)

    def opened() -> None:
        do(do(client.client.session()).run("1"))

    def answered() -> None:
        for each in client.get("r").calls:
            look_at(client.approve(each))

    uses: dict[str, list[Callable[[], Any]]] = {
        "POST /v1/run": [lambda: client.run("(a\nb)")],
        "POST /v1/runs": [lambda: client.run("(a\nb)", timeout=0.02), lambda: client.start("1"), lambda: client.cancel(client.start("1"))],
        "GET /v1/runs/*": [lambda: client.get("r"), lambda: client.wait("r", timeout=0.02), answered],
        "DELETE /v1/runs/*": [lambda: client.cancel("r")],
        "POST /v1/runs/*/calls/*": [lambda: client.reply(call, 1), lambda: client.reject(call, "no")],
        "GET /v1/runs": [page],
        "GET /v1/runs/*/events": [lambda: events_of(client, "r")],  # type: ignore[arg-type]
        "POST /v1/sessions": [opened],
        "GET /v1/sessions/*": [lambda: do(own.state()), lambda: client.load_session("s")],
        "POST /v1/sessions/*/turns": [lambda: do(own.run("1"))],
        "POST /v1/sessions/*/undo": [lambda: do(own.undo())],
        "POST /v1/sessions/*/fork": [lambda: do(own.fork())],
        "DELETE /v1/sessions/*": [lambda: do(own.delete())],
        "POST /v1/check": [lambda: client.check("1")],
    }
    return uses[kind]


def texts_of(kind: str, text: str) -> Iterator[tuple[Any, str]]:
    """Returns changed forms of an answer, each with what was changed."""
    if kind.endswith("/events"):
        for part in text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
            if lines.get("event") in ("answer", "print"):
                for change, data in texts_of("", lines["data"]):
                    yield change, f"id: 1\nevent: {lines['event']}\ndata: {data}\n\n"
        for name in ("\u00e9", "a\0b", " x ", "a\rb", "", "a\x01", "a" * 100_000):
            yield name, f"id: {name}\nevent: print\ndata: {{}}\n\n"
    elif text:
        document = json.loads(text)
        for path in paths_of(document):
            for other in OTHERS:
                if path or other is not ABSENT:
                    yield (path, other), json.dumps(changed(document, path, other))


def test_whatever_a_field_is_the_client_has_an_exception_for_it(
    service: Service, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="ptc_lisp")
    answers = recorded(service)
    normal = {kind: (status, text) for kind, status, text in answers}
    given: list[tuple[str, int, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        kind = kind_of(request)
        status, text = normal[kind]
        if given and kind == given[0][0]:
            _, status, text = given.pop()
        headers = {"Content-Type": "application/problem+json" if status >= 400 else "application/json"}
        return httpx.Response(status, headers=headers, stream=Whole(text.encode("utf-8", "surrogatepass")))

    monkeypatch.setattr(_requests, "_SAME", 0.001)
    client = connect("http://service", transport=httpx.MockTransport(handle), retries=Retries(max_seconds=0), tools=[price])
    call = OpenCall("r", "1", "price", {}, None, "result")
    tried = refused = 0
    for kind, status, text in answers:
        for change, other in texts_of(kind, text):
            for use in uses_of(kind, client, call):
                given[:] = [(kind, status, other)]
                tried += 1
                try:
                    look_at(use())
                except ServiceError as error:
                    refused += 1
                    str(error)
                except Exception as error:
                    raise AssertionError(f"{kind}: {change!r}: {error!r}") from error
    assert tried > 5_000 and refused > 1_000, (tried, refused)


@pytest.mark.parametrize(
    "where", ["mailto:x", "javascript:alert(1)", "http://xn--/", "http://[", "//", "http://a:99999999/", "?", "\xff", "http://a b"]
)
def test_redirects_to_no_address_are_problems(connect: Callable[..., Any], where: str) -> None:
    with Fake(http("302 Found", b"{}", f"Location: {where}")) as fake:
        client = connect(fake.url)
        for request in (lambda: client.run("1"), lambda: events_of(client, "r1")):  # type: ignore[arg-type]
            with pytest.raises(Problem, match="the service redirects to ") as raised:
                request()
            assert f"redirects to {where}, which is not followed" in str(raised.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 101 Switching Protocols\r\n\r\nx", b"\0\0\0", b"HTTP/1.1 999 \r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000])
def test_what_is_no_http_is_an_exception_of_the_client(connect: Callable[..., Any], answer: bytes) -> None:
    with Fake(answer) as fake:
        client = connect(fake.url, retries=Retries(max_seconds=0))
        for request in (lambda: client.run("1"), lambda: events_of(client, "r1")):  # type: ignore[arg-type]
            with pytest.raises(ServiceError):
                request()


def test_whatever_the_bytes_are_the_client_has_an_exception_for_them(connect: Callable[..., Any]) -> None:
    state = {"run_id": "r", "status": "running", "calls": [], "created_ms": 1, "updated_ms": 1}
    whole = http("200 OK", json.dumps(state).encode(), "Set-Cookie: a=b; Path=/; Max-Age=9", "Content-Type: application/json")
    random, seen = Random(4), {"read": 0, "refused": 0}
    with Fake(whole) as fake:
        client = connect(fake.url, retries=Retries(max_seconds=0))
        for _ in range(500):
            changed = bytearray(whole)
            for _ in range(random.randrange(1, 4)):
                at = random.randrange(len(changed))
                changed[at : at + random.choice((0, 1, 9))] = bytes(random.choice(b"\0\n\r :9\xff{") for _ in range(random.randrange(3)))
            fake.answer = bytes(changed)
            try:
                look_at(client.get("r"))
                seen["read"] += 1
            except ServiceError:
                seen["refused"] += 1
    assert min(seen.values()) > 20, seen


def test_cookies_are_not_sent_back(connect: Callable[..., Any]) -> None:
    state = {"run_id": "r", "status": "running", "calls": [], "created_ms": 1, "updated_ms": 1}
    answer = http("200 OK", json.dumps(state).encode(), "Set-Cookie: a=\xe9; Path=/", "Set-Cookie: b=c")
    with Fake(answer) as fake:
        client = connect(fake.url)
        used = client.client._http if isinstance(client.client, Client) else client.client._pool.http
        assert client.get("r") == client.get("r") and len(used.cookies.jar) == 0


def test_addresses_and_names_that_are_none_are_misuse(connect: Callable[..., Any]) -> None:
    for url in ("unix:", "http://", "http://xn--/", "http://h:99999", "http://a b", "http://[", "http://a\0", "http://%41"):
        with pytest.raises(ValueError, match="url must have the path|url is not a valid address"):
            connect(url)
    client = connect("http://127.0.0.1:9")
    for name in ("\ud800", "", ".."):
        with pytest.raises(ValueError, match="as the service gave it"):
            client.get(name)


@pytest.mark.parametrize(
    "answer, more",
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
)
def test_timeout_bounds_a_response_without_end(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, answer: bytes, more: bytes
) -> None:
    monkeypatch.setattr(_requests, "_SUBMITTING", 0.2)
    with Fake(answer, drips=more) as fake:
        client = connect(fake.url, timeout=600.0, retries=Retries(max_seconds=600))
        started = time.monotonic()
        with pytest.raises(ConnectionLost):
            client.run("1", timeout=0.2)
        with pytest.raises(ConnectionLost):
            client.wait("r1", timeout=0.2)
        brief = connect(fake.url, timeout=0.2, retries=Retries(max_seconds=0))
        if not answer.endswith(b"\r\n\r\n"):
            # Its headers have no end: the timeout of the client bounds those.
            for request in (lambda: brief.run("1"), lambda: brief.list(), lambda: brief.get("r1", wait=0.1)):
                with pytest.raises(ConnectionLost):
                    request()
            monkeypatch.setattr(_requests, "_STREAM_SILENCE", 0.1)
            with pytest.raises(ConnectionLost):
                events_of(brief, "r1")  # type: ignore[arg-type]
        assert time.monotonic() - started < 60


def test_timeout_bounds_each_request_of_a_run(connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_requests, "_SUBMITTING", 0.2)
    call = {"call": "1", "name": "price", "arguments": {"sku": "a"}, "question": None, "phase": "result"}
    state = {"run_id": "r", "status": "waiting", "calls": [call], "created_ms": 1, "updated_ms": 1}
    good = http("202 Accepted", json.dumps(state).encode())
    endless = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    started = time.monotonic()
    # The look at the run, and the reply to its call.
    for path in (b"GET ", b"/calls/"):
        with Fake(good, drips=endless, drips_for=path) as fake:
            client = connect(fake.url, timeout=600.0, retries=Retries(max_seconds=600))
            with pytest.raises((StillWaiting, ConnectionLost)):
                client.run("1", tools=[price], timeout=0.3)
            assert fake.requests > 1
    assert time.monotonic() - started < 60


def test_a_connection_is_used_again_with_its_own_time(service: Service, connect: Callable[..., Any]) -> None:
    with Proxy(service.port) as proxy:
        client = connect(proxy.url, timeout=1.0)
        for _ in range(3):
            assert client.run("1", timeout=60).value == 1
        # The service holds this one for longer than the timeout of the client, which is the time beyond.
        run = client.start("(tool/ask {})", tools=[Tool.external("ask")])
        waiting(client, run)
        assert not client.get(run, wait=2, since_ms=client.get(run).updated_ms).done
        assert proxy.connections == 1


def test_redirects_are_named_and_not_followed(connect: Callable[..., Any]) -> None:
    with Fake(http("307 Temporary Redirect", b"", "Location: https://new.example/")) as fake:
        with pytest.raises(Problem, match="redirects to https://new.example/, which is not followed"):
            connect(fake.url).run("1")


@pytest.mark.parametrize("drips", [False, True])
def test_timeout_bounds_a_service_that_does_not_answer(
    connect: Callable[..., Any], drips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_requests, "_SUBMITTING", 0.3)
    with Fake(b"HTTP/1.1 200 OK\r\n\r\n" if drips else b"", hangs=True, drips=drips) as fake:
        client = connect(fake.url, timeout=600.0, retries=Retries(max_seconds=600))
        started = time.monotonic()
        for tools in ([], [price]):
            with pytest.raises(ConnectionLost):
                client.run("1", tools=tools, timeout=0.3)
        assert time.monotonic() - started < 60


def test_what_is_read_is_bounded(connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sync, "MAX_BYTES", 10_000)
    monkeypatch.setattr(_requests, "MAX_BYTES", 10_000)
    with Fake(http("200 OK", b"[" + b"1," * 10_000)) as fake:
        with pytest.raises(UnexpectedAnswer, match="more than 10000 bytes"):
            connect(fake.url).run("1")
    endless = b"HTTP/1.1 200 OK\r\n\r\nevent: print\n" + b"data: 1\n" * 10_000
    with Fake(endless, hangs=True) as fake:
        with pytest.raises(UnexpectedAnswer, match="an event has more than 10000 bytes"):
            list(Client(fake.url).events("r1"))


def test_an_event_that_comes_again_is_not_progress() -> None:
    event = b'id: 1\nevent: print\ndata: {"line": "a"}\n\n'
    with Fake(http("200 OK", event)) as fake:
        seen = []
        with pytest.raises(ConnectionLost):
            for one in Client(fake.url, retries=Retries(max_seconds=0.3)).events("r1"):
                seen.append(one.id)
        assert seen == ["1"]


def test_requests_have_a_pause(connect: Callable[..., Any]) -> None:
    with Fake(http("429 Too Many Requests", b"", "Retry-After: 0")) as fake:
        with pytest.raises(Busy):
            connect(fake.url, retries=Retries(max_seconds=1)).run("1")
        assert 1 < fake.requests < 12, fake.requests
    state = {"run_id": "r", "status": "running", "calls": [], "created_ms": 1, "updated_ms": 1}
    with Fake(http("200 OK", json.dumps(state).encode())) as fake:
        with pytest.raises(StillWaiting):
            connect(fake.url).wait("r", timeout=2)
        assert fake.requests < 30, fake.requests


def test_what_is_no_header_is_misuse_and_not_shown(connect: Callable[..., Any]) -> None:
    for token in ("SECRET\nX: y", "SECRET ", "SECR\u00c9T", ""):
        with pytest.raises(ValueError, match="token must be") as raised:
            connect("http://127.0.0.1:1", token=token)
        assert "SECR" not in str(raised.value)
    with pytest.raises(ValueError, match="token=") as raised:
        connect("http://user:SECRET@127.0.0.1:1")
    assert "SECRET" not in str(raised.value)
    client = connect("http://127.0.0.1:1")
    for key in ("  x", "x\ny", "\u00e9", ""):
        with pytest.raises(ValueError, match="idempotency_key must be"):
            client.run("1", idempotency_key=key)
    with pytest.raises(ValueError, match="after must be"):
        list(Client("http://127.0.0.1:1").events("r1", after="x\r\ny"))


def test_tasks_that_are_cancelled_leave_no_run_behind(service: Service) -> None:
    async def attempt() -> None:
        @tool
        async def hangs() -> int:
            await asyncio.sleep(600)
            return 1

        async with AsyncClient(service.url, tools=[hangs]) as client:
            for number in range(24):
                task = asyncio.ensure_future(client.run("(tool/hangs)"))
                await asyncio.sleep(number / 2_000)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            for run in (await client.list(limit=1_000)).runs:
                started, state = time.monotonic(), run
                # Runs of other tests wait too. A cancelled run ends a moment after it was cancelled.
                while state.status != "done" and not any(call.tool != "hangs" for call in state.calls):
                    assert time.monotonic() - started < 60, "a run that nobody waits for"
                    state = await client.get(run, wait=5, since_ms=state.updated_ms)

    asyncio.run(attempt())


def test_exceptions_can_be_pickled() -> None:
    run = Run("r", "waiting", [], None, None, 1, 2)
    problem = NotFound(status=404, title="Not Found", detail="no", field="f", retry_after=1.5, attempts=2)
    lost = ConnectionLost("gone", may_have_happened=True)
    for error in (problem, lost, StillWaiting(run), RunStuck(run), UnexpectedAnswer("why", "text")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.__dict__ == error.__dict__


def test_an_exception_in_a_session_is_the_one_that_is_raised(service: Service) -> None:
    with Proxy(service.port) as proxy, pytest.raises(ZeroDivisionError):
        with Client(proxy.url, retries=Retries(max_seconds=0)).session():
            proxy.lose_responses(10)
            raise ZeroDivisionError


def test_connections_that_are_lost_are_replaced(service: Service) -> None:
    async def main() -> None:
        async with AsyncClient(service.url) as client:
            lost = client._pool

            def stream(*_: Any, **__: Any) -> Any:
                raise httpx.PoolTimeout("no connection is free")

            lost.http.stream = stream  # type: ignore[method-assign]
            assert (await client.run("(+ 1 2)")).value == 3
            assert client._pool is not lost and lost.http.is_closed and client._old_pools == set()

            # Those that requests have are not lost.
            busy = client._pool
            for _ in range(100):
                exchange = Exchange(None, 1)
                exchange.is_traced = True
                busy.exchanges.add(exchange)
            send, busy.http.stream = busy.http.stream, stream  # type: ignore[method-assign]
            with pytest.raises(ConnectionLost):
                await client.check("1")
            assert client._pool is busy
            busy.http.stream = send  # type: ignore[method-assign]
            assert (await client.run("1")).value == 1

    asyncio.run(main())
