"""Values go to a program and come back as they were."""

import asyncio
import random
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from ptc_lisp import Engine, Limits, Tool, ToolError, tool

ENGINE = Engine(limits=Limits(timeout=20))
EPOCH = datetime(1970, 1, 1)
TEXTS = ["", "plain", "käse", "日本語", "😀", 'quo"te', "back\\slash", "line\nfeed\t\x01", "x" * 300, ":keyword", "#D12"]


def back(value):
    outcome = ENGINE.run("data/v", data={"v": value})
    assert outcome.ok, outcome.error
    return outcome.value


def scalar(r):
    return r.choice(
        [
            lambda: None,
            lambda: r.random() < 0.5,
            lambda: r.randint(-(2**70), 2**70),
            lambda: r.randint(-1000, 1000),
            lambda: r.uniform(-1e300, 1e300),
            lambda: float(r.randint(-5, 5)),
            lambda: r.choice(TEXTS),
            lambda: "".join(chr(r.choice([r.randint(1, 0xD7FF), r.randint(0xE000, 0x10FFFF)])) for _ in range(5)),
            lambda: date.fromordinal(r.randint(1, date.max.toordinal())),
            lambda: EPOCH + timedelta(microseconds=r.randint(-(10**16), 10**17)),
            lambda: (EPOCH + timedelta(microseconds=r.randint(-(10**16), 10**17))).replace(tzinfo=timezone.utc),
            lambda: timedelta(microseconds=r.randint(-(10**17), 10**17)),
        ]
    )()


def value(r, depth):
    kind = r.random() if depth else 0
    if kind < 0.4:
        return scalar(r)
    if kind < 0.65:
        return [value(r, depth - 1) for _ in range(r.randint(0, 4))]
    if kind < 0.9:
        return {r.choice(TEXTS) + str(i): value(r, depth - 1) for i in range(r.randint(0, 12))}
    return {r.choice([r.randint(-9, 9), r.choice(TEXTS), date(2024, 1, r.randint(1, 31))]) for _ in range(r.randint(0, 4))}


def same(a, b):
    """Equality that also looks at types: 1, 1.0 and True are different."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def test_ten_thousand_random_values():
    r = random.Random(20261129)
    for _ in range(100):
        many = [value(r, 4) for _ in range(100)]
        for sent, came in zip(many, back(many), strict=True):
            assert same(sent, came)


def test_a_time_with_a_zone_is_the_same_instant():
    zoned = datetime(2024, 2, 29, 12, 30, 0, 5, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert back(zoned) == zoned and back(zoned).tzinfo == timezone.utc


def test_programs_compute_with_dates_and_sets():
    outcome = ENGINE.run(
        "[(.plusDays data/day 1) (contains? data/tags \"a\") (conj data/tags \"b\")]",
        data={"day": date(2024, 2, 28), "tags": {"a"}},
    )
    assert outcome.value == [date(2024, 2, 29), True, {"a", "b"}]


def test_tuples_and_mappings_are_lists_and_dicts():
    assert back((1, (2,))) == [1, [2]]
    assert back(OrderedDict(b=1, a=2)) == {"a": 2, "b": 1}


def test_a_set_with_lists_is_a_list():
    assert ENGINE.run("#{[1 2]}").value == [[1, 2]]


def test_keywords_are_strings():
    assert ENGINE.run("{:a :b}").value == {"a": "b"}


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ({"rows": [{"when": b"x"}]}, TypeError, """data["v"]['rows'][0]['when']: a bytes cannot be passed"""),
        ({"rows": [1, {2: 3}]}, TypeError, """data["v"]['rows'][1]: a key is an int; programs have string keys"""),
        ([1, float("nan")], ValueError, """data["v"][1]: NaN is not a number that programs have"""),
        ([float("-inf")], ValueError, """data["v"][0]: -inf is not a number"""),
        (object(), TypeError, """data["v"]: an object cannot be passed to a program; pass None, bool"""),
        (uuid.UUID(int=1), TypeError, """data["v"]: an UUID cannot be passed"""),
        ([10**5000], ValueError, "more than 4300 digits"),
        (["\ud800"], ValueError, """data["v"][0]: """),
    ],
)
def test_what_cannot_be_passed_is_named_by_its_path(bad, kind, message):
    with pytest.raises(kind) as raised:
        back(bad)
    assert message in str(raised.value)


def nested(levels, wrap):
    inner = 1
    for _ in range(levels):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {"k": v}])
def test_deep_values(wrap):
    assert ENGINE.run("(count (str data/v))", data={"v": nested(512, wrap)}).ok
    for levels in (513, 100_000):
        with pytest.raises(ValueError, match="nested more than 512"):
            back(nested(levels, wrap))


def test_deep_results():
    deep = "(reduce (fn [v _] [v]) 1 (range 100000))"
    outcome = ENGINE.run(deep, limits=Limits(heap_mb=10))
    assert not outcome.ok and outcome.value is None and outcome.error.reason == "result_limit_exceeded"


def test_a_value_that_contains_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested more than 512"):
        back(loop)


def test_nan_of_a_result_is_none_with_a_warning():
    outcome = ENGINE.run("[##NaN 1]")
    assert outcome.value == [None, 1]
    assert [warning.kind for warning in outcome.warnings] == ["null_in_value"]


def test_times_beyond_those_of_python_are_text():
    assert ENGINE.run('(java.time.LocalDate/parse "+12345-01-01")').value == "3789391 days after 1970-01-01"


def test_a_data_set_is_shared():
    engine = Engine()
    rows = engine.import_data("rows", [{"on": date(2024, 1, day)} for day in range(1, 31)])
    assert rows.name == "rows" and rows.bytes > 0
    for _ in range(3):
        outcome = engine.run("[(count data/rows) (:on (first data/rows))]", data_sets=[rows])
        assert outcome.value == [30, date(2024, 1, 1)]
    with pytest.raises(TypeError, match=r"rows\[0\]: a bytes"):
        engine.import_data("rows", [b""])


def test_methods_of_a_subclass_do_not_convert_it():
    class Day(date):
        def isoformat(self):
            return self

    class Moment(datetime):
        def isoformat(self, *_):
            return self

    class Span(timedelta):
        def total_seconds(self):
            return self

    for given, there in [(Day(2024, 1, 2), "2024-01-02"), (Moment(2024, 1, 2), "2024-01-02T00:00:00"), (Span(1), 86_400.0)]:
        assert Engine(tools=[tool(name="it")(lambda: [given])]).run("(tool/it {})").value == [there]


def test_tuples_are_their_items():
    class Perverse(tuple):
        def __iter__(self):
            raise RuntimeError("no items")

    assert Engine().run("(count data/x)", data={"x": Perverse([1, 2])}).value == 2

    async def pair() -> Any:
        return Perverse([1, 2])

    engine = Engine(tools=[Tool.from_function(pair, name="pair")], limits=Limits(timeout=20))
    assert asyncio.run(engine.run_async("(tool/pair)")).value == [1, 2]


def test_a_mapping_has_as_many_values_as_keys():
    class Uneven(Mapping):
        def __getitem__(self, key):
            return 1

        def __iter__(self):
            return iter("abc")

        def __len__(self):
            return 3

        def values(self):
            return [1]

    with pytest.raises(TypeError, match="as many values as keys"):
        Engine().run("1", data={"x": Uneven()})


@pytest.mark.parametrize(("code", "raised"), [(True, TypeError), (10**30, ValueError), (1.5, TypeError)])
def test_a_code_of_a_tool_error_reaches_the_program_whole(code, raised):
    with pytest.raises(raised):
        ToolError("no", code=code)
