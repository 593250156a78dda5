"""Runs that suspend and continue."""

import asyncio
import json
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from ptc_lisp import Engine, Limits, Outcome, Record, Suspended, Tool, allow, ask, tool


def refunds(called, **options):
    @tool(effect="write")
    def refund(amount: float) -> float:
        called.append(amount)
        return amount

    def policy(call):
        return ask(f"refund {call.arguments['amount']}?") if call.arguments.get("amount", 0) > 100 else allow()

    return Engine(tools=[refund], policy=policy, **options)


def test_an_approval():
    called = []
    engine = refunds(called)
    suspended = engine.start("(println 1) [(tool/refund {:amount 5}) (tool/refund {:amount 250})]")
    assert isinstance(suspended, Suspended) and called == [5]
    [call] = suspended.calls
    assert (call.tool, call.arguments, call.question, call.is_unknown) == ("refund", {"amount": 250}, "refund 250?", False)
    outcome = suspended.approve(call)
    assert isinstance(outcome, Outcome) and outcome.value == [5, 250] and called == [5, 250] and outcome.prints == ["1"]


def test_an_approval_with_other_arguments_and_a_rejection():
    called = []
    engine = refunds(called)
    suspended = engine.start("(tool/refund {:amount 250})")
    copy = Record(bytes(suspended.record))
    outcome = suspended.approve(suspended.calls[0], {"amount": 99})
    assert outcome.value == 99 and called == [99]
    copy.reject(copy.calls[0].name, "not today")
    rejected = engine.resume(copy)
    assert rejected.error.reason == "tool_denied" and "not today" in rejected.error.message and called == [99]


def test_external_tools():
    engine = Engine(tools=[Tool.external("ask", "(about :string) -> :string")])
    suspended = engine.start('(pmap #(tool/ask {:about %}) ["tea" "milk"])')
    assert [call.arguments for call in suspended.calls] == [{"about": "tea"}, {"about": "milk"}]
    suspended = suspended.reply(suspended.calls[1], "cold")
    [call] = suspended.calls
    assert call.arguments == {"about": "tea"}
    assert suspended.reply(call, "hot").value == ["hot", "cold"]
    failed = engine.start('(try (tool/ask {:about "x"}) (catch Exception e [(:code e) (:message e)]))')
    code, message = failed.fail(failed.calls[0], "nobody knows", code="UNKNOWN").value
    assert code == "UNKNOWN" and "nobody knows" in message


def test_a_run_that_does_not_stop_is_an_outcome():
    engine = refunds([])
    assert engine.start("(+ 1 2)").value == 3
    assert engine.start("(+ 1").error.reason == "parse_error"
    assert engine.start("(+ 1 nil)").error.reason == "type_error"


def test_a_record_travels():
    engine = refunds([])
    suspended = engine.start("[data/rows (tool/refund {:amount 250})]", data={"rows": [{"on": {1, 2}}]}, tenant="acme")
    record = pickle.loads(pickle.dumps(suspended.record))
    assert record.run_id == suspended.run_id and "tool/refund" in record.program and record.answer is None
    record.approve(record.calls[0])
    later = refunds([]).resume(bytes(record))
    assert later.value == [[{"on": {1, 2}}], 250] and later.run_id == suspended.run_id


def test_data_sets_are_given_again():
    engine = refunds([])
    rows = engine.import_data("rows", [1, 2])
    suspended = engine.start("(conj data/rows (tool/refund {:amount 250}))", data_sets=[rows])
    with pytest.raises(ValueError):
        engine.resume(suspended.record)
    assert suspended.approve(suspended.calls[0]).value == [1, 2, 250]


def test_misuse():
    engine = refunds([])
    with pytest.raises(ValueError):
        Record(b"nonsense\n")
    with pytest.raises(ValueError, match="bytes or str"):
        Record(5)
    suspended = engine.start("(tool/refund {:amount 250})")
    with pytest.raises(ValueError):
        suspended.approve("99")
    with pytest.raises(ValueError, match="refund"):
        Engine().resume(suspended.record)
    with pytest.raises(ValueError):
        suspended.approve(suspended.calls[0], [1])


def test_async_tools_in_runs_that_suspend():
    @tool(effect="write")
    async def pay(amount: float) -> float:
        return amount

    engine = Engine(tools=[pay], policy=lambda call: ask("?"))
    suspended = engine.start("(tool/pay {:amount 2})")
    assert suspended.approve(suspended.calls[0]).value == 2


