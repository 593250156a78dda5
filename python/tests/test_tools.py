"""Tools made of functions."""

import asyncio
import dataclasses
import datetime
import enum
import threading
import time
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from ptc_lisp import Engine, Limits, Tool, ToolCall, ToolError, Tools, tool

Line = TypedDict("Line", {"sku": str, "quantity": int})


def signatures(*tools):
    return dict(Engine(tools=tools)._core.signatures())


def error_of(outcome):
    assert not outcome.ok
    return outcome.error


def test_parameters_and_results_from_plain_hints():
    @tool(effect="read")
    def price(
        sku: str,
        lines: list[Line],
        currency: Literal["EUR", "USD"] = "EUR",
        limit: Optional[int] = None,
        note: Annotated[str, "for the customer"] = "",
        tags: dict[str, list[float]] | None = None,
        anything: Any = None,
    ) -> float:
        """Price of an order.

        Args:
            sku: The item.
            lines: One line for
                each item.
        """
        return 1.5

    assert isinstance(price, Tool) and price.name == "price" and price.effect == "read"
    assert price.description == "Price of an order." and price("a", []) == 1.5
    engine = Engine(tools=[price])
    assert "tool/price (sku :string, lines [{" in engine.prompt() and "Price of an order." in engine.prompt()
    good = '(tool/price {:sku "a" :lines [{:sku "b" :quantity 1}] :currency "USD" :limit nil :tags {"x" [1 2.5]}})'
    assert engine.run(good).value == 1.5
    for bad, message in [
        ("{:sku 1 :lines []}", "sku: expected a string"),
        ('{:sku "a"}', "lines"),
        ('{:sku "a" :lines [{:sku "b"}]}', "quantity"),
        ('{:sku "a" :lines [] :currency "GBP"}', "currency"),
        ('{:sku "a" :lines [] :curency "EUR"}', "curency"),
    ]:
        error = error_of(engine.run(f"(tool/price {bad})"))
        assert error.reason == "invalid_tool_args" and message in error.message, error.message


def test_results_that_do_not_fit_are_errors_of_the_tool():
    @tool
    def price() -> float:
        return "dear"

    error = error_of(Engine(tools=[price]).run("(tool/price {})"))
    assert error.reason == "tool_error" and "tool/price" in error.message


@pytest.mark.parametrize(
    ("result", "message"),
    [(b"x", "its result: a bytes cannot be passed"), (float("nan"), "NaN"), ({1: 2}, "a key is an int"), (object(), "an object")],
)
def test_rubbish_is_an_error_of_the_tool(result, message):
    error = error_of(Engine(tools=[tool(name="t")(lambda: result)]).run("(tool/t {})"))
    assert error.reason == "tool_error" and message in error.message


