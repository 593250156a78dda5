//! The gate: policies, approvals, ceilings and redaction of tools, tagged tools, budgets. What can be tried at both doors is.

use crate::remote::eval_in_two;
use lisp_runtime::{
    Amounts, AskedCall, Budget, BuildError, CallStatus, Effect, Engine, Input, Keys, Limits, Outcome, PolicyDecision,
    Progress, Reason, Record, RecordError, Recording, Settled, Tool, ToolError, ToolPolicy, Waiting,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn reason(outcome: &Outcome) -> Option<Reason> {
    outcome.problem().map(|problem| problem.reason())
}

fn message(outcome: &Outcome) -> String {
    outcome.problem().map(|problem| problem.error.message.clone()).unwrap_or_default()
}

/// The outcome at one of the doors.
fn at(door: usize, engine: &Engine, program: &str, input: Input<'_>) -> Outcome {
    if door == 0 { engine.eval(program, input) } else { eval_in_two(engine, program, &input) }
}

/// The outcomes at both doors, one after the other.
fn both(engine: &Engine, program: &str, input: &Input<'_>) -> impl Iterator<Item = Outcome> {
    (0..2).map(move |door| at(door, engine, program, input.clone()))
}

/// A tool that returns its `n`, and how often it was called.
fn counted(name: &str) -> (Tool, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let its = calls.clone();
    let tool = Tool::new(name, move |call| {
        its.fetch_add(1, Ordering::Relaxed);
        call.get::<Option<i64>>("n")
    });
    (tool, calls)
}

#[test]
fn a_policy_sees_every_call_and_decides() {
    type Seen = (String, String, u64, u64, String, Option<String>, Effect);
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let its = seen.clone();
    let policy = move |call: &AskedCall<'_>| {
        let tenant = call.tenant().map(str::to_owned);
        let (place, effect) = (call.place().to_string(), call.effect());
        its.lock().unwrap().push((
            call.name().to_owned(),
            call.json().to_owned(),
            call.calls(),
            call.calls_of_tool(),
            place,
            tenant,
            effect,
        ));
        match call.arguments::<serde_json::Value>().unwrap()["n"].as_i64() {
            Some(13) => PolicyDecision::Deny("13 brings bad luck".to_owned()),
            Some(7) => PolicyDecision::AllowWith(r#"{"n":8}"#.to_owned()),
            Some(99) => PolicyDecision::AllowWith("[99]".to_owned()),
            Some(666) => panic!("a bug of the host"),
            _ => PolicyDecision::Allow,
        }
    };
    let (read, calls) = counted("read");
    let engine = Engine::builder()
        .grant(read.effect(Effect::Read).cached())
        .grant(Tool::echo("echo").cached())
        .policy(policy)
        .build()
        .unwrap();
    let input = Input::new().tenant("acme");
    for outcome in
        both(&engine, "[(tool/read {:n 1}) (tool/read {:n 1}) (tool/read {:n 7}) (tool/echo {:n 2})]", &input)
    {
        assert_eq!(outcome.text(), Some(r#"[1 1 8 {"n" 2}]"#));
        assert_eq!(calls.swap(0, Ordering::Relaxed), 2, "equal calls are served from the first");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let told: Vec<_> = seen.iter().map(|it| (&*it.0, &*it.1, it.2, it.3, &*it.4)).collect();
        let want = [
            ("read", r#"{"n":1}"#, 0, 0, "1"),
            ("read", r#"{"n":1}"#, 1, 1, "2"),
            ("read", r#"{"n":7}"#, 1, 1, "3"),
            ("echo", r#"{"n":2}"#, 2, 0, "4"),
        ];
        assert_eq!(told, want);
        assert!(seen.iter().all(|it| it.5.as_deref() == Some("acme")));
        assert_eq!((seen[0].6, seen[3].6), (Effect::Read, Effect::Unknown));
        assert_eq!(outcome.ledger[2].arguments.text, r#"{"n":8}"#, "the ledger has what the tool got");
    }
    // What an echo returns is what it was allowed with, from the cache too.
    for outcome in both(&engine, "[(tool/echo {:n 7}) (tool/echo {:n 7}) (tool/echo {:n 8})]", &input) {
        assert_eq!(outcome.text(), Some(r#"[{"n" 8} {"n" 8} {"n" 8}]"#));
    }
    for (program, why) in [
        ("(try (tool/read {:n 13}) (catch Exception e 1))", "tool/read was denied: 13 brings bad luck"),
        ("(pmap (fn [n] (tool/read {:n n})) [13])", "tool/read was denied: 13 brings bad luck"),
        ("(tool/read {:n 99})", "tool/read was denied: the arguments that it was allowed with are no JSON object"),
        ("(tool/read {:n 666})", "tool/read was denied: the host's policy panicked"),
    ] {
        for outcome in both(&engine, program, &input) {
            assert_eq!(reason(&outcome), Some(Reason::ToolDenied), "{program}");
            assert!(message(&outcome).contains(why), "{}", message(&outcome));
            let last = outcome.ledger.last().expect("the denied call");
            assert_eq!((last.status, last.error.is_some()), (CallStatus::Error, true));
            assert_eq!(outcome.usage.tool_calls, 0);
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0, "nothing denied was called");
}

#[test]
fn a_hidden_tool_is_a_tool_that_is_not_there() {
    struct Hides;
    impl ToolPolicy for Hides {
        fn decide(&self, _: &AskedCall<'_>) -> PolicyDecision {
            PolicyDecision::Allow
        }
        fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
            tool.name() != "transfer_money" || tenant == Some("bank")
        }
    }
    let engine = Engine::builder()
        .tool("transfer_money", |_| Ok(1))
        .tool("transfer_file", |_| Ok(2))
        .policy(Hides)
        .build()
        .unwrap();
    for outcome in both(&engine, "(tool/transfer_money {})", &Input::new()) {
        assert_eq!(reason(&outcome), Some(Reason::UnknownTool));
        assert_eq!(message(&outcome), "there is no tool/transfer_money");
    }
    for outcome in both(&engine, "(tool/transfer_mone {})", &Input::new()) {
        let hint = outcome.problem().unwrap().error.hint.clone().unwrap();
        assert!(!hint.contains("transfer_money"), "{hint}");
    }
    for outcome in both(&engine, "(tool/transfer_money {})", &Input::new().tenant("bank")) {
        assert_eq!(outcome.value::<i64>().unwrap(), 1);
    }
    // A run that goes on is for the tenant that it was begun for.
    let recording = Recording::new();
    let first = engine.eval("(tool/transfer_money {})", Input::new().tenant("bank").record(&recording));
    let (program, input, _) = engine.open_record(&recording.record().unwrap(), &[]).unwrap();
    assert_eq!(engine.run(&program, input).text(), first.text());
}

fn asks() -> (Engine, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (pay, calls) = counted("pay");
    let asked = Arc::new(AtomicUsize::new(0));
    let its = asked.clone();
    let policy = move |call: &AskedCall<'_>| {
        its.fetch_add(1, Ordering::Relaxed);
        match call.arguments::<serde_json::Value>().unwrap()["n"].as_i64() {
            Some(n) if n >= 100 => PolicyDecision::Ask(format!("pay {n}?")),
            _ => PolicyDecision::Allow,
        }
    };
    (Engine::builder().grant(pay.effect(Effect::Write)).policy(policy).build().unwrap(), calls, asked)
}

fn waits(progress: Progress) -> Waiting {
    match progress {
        Progress::Approval(waiting) => waiting,
        other => panic!("{other:?} is no approval"),
    }
}

#[test]
fn a_run_driven_by_hand_stops_for_an_approval() {
    let (engine, _, _) = asks();
    let program = engine.compile("(+ (tool/pay {:n 1}) (tool/pay {:n 100}))").unwrap();
    let stop = || {
        let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("the first is allowed") };
        let waiting = waits(waiting.reply(&1));
        assert_eq!((waiting.calls().count(), waiting.approvals().count()), (0, 1));
        assert_eq!((waiting.call().question(), waiting.call().json()), (Some("pay 100?"), r#"{"n":100}"#));
        let id = waiting.approvals().next().unwrap().0;
        (waits(waiting.poll()), id)
    };
    let (waiting, id) = stop();
    let Progress::ToolCall(waiting) = waiting.approve(id) else { panic!("it waits for its reply") };
    assert_eq!(waiting.call().question(), None);
    let Progress::Done(outcome) = waiting.reply(&100) else { panic!() };
    assert_eq!(outcome.value::<i64>().unwrap(), 101);

    let (waiting, id) = stop();
    let Progress::ToolCall(waiting) = waiting.approve_with(id, r#"{"n":50}"#) else { panic!() };
    assert_eq!(waiting.call().json(), r#"{"n":50}"#);

    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.reject(id, "too much") else { panic!() };
    assert_eq!((reason(&outcome), &*message(&outcome)), (Some(Reason::ToolDenied), "tool/pay was denied: too much"));
    assert_eq!(outcome.ledger.iter().map(|line| line.status).collect::<Vec<_>>(), [CallStatus::Ok, CallStatus::Error]);

    // A reply is an approval, too; and what is no JSON object is none.
    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.reply_to(id, &5) else { panic!() };
    assert_eq!(outcome.value::<i64>().unwrap(), 6);
    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.approve_with(id, "[1") else { panic!() };
    assert_eq!(reason(&outcome), Some(Reason::ToolDenied));
}

#[test]
fn parallel_workers_wait_for_approvals_beside_each_other() {
    let (engine, _, asked) = asks();
    let program = engine.compile("(pmap (fn [n] (tool/pay {:n n})) [1 100 200])").unwrap();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!() };
    assert_eq!((waiting.calls().count(), waiting.approvals().count()), (1, 2));
    let ids: Vec<_> = waiting.approvals().map(|(id, _)| id).collect();
    let one = waiting.call().json().to_owned();
    assert_eq!(one, r#"{"n":1}"#);
    let waiting = waits(waiting.reply(&1));
    let Progress::ToolCall(waiting) = waiting.approve_with(ids[1], r#"{"n":150}"#) else { panic!() };
    assert_eq!((waiting.call().json(), waiting.approvals().count()), (r#"{"n":150}"#, 1));
    let waiting = waits(waiting.reply(&150));
    let Progress::ToolCall(waiting) = waiting.approve(ids[0]) else { panic!() };
    let Progress::Done(outcome) = waiting.reply(&100) else { panic!() };
    assert_eq!(outcome.text(), Some("[1 100 150]"));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "the policy is asked once for each call");
}

#[test]
fn an_approval_outlives_the_process() {
    let (engine, calls, asked) = asks();
    let program = "(+ (tool/pay {:n 1}) (tool/pay {:n 100}))";
    for door in 0..2 {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let outcome = at(door, &engine, program, input);
        assert_eq!(reason(&outcome), Some(Reason::ApprovalRequired));
        assert!(message(&outcome).contains("pay 100?"));
        let record = Record::parse(recording.text()).unwrap();
        let open = record.open_calls();
        assert_eq!(open.len(), 1);
        assert_eq!((&*open[0].name, open[0].question.as_deref()), ("2", Some("pay 100?")));
        let go_on = |record: &Record| {
            let (program, input, again) = engine.open_record(record, &[]).unwrap();
            (at(door, &engine, program.source(), input), again.text())
        };
        let before = asked.load(Ordering::Relaxed);
        // Undecided, it asks again, and nothing is made.
        assert_eq!(reason(&go_on(&record).0), Some(Reason::ApprovalRequired));
        // Approved, as it is and with other arguments.
        for (given, sum) in [(None, 101), (Some(r#"{"n":60}"#), 61)] {
            let mut approved = record.clone();
            approved.approve("2", given).unwrap();
            assert!(approved.open_calls().iter().all(|call| call.question.is_none()));
            assert!(matches!(approved.approve("2", None), Err(RecordError::NoQuestion(_))));
            let (outcome, text) = go_on(&Record::parse(approved.text()).unwrap());
            assert_eq!(outcome.value::<i64>().unwrap(), sum);
            // What came of it is replayed from the second life's record, without a call.
            let made = calls.load(Ordering::Relaxed);
            assert_eq!(go_on(&Record::parse(text).unwrap()).0.value::<i64>().unwrap(), sum);
            assert_eq!(calls.load(Ordering::Relaxed), made);
        }
        let mut rejected = record.clone();
        rejected.reject("2", "no").unwrap();
        assert!(rejected.open_calls().is_empty());
        assert_eq!(message(&go_on(&rejected).0), "tool/pay was denied: no");
        // Somebody did it by other means.
        let mut done = record.clone();
        done.settle("2", Settled::Done("7".to_owned())).unwrap();
        assert_eq!(go_on(&done).0.value::<i64>().unwrap(), 8);
        assert!(matches!(rejected.approve("1", None), Err(RecordError::NoQuestion(_))));
        let fault = record.clone().approve("2", Some("[1]"));
        assert!(matches!(fault, Err(RecordError::Json(_))), "{fault:?}");
        assert_eq!(asked.load(Ordering::Relaxed), before, "decisions of the record stand");
        assert_eq!(calls.swap(0, Ordering::Relaxed), 3, "the first call once, the second once for each approval");
        // By hand, too: what waits to be approved is not served, what is approved is.
        let waiting = waits(engine.resume(&record).unwrap());
        let id = waiting.approvals().next().unwrap().0;
        let waiting = waits(waiting.serve(id));
        let Progress::ToolCall(waiting) = waiting.approve(id) else { panic!() };
        let Progress::Done(outcome) = waiting.serve(id) else { panic!() };
        assert_eq!((outcome.value::<i64>().unwrap(), calls.swap(0, Ordering::Relaxed)), (101, 1));
    }
}

#[test]
fn decisions_are_in_the_record() {
    let count = Arc::new(AtomicU64::new(0));
    let its = count.clone();
    // A policy that decides otherwise each time.
    let policy = move |_: &AskedCall<'_>| match its.fetch_add(1, Ordering::Relaxed) {
        n @ 0..=2 => PolicyDecision::AllowWith(format!(r#"{{"n":{n}}}"#)),
        3 => PolicyDecision::Deny("enough".to_owned()),
        _ => PolicyDecision::Deny("asked again".to_owned()),
    };
    let (tool, calls) = counted("t");
    let engine = Engine::builder().grant(tool.cached()).policy(policy).build().unwrap();
    let program = "[(tool/t {:n 9}) (tool/t {:n 9}) (tool/t {:n 8}) (tool/t {:n 9})]";
    let recording = Recording::new();
    let first = engine.eval(program, Input::new().record(&recording));
    assert_eq!(message(&first), "tool/t was denied: enough");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let record = Record::parse(recording.text()).unwrap();
    let (program, input, _) = engine.open_record(&record, &[]).unwrap();
    let second = engine.run(&program, input);
    assert_eq!((message(&second), second.usage.fuel), (message(&first), first.usage.fuel));
    assert_eq!((calls.load(Ordering::Relaxed), count.load(Ordering::Relaxed)), (3, 4));
}

#[test]
fn tools_have_ceilings_of_their_own() {
    let engine = Engine::builder().grant(counted("t").0.most_calls(2).cached()).tool("u", |_| Ok(0)).build().unwrap();
    let program = "(dotimes [n 5] (tool/u {}) (tool/t {:n 1}) (tool/t {:n n}))";
    for outcome in both(&engine, program, &Input::new()) {
        assert_eq!(reason(&outcome), Some(Reason::ToolCallLimitExceeded));
        assert_eq!(message(&outcome), "a run may call tool/t 2 times");
        // Of {:n 1} there is a result: it is the call with {:n 2} that is too many.
        assert_eq!(outcome.usage.tool_calls, 5);
    }
}

#[test]
fn a_tool_does_few_things_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (its_now, its_most) = (now.clone(), most.clone());
    let slow = Tool::new("slow", move |_| {
        its_most.fetch_max(its_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        its_now.fetch_sub(1, Ordering::SeqCst);
        Ok(1)
    });
    let engine = Engine::builder().grant(slow.concurrency(2)).tool_threads(8).build().unwrap();
    let run = || engine.eval("(reduce + (pmap (fn [_] (tool/slow {})) (range 8)))", Input::new());
    std::thread::scope(|scope| {
        let other = scope.spawn(run);
        assert_eq!(run().value::<i64>().unwrap(), 8);
        assert_eq!(other.join().unwrap().value::<i64>().unwrap(), 8);
    });
    assert_eq!((most.load(Ordering::SeqCst), now.load(Ordering::SeqCst)), (2, 0));
    // Who waits for a turn keeps its deadline, and does not take the turn.
    let held = Tool::new("held", |call| {
        call.sleep(Duration::from_secs(20));
        Ok(1)
    });
    let limits = Limits::default().with_timeout_ms(60);
    let engine = Engine::builder().grant(held.concurrency(1)).tool_threads(4).limits(limits).build().unwrap();
    let started = std::time::Instant::now();
    let outcome = engine.eval("(pmap (fn [_] (tool/held {})) [1 2])", Input::new());
    assert_eq!(reason(&outcome), Some(Reason::Timeout));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn redacted_arguments_are_seen_by_the_tool_alone() {
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let its = got.clone();
    let login = Tool::new("login", move |call| {
        its.lock().unwrap().push(call.json().to_owned());
        Ok(call.json().len())
    });
    let engine = Engine::builder()
        .grant(login.redact(["password"]).signature("(user :string, password :string) -> :int"))
        .build()
        .unwrap();
    let program = r#"(tool/login {:user "ann" :password "s3cret!"})"#;
    for door in 0..2 {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let outcome = at(door, &engine, program, input);
        assert_eq!(outcome.value::<i64>().unwrap(), 35);
        assert_eq!(got.lock().unwrap().pop().unwrap(), r#"{"password":"s3cret!","user":"ann"}"#);
        assert_eq!(outcome.ledger[0].arguments.text, r#"{"password":"[redacted]","user":"ann"}"#);
        let lines: Vec<String> = recording.text().lines().skip(1).map(str::to_owned).collect();
        assert!(!lines.join("").contains("s3cret"), "{lines:?}");
        let (program, input, _) = engine.open_record(&recording.record().unwrap(), &[]).unwrap();
        assert_eq!(engine.run(&program, input).value::<i64>().unwrap(), 35);
        assert!(got.lock().unwrap().is_empty(), "it is replayed");
    }
    for outcome in both(&engine, r#"(tool/login {:user 5 :password "s3cret!"})"#, &Input::new()) {
        assert_eq!(reason(&outcome), Some(Reason::InvalidToolArgs));
        assert!(!outcome.ledger[0].arguments.text.contains("s3cret"), "{:?}", outcome.ledger[0]);
    }
    let both = Tool::echo("t").cached().redact(["x"]);
    let fault = Engine::builder().grant(both).build().unwrap_err();
    assert_eq!(fault, BuildError::CachedAndRedacted("t".to_owned()));
}

#[test]
fn failures_of_tagged_tools_are_values() {
    let tools = |builder: lisp_runtime::EngineBuilder| {
        builder
            .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("it is broken"))).tagged())
            .grant(Tool::new("refuses", |_| Err::<(), _>(ToolError::invalid_arguments("no such user"))).tagged())
            .grant(Tool::new("panics", |_| -> Result<(), ToolError> { panic!("oh") }).tagged())
            .grant(Tool::new("lies", |_| Ok("x")).signature("(...) -> :int").tagged())
            .grant(Tool::echo("echo").tagged().cached())
            .grant(Tool::new("good", |_| Ok(5)).signature("(n :int?) -> :int").tagged().most_calls(1))
            .build()
            .unwrap()
    };
    let strings = tools(Engine::builder());
    let keywords = tools(Engine::builder().json_keys(Keys::Keywords));
    let error = |reason: &str, message: &str, tool: &str| {
        format!("{{:error {{:message \"tool/{tool}: {message}\" :reason \"{reason}\" :tool \"{tool}\"}}}}")
    };
    for (program, want) in [
        ("(tool/fails {})", error("tool_error", "it is broken", "fails")),
        ("(tool/refuses {})", error("invalid_tool_args", "no such user", "refuses")),
        ("(tool/panics {})", error("tool_error", "it panicked: oh", "panics")),
        ("(first (pmap (fn [_] (tool/panics {})) [1]))", error("runtime_error", "it panicked: oh", "panics")),
        ("(tool/good {})", "{:ok 5}".to_owned()),
        ("[(tool/echo {:a #{1}}) (tool/echo {:a #{1}})]", "[{:ok {:a #{1}}} {:ok {:a #{1}}}]".to_owned()),
    ] {
        for outcome in both(&keywords, program, &Input::new()) {
            assert_eq!(outcome.text(), Some(&*want), "{program} {:?}", outcome.problem());
        }
    }
    for outcome in both(&strings, "[(:ok (tool/good {})) (get-in (tool/fails {}) [:error :message])]", &Input::new()) {
        assert_eq!(outcome.text(), Some(r#"[5 "tool/fails: it is broken"]"#));
        assert_eq!(outcome.ledger[1].status, CallStatus::Error);
    }
    for outcome in both(&strings, "(keys (tool/lies {}))", &Input::new()) {
        assert_eq!(outcome.text(), Some(r#"["error"]"#));
    }
    for (program, want) in [
        ("(tool/good {:n \"x\"})", Reason::InvalidToolArgs),
        ("[(tool/good {}) (tool/good {})]", Reason::ToolCallLimitExceeded),
    ] {
        for outcome in both(&strings, program, &Input::new()) {
            assert_eq!(reason(&outcome), Some(want), "{program}");
        }
    }
    assert!(strings.prompt().contains("tool/good (n :int?) -> :int ; returns {:ok result}"), "{}", strings.prompt());
    let recording = Recording::new();
    let first = strings.eval("[(tool/fails {}) (tool/good {})]", Input::new().record(&recording));
    let record = recording.record().unwrap();
    let (program, input, _) = strings.open_record(&record, &[]).unwrap();
    assert_eq!(strings.run(&program, input).text(), first.text());
    // The record says how its tools are treated: it is replayed without them, and another treatment is noticed.
    let alone =
        record.external_tools().unwrap().into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool));
    let Progress::Done(again) = alone.build().unwrap().resume(&record).unwrap() else { panic!("it calls a tool") };
    assert_eq!(again.text(), first.text());
    let plain = record.external_tools().unwrap().into_iter().map(|tool| Tool::external(tool.name().to_owned()));
    let plain = plain.fold(Engine::builder(), |builder, tool| builder.grant(tool)).build().unwrap();
    assert!(matches!(plain.open_record(&record, &[]), Err(RecordError::Tool { .. })));
}

#[test]
fn runs_pay_from_a_budget() {
    const PROGRAM: &str = "(loop [i 0] (if (< i 1000) (recur (inc i)) i))";
    let engine = Engine::builder().tool("t", |_| Ok(1)).limits(Limits::default().with_fuel(100_000)).build().unwrap();
    let fuel = engine.eval(PROGRAM, Input::new()).usage.fuel;
    for door in 0..2 {
        let run = |program: &str, budget: &Budget| at(door, &engine, program, Input::new().budget(budget));
        let budget = Budget::new(Amounts::new().with_runs(2));
        assert!(run("1", &budget).is_success() && run("2", &budget).is_success());
        let third = run("3", &budget);
        assert_eq!(reason(&third), Some(Reason::BudgetExceeded));
        assert_eq!(message(&third), "the budget that the run shares with others has no runs left");

        {
            // What was not used is given back; the last of it is used up, and the error says what it was.
            let budget = Budget::new(Amounts::new().with_fuel(2 * fuel + fuel / 2));
            for left in [fuel + fuel / 2, fuel / 2] {
                assert!(run(PROGRAM, &budget).is_success());
                assert_eq!(budget.left().fuel, Some(left));
            }
            let over = run(PROGRAM, &budget);
            assert_eq!(reason(&over), Some(Reason::BudgetExceeded));
            let want = format!("the budget had {} units of fuel left, and the run has used them", fuel / 2);
            assert_eq!(message(&over), want);
            assert!(over.problem().unwrap().position.is_some());
            assert_eq!(budget.left().fuel, Some(0));
            assert_eq!(message(&run("1", &budget)), "the budget that the run shares with others has no fuel left");
            budget.refill(&Amounts::new().with_fuel(10 * fuel).with_runs(3));
            assert_eq!(budget.left(), Amounts::new().with_fuel(10 * fuel), "what is not counted is not refilled");
            // Its own limit is the run's, whatever is left.
            let endless = "(reduce + (map inc (range 300000)))";
            let limited = engine.eval(endless, Input::new().budget(&Budget::new(Amounts::new().with_fuel(1 << 40))));
            assert_eq!(reason(&limited), Some(Reason::FuelExhausted));
            // Programs that do not begin take no fuel.
            let left = budget.left();
            assert!(!run("data/x (", &budget).is_success() && !run("(tool/none {})", &budget).is_success());
            assert_eq!(budget.left(), left);
        }
        let budget = Budget::new(Amounts::new().with_calls(2));
        let calls = run("(dotimes [_ 3] (tool/t {}))", &budget);
        assert_eq!((reason(&calls), calls.ledger.len()), (Some(Reason::BudgetExceeded), 3));
        assert!(run("(+ 1 2)", &budget).is_success(), "a run without calls needs none");

        let budget = Budget::new(Amounts::new().with_bytes(1));
        assert!(run("(vec (range 1000))", &budget).is_success());
        assert_eq!(message(&run("1", &budget)), "the budget that the run shares with others has no bytes left");
    }
    let mut session = engine.session(Input::new().budget(&Budget::new(Amounts::new())));
    assert_eq!(message(&session.eval("1")), "a session does not pay from a budget");
    // A run whose end nobody sees has used what it took.
    let budget = Budget::new(Amounts::new().with_fuel(1_000_000));
    let program = engine.compile("(tool/t {})").unwrap();
    let waiting = engine.start(&program, Input::new().budget(&budget));
    assert_eq!(budget.left().fuel, Some(900_000));
    drop(waiting);
    assert_eq!(budget.left().fuel, Some(900_000));
}

/// However many runs pay from a budget at once, they use together what it has.
#[test]
fn a_budget_is_exact_between_threads() {
    let (tool, calls) = counted("t");
    let engine = Engine::builder().grant(tool).build().unwrap();
    let budget = Budget::new(Amounts::new().with_calls(100).with_fuel(5_000_000_000));
    let used = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let outcome = engine.eval("(pmap (fn [_] (tool/t {})) (range 5))", Input::new().budget(&budget));
                    used.fetch_add(outcome.usage.fuel, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((calls.load(Ordering::Relaxed), budget.left().calls), (100, Some(0)));
    assert_eq!(budget.left().fuel, Some(5_000_000_000 - used.load(Ordering::Relaxed)));
}
