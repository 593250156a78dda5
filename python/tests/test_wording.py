"""Texts of the runtime that reach users of this package name nothing of Rust, of the service or of the command line."""

import pathlib
import re

import pytest

from ptc_lisp import Engine, Limits, Record, Suspended, Tool, ask, deny, tool
from ptc_lisp._engine import reworded

ROOT = pathlib.Path(__file__).parents[2]

# Comments, raw strings, strings, characters.
_LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|r(#*)\"(.*?)\"\1|\"((?:[^\"\\]|\\.)*)\"|'(?:[^'\\\n]|\\.[^'\n]*)'", re.S)
# Paths and calls of Rust, routes, the command and its options, and limits in units that this package does not have.
_FOREIGN = re.compile(
    r"\b[A-Za-z_]\w*::\w+|\b(?:GET|POST|DELETE) /|\bptcl (?:run|serve|repl)\b|(?:^|[\s(`])--[a-z][a-z-]+|\b(?:run|eval)_async\b(?!\()"
    r"|raise the limits? (?:\w+ or )?(?:\w+_bytes|\w+_ms)\b|lower the limit \w+_bytes"
)
# Counted in bytes here too.
_SAME_UNIT = re.compile(r"raise the limit (?:program|prints|result|session|session_program)_bytes")
# Texts that no user of this package can get, and why.
_UNREACHABLE = {
    "lisp-core/src/builtins/strings.rs": "an example of the language",
    "lisp-core/src/code/bytecode.rs": "an assertion",
    "lisp-runtime/src/text/reference.rs": "the pages that ptcl doc writes",
    "lisp-runtime/src/text/reference_tests.rs": "the pages that ptcl doc writes",
    "sandbox/src/beside/closures/bounds.rs": "functions beside a sandbox, which the package does not have",
    "sandbox/src/beside/closures/functions.rs": "functions beside a sandbox, which the package does not have",
    "sandbox/src/host/domains.rs": "domains, which the package does not have",
    "sandbox/src/guest/main.rs": "of the process itself",
}


def literals(path):
    text = path.read_text()
    tests = re.search(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{", text)
    text = text[: tests.start()] if tests else text
    for found in _LITERAL.finditer(text):
        literal = found[2] if found[2] is not None else found[3]
        # Texts have several words; the others are names for serde and the like.
        if literal is not None and " " in literal:
            yield re.sub(r"\\\n\s*", "", literal).replace('\\"', '"')


def test_no_text_names_what_python_does_not_have():
    texts, foreign = 0, []
    for crate in ("lisp-core", "lisp-runtime", "sandbox"):
        for path in sorted((ROOT / crate / "src").rglob("*.rs")):
            name = str(path.relative_to(ROOT))
            if "tests" in path.parts or "testing" in path.parts or path.stem.endswith("tests") or name in _UNREACHABLE:
                continue
            for literal in literals(path):
                texts += 1
                left = _SAME_UNIT.sub("", reworded(literal))
                if _FOREIGN.search(left):
                    foreign.append(f"{name}: {left}")
    assert texts > 1_000
    assert not foreign, "\n".join(foreign)


def test_each_replaced_text_still_exists():
    sources = " ".join(
        literal
        for crate in ("lisp-core", "lisp-runtime", "sandbox")
        for path in (ROOT / crate / "src").rglob("*.rs")
        for literal in literals(path)
    )
    table = (ROOT / "python/src/wording.rs").read_text()
    table = re.sub(r"\\\n\s*", "", table[table.index("const WORDS") : table.index("];")])
    pairs = re.findall(r'\(\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)",?\s*\)', table)
    assert len(pairs) > 20
    missing = [theirs for theirs, _ in pairs if theirs not in sources and theirs.replace("{", "").split(" {")[0] not in sources]
    # Limits are named by a placeholder in some texts.
    assert [text for text in missing if not text.startswith(("raise the limit ", "lower the limit "))] == []


def test_an_approval_that_cannot_be_waited_for():
    @tool(effect="write")
    def pay() -> int:
        return 1

    engine = Engine(tools=[pay], policy=lambda call: ask("pay?"))
    for outcome in (engine.run("(tool/pay)"), engine.session().run("(tool/pay)")):
        assert outcome.error.reason == "approval_required"
        for text in (outcome.error.hint, outcome.error.report(), outcome.to_json()):
            assert "engine.start(...)" in text and "Engine::" not in text and "POST" not in text


def test_hints_of_limits_have_the_names_of_this_package():
    assert "limit timeout" in Engine(limits=Limits(timeout=0.01, fuel=0, loop_iterations=0)).run("(loop [i 0] (recur (inc i)))").error.hint
    engine = Engine(limits=Limits(heap_mb=1))
    hint = engine.run("(vec (range 1000000))").error.hint
    assert "raise the limit heap_mb" in hint
    with pytest.raises(ValueError, match="raise the limit setup_heap_mb"):
        Engine(limits=Limits(setup_heap_mb=0.001)).import_data("rows", list(range(10_000)))


def test_a_limit_above_the_ceiling_is_an_error():
    engine = Engine(limits=Limits(timeout=1))
    wanted = r"timeout is 5, and the ceiling of the engine is 1; .*Engine\(ceiling=Limits\(\.\.\.\)\)"
    for run in (
        lambda limits: engine.run("1", limits=limits),
        lambda limits: engine.start("1", limits=limits),
        lambda limits: engine.session(limits=limits),
    ):
        with pytest.raises(ValueError, match=wanted):
            run(Limits(timeout=5))
    with pytest.raises(ValueError, match="heap_mb is 50.5, and the ceiling of the engine is 10; tool_calls is 0"):
        engine.run("1", limits=Limits(heap_mb=50.5, tool_calls=0))
    assert engine.run("1", limits=Limits(timeout=0.5)).value == 1
    roomy = Engine(ceiling=Limits(timeout=60, heap_mb=100))
    assert roomy.run("1", limits=Limits(timeout=60, heap_mb=100)).value == 1
    with pytest.raises(TypeError, match=r"limits must be Limits\(\.\.\.\), not dict"):
        engine.run("1", limits={"timeout": 1})


def test_data_that_is_not_by_name():
    engine = Engine()
    for wrong in ([1], "text", 5):
        with pytest.raises(TypeError, match=r'data must be a dict of values by name, as in data=\{"orders": \[\.\.\.\]\}'):
            engine.run("1", data=wrong)
    session = engine.session(data={"n": 1})
    with pytest.raises(TypeError, match=r"a turn of a session has no data; give data to the session.*engine.session\(data="):
        session.run("data/n", data={"n": 2})
    with pytest.raises(TypeError, match="a turn of a session has no run_id; run the program with engine.run"):
        session.run("data/n", run_id="x")
    assert session.run("data/n").value == 1


@pytest.mark.parametrize(
    ("misuse", "wanted"),
    [
        (lambda: Engine().run(5), "a program is a str, not int"),
        (lambda: Engine().run("1", tenant=5), "tenant must be a str, not int"),
        (lambda: Engine().run("1", memory={"a": 1}), 'memory must be a str: outcome.memory of an earlier run, or "{}", not dict'),
        (lambda: Engine().run("1", setup="(def a 1)"), r'setup must be a list of programs, as in setup=\['),
        (lambda: Engine().run("1", on_print=5), "on_print must be a function, not int"),
        (lambda: Engine(limits={"timeout": 1}), r"limits must be Limits\(...\), not dict"),
        (lambda: Engine(ceiling={"timeout": 1}), r"ceiling must be Limits\(...\), not dict"),
        (lambda: Engine(policy="no"), "policy must be a function, not str"),
        (lambda: Engine(tools=print), r"tools must be a list, as in tools=\[price\]"),
        (lambda: Engine(tools=["price"]), "a tool is a function or a Tool, not str"),
    ],
)
def test_misuse_names_the_option(misuse, wanted):
    with pytest.raises(TypeError, match=wanted):
        misuse()


def test_data_sets():
    engine = Engine(tools=[Tool.external("ask")])
    orders, rates = engine.import_data("orders", [1, 2]), engine.import_data("rates", [3])
    with pytest.raises(TypeError, match="data_sets is a list of what engine.import_data.*it has dict; pass other values as data="):
        engine.run("1", data_sets=[{"orders": [1]}])
    run = engine.start("[(tool/ask {}) data/orders]", data_sets=[orders])
    assert isinstance(run, Suspended)
    stored = bytes(run.record)
    with pytest.raises(ValueError, match=r"engine.resume\(record, data_sets=.*there are none"):
        engine.resume(stored)
    with pytest.raises(ValueError, match="there are: rates") as refused:
        engine.resume(stored, data_sets=[rates])
    assert "digest" not in str(refused.value)
    resumed = engine.resume(stored, data_sets=[orders])
    assert resumed.reply(resumed.calls[0], 5).value == [5, [1, 2]]


def test_what_cannot_be_pickled_says_what_to_store():
    import pickle

    engine = Engine(tools=[Tool.external("ask")])
    run = engine.start("(tool/ask {})")
    with pytest.raises(TypeError, match=r"store bytes\(suspended.record\) and pass it to engine.resume"):
        pickle.dumps(run)
    with pytest.raises(TypeError, match="create one in each process"):
        pickle.dumps(engine)
    assert pickle.loads(pickle.dumps(run.record)).run_id == run.run_id


def test_a_record_takes_calls_and_their_names():
    @tool(effect="write")
    def pay(amount: int) -> int:
        return amount

    engine = Engine(tools=[pay], policy=lambda call: ask(f"pay {call.arguments['amount']}?"))
    stored = bytes(engine.start("(tool/pay {:amount 5})").record)
    for approve in (
        lambda record: record.approve(record.calls[0]),
        lambda record: record.approve(record.calls[0].name),
    ):
        record = Record(stored)
        approve(record)
        assert engine.resume(record).value == 5
    record = Record(stored)
    record.approve(record.calls[0], {"amount": 3})
    assert engine.resume(record).value == 3
    with pytest.raises(ValueError, match="no call 9"):
        Record(stored).approve("9")
    with pytest.raises(ValueError, match="is not a record") as refused:
        Record(b"{}")
    assert "bytes(suspended.record)" in str(refused.value) and "ptcl" not in str(refused.value)


def test_a_calls_tool_has_one_name():
    asked = []

    def policy(call):
        asked.append(call.tool)
        return ask("?") if call.tool == "b" else deny("no") if call.tool == "c" else __import__("ptc_lisp").allow()

    engine = Engine(tools=[tool(name="a")(lambda: 1), tool(name="b")(lambda: 2)], policy=policy)
    run = engine.start("[(tool/a) (tool/b)]")
    assert [call.tool for call in run.calls] == ["b"]
    assert [entry.tool for entry in run.approve(run.calls[0]).ledger] == ["a", "b"] and asked == ["a", "b"]


def test_exceptions_of_tools_are_logged(caplog):
    def broken(n: int) -> int:
        return 1 // n

    async def also_broken() -> int:
        raise KeyError("x")

    import asyncio

    engine = Engine(tools=[broken, also_broken])
    assert not engine.run("(tool/broken {:n 0})").ok
    assert not asyncio.run(engine.run_async("(tool/also_broken)")).ok
    assert not engine.run("(tool/also_broken)").ok
    logged = [(record.name, record.getMessage()) for record in caplog.records]
    assert logged == [("ptc_lisp", "tool/broken raised")] + [("ptc_lisp", "tool/also_broken raised")] * 2
    assert "return 1 // n" in caplog.text and "ZeroDivisionError" in caplog.text
    caplog.clear()
    from ptc_lisp import ToolError

    def refuses() -> None:
        raise ToolError("no", code="NO")

    assert not Engine(tools=[refuses]).run("(tool/refuses)").ok and not caplog.records


def test_dates_in_a_report():
    import datetime

    data = {"day": datetime.date(2026, 1, 2), "at": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone.utc)}
    error = Engine().run("(let [day data/day at data/at] (+ day at))", data=data).error
    assert error.locals["day"] == '"2026-01-02"' or "2026-01-02" in error.locals["day"]
    assert "2026-01-02" in error.report() and "03:00" in error.report()