def test_results_become_plain_values():
    class Colour(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Point:
        x: int
        colour: Colour

    engine = Engine(tools=[tool(name="t")(lambda: [Point(1, Colour.RED), datetime.date(2024, 1, 2), (1,), {2}])])
    assert engine.run("(tool/t {})").value == [{"x": 1, "colour": "red"}, "2024-01-02", [1], [2]]


def test_exceptions_are_errors_that_programs_catch():
    @tool
    def find(id: int) -> str:
        if id == 1:
            raise ToolError("no order 1", code="NOT_FOUND")
        if id == 2:
            raise ToolError("no order 2", code=404)
        raise KeyError("oops")

    engine = Engine(tools=[find])
    assert engine.run("(try (tool/find {:id 1}) (catch Exception e (:code e)))").value == "NOT_FOUND"
    assert engine.run("(try (tool/find {:id 2}) (catch Exception e (:code e)))").value == 404
    error = error_of(engine.run("(tool/find {:id 3})"))
    assert error.reason == "tool_error" and "KeyError: 'oops'" in error.message


def test_limits_of_calls():
    calls = []
    engine = Engine(
        tools=[tool(name="once", max_calls=1)(lambda n: calls.append(n)), tool(name="same", cached=True)(lambda n: calls.append(n))]
    )
    assert error_of(engine.run("(tool/once {:n 1}) (tool/once {:n 2})")).reason == "tool_call_limit_exceeded"
    assert engine.run("(tool/same {:n 3}) (tool/same {:n 3}) 1").value == 1
    assert calls == [1, 3]


def test_tagged_detached_and_redacted():
    engine = Engine(
        tools=[
            tool(name="bad", tagged=True)(lambda: 1 / 0),
            tool(name="slow", detached=True)(lambda: time.sleep(3)),
            tool(name="secret", redact=["password"])(lambda password: len(password)),
        ],
        limits=Limits(timeout=0.2),
    )
    assert "ZeroDivisionError" in engine.run("(:message (:error (tool/bad {})))").value
    started = time.monotonic()
    assert error_of(engine.run("(tool/slow {})")).reason == "timeout" and time.monotonic() - started < 2.5
    outcome = engine.run('(tool/secret {:password "abc"})')
    assert outcome.value == 3 and outcome.ledger[0].arguments == {"password": "[redacted]"}


def test_a_tool_sees_its_call():
    @tool
    def look(n: int, call: ToolCall) -> list:
        return [n, call.tool, call.place, call.is_cancelled, 0 < call.remaining <= 1, call.traceparent]

    engine = Engine(tools=[look])
    assert "call" not in engine.prompt().partition("tool/look")[2].split(";")[0].partition(")")[0]
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert engine.run("(tool/look {:n 5})", traceparent=trace).value == [5, "look", "1", False, True, trace]


def test_json_schema_and_signature():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    engine = Engine(
        tools=[
            Tool.from_json_schema("double", schema, lambda n: 2 * n, description="Doubles."),
            Tool("half", function=lambda n: n / 2, signature="(n :float) -> :float"),
        ]
    )
    assert engine.run("[(tool/double {:n 4}) (tool/half {:n 3.0})]").value == [8, 1.5]
    assert "n" in error_of(engine.run("(tool/double {:n 0})")).message
    with pytest.raises(ValueError, match="tool x"):
        Engine(tools=[Tool("x", input_schema={"type": "nonsense"})])
    with pytest.raises(ValueError, match="signature and a JSON Schema"):
        Engine(tools=[Tool("x", input_schema=schema, signature="()")])


def test_tools_of_an_mcp_server():
    called = []

    async def call(name, arguments):
        called.append((name, arguments))
        return {"content": name}

    listed = [
        {
            "name": "issues/list",
            "description": "Lists issues.",
            "inputSchema": {"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}},
            "annotations": {"readOnlyHint": True},
        }
    ]
    tools = Tools.from_mcp(listed, call)
    assert len(tools) == 1 and tools[0].effect == "read" and [one.name for one in tools] == ["issues/list"]
    engine = Engine(tools=tools)
    outcome = asyncio.run(engine.run_async('(:content (tool/issues%2Flist {:state "open"}))'))
    assert outcome.value == "issues/list" and called == [("issues/list", {"state": "open"})]


@pytest.mark.parametrize(
    "function", [lambda *rest: 1, lambda **rest: 1, eval("lambda n, /: n")], ids=["args", "kwargs", "positional"]
)
def test_functions_that_cannot_be_tools(function):
    with pytest.raises(TypeError):
        tool(name="t")(function)


def test_names_and_bare_functions():
    def plain(n):
        return n + 1

    assert Engine(tools=[plain]).run("(tool/plain {:n 1})").value == 2
    with pytest.raises(TypeError, match="has no name"):
        tool(lambda n: n)


def test_external_tools_fail_in_a_plain_run():
    error = error_of(Engine(tools=[Tool.external("ask", "(q :string) -> :string")]).run('(tool/ask {:q "?"})'))
    assert error.reason == "tool_error" and "external" in error.message


def test_calls_from_workers_run_in_threads():
    threads = set()
    barrier = threading.Barrier(4)

    @tool
    def meet(n: int) -> int:
        barrier.wait(10)
        threads.add(threading.get_ident())
        return n

    engine = Engine(tools=[meet], limits=Limits(timeout=20, parallel_timeout=20))
    assert engine.run("(pmap #(tool/meet {:n %}) (range 4))").value == [0, 1, 2, 3] and len(threads) == 4


pydantic = pytest.importorskip("pydantic")


def test_unknown_keys_of_models_are_those_of_pydantic():
    class Loose(pydantic.BaseModel):
        sku: str

    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        sku: str

    def loose(item: Loose) -> str:
        return item.sku

    def strict(item: Strict) -> str:
        return item.sku

    engine = Engine(tools=[loose, strict])
    assert engine.run('(tool/loose {:item {:sku "a" :colour "red"}})').value == "a"
    refused = engine.run('(tool/strict {:item {:sku "a" :colour "red"}})').error
    assert refused.reason == "invalid_tool_args" and 'unknown field "colour": expected sku' in refused.message


def test_hints_of_pydantic():
    class Item(pydantic.BaseModel):
        sku: str
        quantity: int = pydantic.Field(1, ge=1)

    @dataclasses.dataclass
    class Receipt:
        total: float
        due: datetime.date

    got = []

    @tool
    def order(items: list[Item], when: datetime.datetime, tags: set[str] = frozenset()) -> Receipt:
        got.append((items, when, tags))
        return Receipt(total=2.0 * len(items), due=when.date())

    engine = Engine(tools=[order])
    outcome = engine.run('(tool/order {:items [{:sku "a"} {:sku "b" :quantity 2}] :when "2024-01-02T03:04:05Z"})')
    assert outcome.value == {"total": 4.0, "due": "2024-01-02"}
    assert got == [([Item(sku="a"), Item(sku="b", quantity=2)], datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), frozenset())]
    assert error_of(engine.run('(tool/order {:items [{:sku "a" :quantity 0}] :when "2024-01-02"})')).reason == "invalid_tool_args"
    error = error_of(engine.run('(tool/order {:items [] :when "soon"})'))
    assert error.reason == "invalid_tool_args" and "when" in error.message


def test_a_result_of_a_model_is_checked():
    class Answer(pydantic.BaseModel):
        n: int

    @tool
    async def good() -> Answer:
        return Answer(n=1)

    @tool
    def bad() -> Answer:
        return {"n": "x"}

    engine = Engine(tools=[good, bad])
    assert engine.run("(:n (tool/good {}))").value == 1
    assert error_of(engine.run("(tool/bad {})")).reason == "tool_error"