KILLED = """
import os, sys
from ptc_lisp import Engine, tool, Limits

@tool(effect={effect!r})
def pay(amount: int) -> int:
    if len(sys.argv) > 2 and amount == 2:
        os.kill(os.getpid(), 9)
    with open(sys.argv[1] + ".calls", "a") as calls:
        calls.write(f"{{amount}} ")
    return amount * 10

engine = Engine(tools=[pay])
record = sys.argv[1]
if len(sys.argv) > 2:
    with open(record, "w") as file:
        def store(line):
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        engine.start("(mapv #(tool/pay {{:amount %}}) [1 2 3])", recorder=store)
else:
    with open(record, "rb") as file:
        outcome = engine.resume(file.read())
    print(outcome.value, outcome.error and outcome.error.reason)
"""


@pytest.mark.parametrize(
    ("effect", "printed", "calls"), [("read", "[10, 20, 30] None\n", "1 2 3 "), ("write", "None unknown_call\n", "1 ")]
)
def test_a_killed_process_loses_nothing(tmp_path, effect, printed, calls):
    script, record = tmp_path / "run.py", str(tmp_path / "record")
    script.write_text(textwrap.dedent(KILLED.format(effect=effect)))
    killed = subprocess.run([sys.executable, script, record, "first"], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    resumed = subprocess.run([sys.executable, script, record], timeout=60, capture_output=True, text=True)
    assert (resumed.stdout, pathlib.Path(record + ".calls").read_text()) == (printed, calls), resumed.stderr


def test_an_unknown_call_is_settled(tmp_path):
    script, record = tmp_path / "run.py", str(tmp_path / "record")
    script.write_text(textwrap.dedent(KILLED.format(effect="write")))
    subprocess.run([sys.executable, script, record, "first"], timeout=60)
    kept = Record(pathlib.Path(record).read_bytes())
    [call] = kept.calls
    assert call.is_unknown and call.arguments == {"amount": 2}
    kept.reply(call.name, 21)

    @tool(effect="write")
    def pay(amount: int) -> int:
        return amount * 10

    assert Engine(tools=[pay]).resume(kept).value == [10, 21, 30]


def test_a_recorder_that_fails_ends_the_run():
    called = []

    def broken(line):
        raise OSError("disk full")

    outcome = refunds(called).start("(tool/refund {:amount 5})", recorder=broken)
    assert outcome.error.reason == "host_fault" and called == []


def test_several_approvals_go_on_with_what_the_last_returned():
    called = []
    run = refunds(called).start("(pmap #(tool/refund {:amount %}) [101 102 103])")
    while isinstance(run, Suspended):
        before, run = run, run.approve(run.calls[0])
        for answer in (lambda: before.approve(before.calls[0]), lambda: before.reject(before.calls[0], "no")):
            with pytest.raises(ValueError, match="continued its run already"):
                answer()
    assert run.value == [101, 102, 103] and sorted(called) == [101, 102, 103]
    # A wrong answer continues nothing.
    run = refunds([]).start("(tool/refund {:amount 250})")
    with pytest.raises(ValueError):
        run.approve("99")
    with pytest.raises(TypeError, match="one of the run's `calls`"):
        run.approve(99)
    assert run.approve(run.calls[0]).value == 250


def test_a_rejection_in_a_pmap_waits_for_the_workers_before():
    called = []
    engine = refunds(called)
    run = engine.start("(pmap #(tool/refund {:amount %}) [101 102 103])")
    assert run.reject(run.calls[0], "no").error.reason == "tool_denied" and called == []
    run = engine.start("(pmap #(tool/refund {:amount %}) [101 102 103])")
    run = run.reject(run.calls[1], "no")
    assert isinstance(run, Suspended) and [call.arguments["amount"] for call in run.calls] == [101, 103]
    assert run.approve(run.calls[0]).error.reason == "tool_denied" and called == [101]
    run = engine.start("(pmap #(tool/refund {:amount %}) [101 102 103])")
    run = run.reject(run.calls[1], "second")
    outcome = run.reject(run.calls[0], "first")
    assert "first" in outcome.error.message and called == [101]


def test_approvals_in_async_code():
    @tool(effect="write")
    async def pay(amount: float) -> float:
        return amount

    engine = Engine(tools=[pay], policy=lambda call: ask("?"))

    async def main():
        with pytest.raises(RuntimeError, match="engine.start_async"):
            engine.start("(tool/pay {:amount 2})")
        run = await engine.start_async("(tool/pay {:amount 2})")
        with pytest.raises(RuntimeError, match="approve_async"):
            run.approve(run.calls[0])
        return await run.approve_async(run.calls[0])

    assert asyncio.run(main()).value == 2


def test_cancelling_the_task_of_a_run_that_may_suspend_ends_it():
    called = []

    @tool(effect="write")
    def pay(n: int) -> int:
        called.append(n)
        started.set()
        hold.wait(60)
        return n

    started, hold = threading.Event(), threading.Event()
    engine = Engine(tools=[pay], limits=Limits(timeout=60))

    async def main():
        task = asyncio.ensure_future(engine.start_async("(mapv #(tool/pay {:n %}) [1 2 3])"))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        hold.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert called == [1]


def test_mistakes_of_a_policy_are_logged(caplog):
    async def later(call):
        return allow()

    for policy, said, told in [
        (lambda call: call.nothing, "the policy raised for a call of tool/pay", "the host's policy raised AttributeError"),
        (lambda call: None, "a policy returns allow(), deny(reason) or ask(question), not NoneType", "returned NoneType"),
        (lambda call: True, "not bool; tool/pay was denied", "the host's policy returned bool"),
        (later, "not coroutine", "the host's policy returned coroutine"),
    ]:
        caplog.clear()
        engine = Engine(tools=[Tool("pay", function=lambda: 1, signature="() -> :int")], policy=policy)
        error = engine.run("(tool/pay {})").error
        assert error.reason == "tool_denied" and told in error.message
        assert said in caplog.text


def paying(paid, **options):
    @tool(effect="write")
    def pay(amount: float) -> float:
        paid.append(amount)
        return amount

    tools = [pay, Tool.external("look", "(n :int) -> :int")]
    return Engine(tools=tools, policy=lambda call: ask("pay?") if call.tool == "pay" else allow(), **options)


ANSWERS = {
    "approve": ("(tool/pay {:amount 5})", (), "<Outcome ok: 5>"),
    "reject": ("(tool/pay {:amount 5})", ("not today",), "<Outcome tool_denied: tool/pay was denied: not today>"),
    "reply": ("(tool/look {:n 1})", (7,), "<Outcome ok: 7>"),
    "fail": ("(tool/look {:n 1})", ("gone",), "<Outcome tool_error: tool/look: gone>"),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_an_answer_is_stored_before_the_run_continues(answer, is_async):
    program, given, shown = ANSWERS[answer]
    lines, paid = [], []
    run = paying(paid).start(program, recorder=lines.append)
    assert "".join(lines) == str(run.record) and all(line.endswith("\n") for line in lines)
    stored = len(lines)
    if is_async:
        outcome = asyncio.run(getattr(run, f"{answer}_async")(run.calls[0], *given))
    else:
        outcome = getattr(run, answer)(run.calls[0], *given)
    assert repr(outcome) == shown and paid == ([5] if answer == "approve" else [])
    # The process may end when the answer is stored.
    again, paid_again = Record("".join(lines[: stored + 1])), []
    assert [call.question for call in again.calls] == ([None] if answer == "approve" else [])
    assert repr(paying(paid_again).resume(again)) == shown and paid_again == paid
    # Nothing is done twice once the run has ended.
    assert repr(paying(paid_again).resume("".join(lines))) == shown and paid_again == paid


def test_an_answer_that_cannot_be_stored_answers_nothing():
    lines, paid, is_full = [], [], False

    def store(line):
        if is_full:
            raise OSError("disk full")
        lines.append(line)

    run = paying(paid).start("(tool/pay {:amount 5})", recorder=store)
    is_full = True
    with pytest.raises(OSError, match="disk full"):
        run.approve(run.calls[0])
    assert paid == [] and run.calls[0].question == "pay?" and str(run.record) == "".join(lines)
    is_full = False
    # The recorder may have stored the line before it failed.
    with pytest.raises(ValueError, match="may have stored the answer"):
        run.approve(run.calls[0])
    assert paid == []
    run = paying(paid).resume("".join(lines), recorder=store)
    assert run.approve(run.calls[0]).value == 5 and paid == [5]
    assert Engine(tools=[*paying([]).tools]).resume("".join(lines)).value == 5


def test_one_of_two_answers_at_once_is_refused():
    lines, paid, ended = [], [], []

    def store(line):
        time.sleep(0.05)
        lines.append(line)

    run = paying(paid).start("(pmap (fn [n] (tool/pay {:amount n})) [1 2])", recorder=store)
    calls = run.calls

    def approve(call):
        try:
            ended.append(type(run.approve(call)).__name__)
        except ValueError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=approve, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([end for end in ended if "has continued its run" in end]) == 1, ended
    assert len(paid) == len(set(paid))
    assert isinstance(Record("".join(lines)), Record)


def test_what_was_decided_in_the_record_is_stored_too():
    lines, paid = [], []
    run = paying(paid).start("(pmap #(tool/pay {:amount %}) [1 2])", recorder=lines.append)
    first, second = run.calls
    run.record.approve(first)
    assert run.approve(second).value == [1, 2] and paid == [1, 2]
    assert paying(paid).resume("".join(lines)).value == [1, 2] and paid == [1, 2]


@pytest.mark.parametrize("kind", [bytes, str])
def test_a_record_that_was_cut_off_is_not_added_to(kind):
    run = paying([]).start("(tool/pay {:amount 5})")
    run.record.approve(run.calls[0])
    whole = bytes(run.record) if kind is bytes else str(run.record)
    torn, lines, paid = whole[:-3], [], []
    with pytest.raises(ValueError, match=r"in the middle of a line.*bytes\(Record\(stored\)\)"):
        paying(paid).resume(torn, recorder=lines.append)
    assert lines == [] and paid == []
    # The decision was in the line that was cut off.
    assert isinstance(paying(paid).resume(torn), Suspended)
    assert paying(paid).resume(whole, recorder=lines.append).value == 5
    stored = bytes(Record(torn)) if kind is bytes else str(Record(torn))
    assert whole.startswith(stored) and stored[-1:] in ("\n", b"\n")
    assert isinstance(paying(paid).resume(stored, recorder=lines.append), Suspended)
    with pytest.raises(ValueError, match="empty|no run|record"):
        paying(paid).resume(kind(), recorder=lines.append)


def test_an_ended_record_without_its_decisions_does_not_ask_again():
    for program, decide, verdict in [
        ("(tool/pay {:amount 5})", lambda record: record.reject(record.calls[0], "no"), "error"),
        ("(tool/look {:n 1})", lambda record: record.reply(record.calls[0], 5), "ok"),
        ("(tool/look {:n 1})", lambda record: record.fail(record.calls[0], "gone"), "error"),
    ]:
        lines, paid = [], []
        run = paying(paid).start(program, recorder=lines.append)
        record = Record(bytes(run.record))
        decide(record)  # and nobody stores it
        assert paying(paid).resume(record, recorder=lines.append).verdict == verdict
        with pytest.raises(ValueError, match="has ended, and its record lacks the reply or decision for call 1"):
            paying(paid).resume("".join(lines))
        assert paid == [] and json.loads(Record("".join(lines)).answer)["verdict"] == verdict


def test_a_call_belongs_to_its_run():
    first, second = (paying([]).start("(tool/pay {:amount 5})") for _ in range(2))
    [call] = second.calls
    wanted = f"call 1 is of the run {second.run_id}, and this is the run {first.run_id}"
    record = Record(bytes(first.record))
    for answer in (
        lambda: first.approve(call),
        lambda: first.reject(call, "no"),
        lambda: first.reply(call, 1),
        lambda: first.fail(call, "no"),
        lambda: asyncio.run(first.approve_async(call)),
        lambda: record.approve(call),
        lambda: record.reject(call, "no"),
        lambda: record.reply(call, 1),
        lambda: record.fail(call, "no"),
        lambda: record.not_made(call),
    ):
        with pytest.raises(ValueError, match=wanted):
            answer()
    assert bytes(record) == bytes(first.record)
    # The same run in another process, or by its name.
    record.approve(Record(bytes(first.record)).calls[0])
    assert first.approve(call.name).value == 5


def interrupted(effect, how):
    """Returns an engine whose tool is interrupted at its first call, and what it did."""
    paid = []

    @tool(effect="read" if effect == "read" else "write", idempotent=effect == "idempotent")
    async def pay(amount: int) -> int:
        paid.append(amount)
        if len(paid) > 1:
            return amount
        if how == "exit":
            sys.exit(3)
        await asyncio.sleep(60)
        raise AssertionError

    return Engine(tools=[pay], limits=Limits(timeout=0.2 if how == "deadline" else 60)), paid


@pytest.mark.parametrize("how", ["deadline", "exit"])
@pytest.mark.parametrize("effect", ["read", "write", "idempotent"])
def test_a_call_that_was_interrupted_is_not_made_again(effect, how):
    (engine, paid), lines = interrupted(effect, how), []
    if how == "exit":
        with pytest.raises(SystemExit):
            engine.start("(tool/pay {:amount 5})", recorder=lines.append)
    else:
        assert engine.start("(tool/pay {:amount 5})", recorder=lines.append).verdict == "timeout"
    assert paid == [5]
    record = Record("".join(lines))
    [call] = record.calls
    assert call.is_unknown and call.question is None
    resumed = engine.resume(record)
    if effect == "read":
        assert resumed.value == 5 and paid == [5, 5]
    else:
        assert resumed.error.reason == "unknown_call" and paid == [5]
        record.reply(call, 7)
        assert engine.resume(record).value == 7 and paid == [5]


def test_a_blocking_tool_that_exits_is_not_called_again():
    lines = []

    @tool(effect="write")
    def pay() -> int:
        sys.exit(3)

    engine = Engine(tools=[pay])
    with pytest.raises(SystemExit):
        engine.start("(tool/pay)", recorder=lines.append)
    assert engine.resume("".join(lines)).error.reason == "unknown_call"
