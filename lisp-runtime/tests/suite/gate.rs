//! The gate: policies, approvals, ceilings and redaction of tools, tagged tools, budgets. What can be tried at both doors is.

use crate::remote::eval_in_two;
use lisp_runtime::{
    Amounts, AskedCall, Budget, BuildError, CallStatus, Effect, Engine, Input, Keys, Limits, LimitsRequest, Outcome,
    PolicyDecision, Progress, Reason, Record, RecordError, Recording, Settled, Tool, ToolError, ToolPolicy, Waiting,
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
fn an_approval_behind_the_deadline_hands_out_no_call() {
    let (engine, calls, _) = asks();
    for program in ["(tool/pay {:n 100})", "(pmap (fn [n] (tool/pay {:n n})) [100 200])"] {
        let program = engine.compile(program).unwrap();
        for given in [None, Some(r#"{"n":50}"#)] {
            let recording = Recording::new();
            let mut limits = LimitsRequest::default();
            limits.timeout_ms = Some(30);
            let waiting = waits(engine.start(&program, Input::new().limits(limits).record(&recording)));
            let id = waiting.approvals().next().unwrap().0;
            std::thread::sleep(Duration::from_millis(40));
            let progress = match given {
                None => waiting.approve(id),
                Some(given) => waiting.approve_with(id, given),
            };
            let Progress::Done(outcome) = progress else { panic!("{progress:?}") };
            assert_eq!(reason(&outcome), Some(Reason::Timeout));
            // Who is slower approves by the record.
            let mut record = recording.record().unwrap();
            assert!(record.open_calls().iter().all(|call| call.question.is_some()));
            let name = record.open_calls()[0].name.clone();
            record.approve(&name, given).unwrap();
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[test]
fn the_ledger_has_the_arguments_that_a_call_was_approved_with() {
    const GIVEN: &str = r#"{"n":50}"#;
    let (engine, _, _) = asks();
    let shown = |progress: Progress| {
        let Progress::Done(outcome) = progress else { panic!("{progress:?} is not over") };
        assert!(outcome.is_success(), "{}", message(&outcome));
        outcome.ledger.iter().map(|line| line.arguments.text.clone()).collect::<Vec<_>>()
    };
    let approved = |program: &str| {
        let waiting = waits(engine.start(&engine.compile(program).unwrap(), Input::new()));
        let id = waiting.approvals().next().unwrap().0;
        let Progress::ToolCall(waiting) = waiting.approve_with(id, GIVEN) else { panic!() };
        (waiting, id)
    };
    assert_eq!(shown(approved("(tool/pay {:n 100})").0.reply(&50)), [GIVEN]);
    let (waiting, id) = approved("(tool/pay {:n 100})");
    assert_eq!(shown(waiting.serve(id)), [GIVEN]);
    let (waiting, id) = approved("(pmap (fn [n] (tool/pay {:n n})) [100])");
    assert_eq!(shown(waiting.serve(id)), [GIVEN]);

    let recording = Recording::new();
    engine.eval("(tool/pay {:n 100})", Input::new().record(&recording));
    let mut record = recording.record().unwrap();
    record.approve("1", Some(GIVEN)).unwrap();
    for door in 0..2 {
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        assert_eq!(shown(Progress::Done(Box::new(at(door, &engine, program.source(), input)))), [GIVEN]);
    }
}

#[test]
fn a_session_is_told_of_an_approval_what_it_can_follow() {
    let (engine, _, _) = asks();
    let hint = |outcome: &Outcome| outcome.problem().and_then(|problem| problem.error.hint.clone()).unwrap_or_default();
    let turn = engine.session(Input::new()).eval("(tool/pay {:n 100})");
    assert_eq!(reason(&turn), Some(Reason::ApprovalRequired));
    assert!(
        hint(&turn).contains("outside of the session") && !hint(&turn).contains("Record::approve"),
        "{}",
        hint(&turn)
    );
    assert!(hint(&engine.eval("(tool/pay {:n 100})", Input::new())).contains("Record::approve"));
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

/// The errors of arguments that do not fit, by a signature, a schema, or the tool itself, do not show them, and no panic does.
#[test]
fn redacted_arguments_are_in_no_error() {
    const SECRET: &str = "4111111111111111";
    let schema = r#"{"type": "object", "properties": {"card": {"type": "integer"}, "user": {"type": "string"}}}"#;
    let panics = Tool::new("panics", |call| -> Result<(), ToolError> { panic!("{}", call.json()) });
    let engine = Engine::builder()
        .grant(Tool::new("signed", |_| Ok(1)).signature("(card {number :int}, user :string) -> :int").redact(["card"]))
        .grant(Tool::from_json_schema("schema", "", schema, None).unwrap().redact(["card"]).served_by(|_| Ok(1)))
        .grant(Tool::new("gets", |call| call.get::<i64>("card")).redact(["card"]))
        .grant(Tool::new("takes", |call| call.arguments::<std::collections::HashMap<String, i64>>()).redact(["card"]))
        .grant(panics.redact(["card"]))
        .build()
        .unwrap();
    let programs = [
        ("(tool/signed {:card {:number S} :user \"a\"})", "card: it is missing or does not fit"),
        ("(tool/schema {:card S})", "card: it is missing or does not fit"),
        ("(tool/gets {:card S})", "card does not fit"),
        ("(tool/takes {:card S})", "some are not shown"),
        ("(tool/panics {:card S})", "it panicked"),
    ];
    for (program, told) in programs {
        let program = program.replace('S', &format!("{SECRET:?}"));
        for door in 0..2 {
            let recording = Recording::new();
            let outcome = at(door, &engine, &program, Input::new().record(&recording));
            let lines: Vec<String> = recording.text().lines().skip(1).map(str::to_owned).collect();
            assert!(message(&outcome).contains(told), "{program}: {}", message(&outcome));
            let shown = format!("{:?} {:?} {lines:?}", outcome.problem(), outcome.ledger);
            assert!(!shown.contains(SECRET), "{program} at door {door}: {shown}");
        }
    }
    // What is not redacted is said as ever.
    let outcome = engine.eval("(tool/signed {:card {:number 1} :user 77})", Input::new());
    assert!(message(&outcome).contains("user: expected a string, got integer"), "{}", message(&outcome));
}

/// What a policy gives a tool fits its signature, or the call is denied.
#[test]
fn what_a_policy_gives_fits_the_signature() {
    let given: Arc<Mutex<String>> = Arc::default();
    let gives = given.clone();
    let signature = "(n :int, at :datetime?, of [{k :keyword}]?, f :float?, b :bool?, m :map?, s :string?) -> :int";
    let engine = Engine::builder()
        .grant(Tool::new("pay", |_| Ok(1)).signature(signature))
        .policy(move |_: &AskedCall<'_>| PolicyDecision::AllowWith(gives.lock().unwrap().clone()))
        .build()
        .unwrap();
    let rows = [
        (r#"{"n": 1}"#, None),
        (r#"{"n": 1, "at": "2024-01-31T12:00:00Z", "of": [{"k": "a"}], "f": 1, "b": true, "m": {}, "s": ""}"#, None),
        (r#"{"n": 1, "at": null, "of": null}"#, None),
        (r#"{"n": 18446744073709551615}"#, None),
        ("{}", Some("n: the field is missing")),
        (r#"{"n": "1"}"#, Some("n: expected an integer")),
        (r#"{"n": 1.5}"#, Some("n: expected an integer")),
        (r#"{"n": 1, "x": 2}"#, Some("there is no field \"x\"")),
        (r#"{"n": 1, "at": "soon"}"#, Some("at: expected a string such as")),
        (r#"{"n": 1, "of": [{"k": "a"}, {"k": 1}]}"#, Some("of[1].k: expected a string")),
        (r#"{"n": 1, "of": {}}"#, Some("of: expected a vector")),
        (r#"{"n": 1, "f": "1"}"#, Some("f: expected a number")),
        (r#"{"n": 1, "b": 0}"#, Some("b: expected true or false")),
        (r#"{"n": 1, "m": []}"#, Some("m: expected a map")),
        ("[]", Some("no JSON object")),
    ];
    for (arguments, fault) in rows {
        arguments.clone_into(&mut given.lock().unwrap());
        for outcome in both(&engine, "(tool/pay {:n 5})", &Input::new()) {
            match fault {
                None => assert!(outcome.is_success(), "{arguments}: {}", message(&outcome)),
                Some(fault) => {
                    assert_eq!(reason(&outcome), Some(Reason::ToolDenied), "{arguments}");
                    assert!(message(&outcome).contains(fault), "{arguments}: {}", message(&outcome));
                }
            }
        }
    }
}

/// The record would have to keep what it is not to have.
#[test]
fn a_record_takes_no_other_arguments_for_a_tool_that_redacts() {
    let (pay, calls) = counted("pay");
    let engine = Engine::builder()
        .grant(pay.redact(["card"]))
        .policy(|_: &AskedCall<'_>| PolicyDecision::Ask("?".to_owned()))
        .build()
        .unwrap();
    for door in 0..2 {
        let recording = Recording::new();
        at(door, &engine, "(tool/pay {:card 1 :n 2})", Input::new().record(&recording));
        let mut record = recording.record().unwrap();
        let before = record.text().to_owned();
        let fault = record.approve("1", Some(r#"{"card":1,"n":1}"#)).unwrap_err();
        assert_eq!(fault, RecordError::Redacted("pay".to_owned()));
        assert_eq!(record.text(), before);
        record.approve("1", None).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        assert!(at(door, &engine, program.source(), input).is_success());
        assert_eq!(calls.swap(0, Ordering::Relaxed), 1);
    }
}

#[test]
fn the_ledger_tells_a_refused_call_from_a_failed_one() {
    let engine = Engine::builder()
        .grant(Tool::new("good", |_| Ok(1)))
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("it is broken"))))
        .grant(Tool::new("signed", |_| Ok(1)).signature("(n :int) -> :int"))
        .grant(Tool::new("once", |_| Ok(1)).most_calls(1))
        .grant(Tool::new("denied", |_| Ok(1)))
        .policy(|call: &AskedCall<'_>| match call.name() {
            "denied" => PolicyDecision::Deny("no".to_owned()),
            _ => PolicyDecision::Allow,
        })
        .build()
        .unwrap();
    let program = "(tool/good {}) (tool/once {}) (try (tool/fails {}) (catch Exception e 1))
        (try (tool/signed {:n 1.5}) (catch Exception e 1)) (try (tool/denied {}) (catch Exception e 1)) (tool/once {})";
    for outcome in both(&engine, program, &Input::new()) {
        let told: Vec<_> = outcome.ledger.iter().map(|line| (&*line.name, line.status, line.refused)).collect();
        let (ok, error) = (CallStatus::Ok, CallStatus::Error);
        let mut want = vec![("good", ok, false), ("once", ok, false), ("fails", error, false), ("signed", error, true)];
        want.push(("denied", error, true));
        // A denial ends the run.
        assert_eq!(told, want, "{}", message(&outcome));
    }
    let budget = Budget::new(Amounts::new().with_calls(2));
    for program in ["(tool/once {}) (tool/once {})", "(tool/good {}) (tool/good {})"] {
        let outcome = engine.eval(program, Input::new().budget(&budget));
        let told: Vec<_> = outcome.ledger.iter().map(|line| line.refused).collect();
        assert_eq!(told.last(), Some(&true), "{}", message(&outcome));
    }
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
    let card = strings.prompt();
    assert!(card.contains("tool/good (n :int?) -> :int ; tagged\n"), "{card}");
    assert_eq!(card.matches("{:ok result}").count(), 1, "{card}");
    assert!(!Engine::builder().grant(Tool::external("plain")).build().unwrap().prompt().contains("tagged"));
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
            let want = format!("the run needs more than the {} units of fuel that were left in the budget", fuel / 2);
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
fn a_call_that_nobody_begins_is_not_paid_for() {
    let (engine, _, _) = asks();
    let budget = Budget::new(Amounts::new().with_calls(2));
    let program = engine.compile("(tool/pay {:n 100})").unwrap();
    let run = || {
        let waiting = waits(engine.start(&program, Input::new().budget(&budget)));
        assert_eq!(budget.left().calls, Some(1));
        let id = waiting.approvals().next().unwrap().0;
        (waiting, id)
    };
    let (waiting, id) = run();
    assert!(matches!(waiting.reject(id, "no"), Progress::Done(_)));
    assert_eq!(budget.left().calls, Some(2));
    drop(run());
    assert_eq!(budget.left().calls, Some(2));
    // Whoever has the call may make it.
    let (waiting, id) = run();
    drop(waiting.approve(id));
    assert_eq!(budget.left().calls, Some(1));
}

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
    let left = budget.left().calls.unwrap();
    // A call whose run has failed before it was begun goes back; the run that finds it may be the last.
    assert_eq!(calls.load(Ordering::Relaxed) as u64 + left, 100);
    assert!(left < 5, "{left}");
    assert_eq!(budget.left().fuel, Some(5_000_000_000 - used.load(Ordering::Relaxed)));
}

/// A program that is made of calls which nobody makes: refused ones, and those that an earlier result serves. It ends at its
/// deadline all the same, and when it is cancelled.
#[test]
fn calls_that_nobody_makes_take_time_too() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}"#;
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(200).with_loop_iterations(0))
        .grant(Tool::from_json_schema("s", "", schema, None).unwrap().served_by(|_| Ok(1)))
        .grant(Tool::new("c", |_| Ok("x".repeat(2_000))).cached())
        .build()
        .unwrap();
    let calls = ["(try (tool/s {:a 1}) (catch Exception e 1))", "(count (tool/c {}))", "(System/currentTimeMillis)"];
    for call in calls {
        for program in [
            format!("(loop [i 0] (if (< i 3000000) (do {call} (recur (inc i))) i))"),
            format!("(pmap (fn [_] (loop [i 0] (if (< i 3000000) (do {call} (recur (inc i))) i))) [1 2])"),
        ] {
            let begun = std::time::Instant::now();
            let outcome = engine.eval(&program, Input::new());
            assert_eq!(reason(&outcome), Some(Reason::Timeout), "{program}: {}", message(&outcome));
            assert!(begun.elapsed() < Duration::from_millis(1_000), "{program}: {:?}", begun.elapsed());
        }
        let cancel = lisp_runtime::Cancel::new();
        let its = cancel.clone();
        let canceller = std::thread::Builder::new()
            .spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                its.cancel();
            })
            .unwrap();
        let begun = std::time::Instant::now();
        let endless = format!("(loop [i 0] (if (< i 3000000) (do {call} (recur (inc i))) i))");
        let outcome = engine.eval(&endless, Input::new().cancel_with(&cancel));
        assert_eq!(reason(&outcome), Some(Reason::Cancelled), "{call}");
        assert!(begun.elapsed() < Duration::from_millis(180), "{call}: {:?}", begun.elapsed());
        canceller.join().unwrap();
    }
}

/// A name of one tool is what programs call another one.
#[test]
fn a_call_is_served_by_its_own_tool() {
    let tool = |name: &str, says: &'static str| {
        Tool::from_json_schema(name, "", r#"{"type": "object"}"#, None).unwrap().served_by(move |_| Ok(says))
    };
    let engine = Engine::builder().grant(tool("a%2Fb", "one")).grant(tool("a/b", "two")).build().unwrap();
    for (program, says) in [("(tool/a%252Fb {:x 1})", "one"), ("(tool/a%2Fb {:x 1})", "two")] {
        assert_eq!(engine.eval(program, Input::new()).value::<String>().unwrap(), says);
        let Progress::ToolCall(waiting) = engine.start(&engine.compile(program).unwrap(), Input::new()) else {
            panic!()
        };
        let id = waiting.calls().next().unwrap().0;
        let Progress::Done(outcome) = waiting.serve(id) else { panic!() };
        assert_eq!(outcome.value::<String>().unwrap(), says);
    }
}

/// What a record says of arguments is checked like what a policy says of them.
#[test]
fn a_record_cannot_give_a_tool_what_does_not_fit() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#;
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let its = got.clone();
    let pay = Tool::from_json_schema("pay", "", schema, None).unwrap().served_by(move |call| {
        its.lock().unwrap().push(call.json().to_owned());
        Ok(1)
    });
    let ask = |_: &AskedCall<'_>| PolicyDecision::Ask("pay?".to_owned());
    let engine = Engine::builder().grant(pay.effect(Effect::Write)).policy(ask).build().unwrap();
    let recording = Recording::new();
    engine.eval("(tool/pay {:n 1})", Input::new().record(&recording));
    for (arguments, ends) in [(r#"{"n":"lots","evil":1}"#, Some(Reason::ToolDenied)), (r#"{"n":7}"#, None)] {
        let mut record = recording.record().unwrap();
        record.approve("1", Some(arguments)).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        let outcome = engine.run(&program, input);
        assert_eq!(reason(&outcome), ends, "{arguments}");
        assert!(outcome.ledger.iter().all(|call| ends.is_some() || call.arguments.text == arguments));
    }
    assert_eq!(*got.lock().unwrap(), [r#"{"n":7}"#]);
}

#[test]
fn a_recorder_that_panics_is_a_fault_of_the_host() {
    let (tool, calls) = counted("t");
    let engine = Engine::builder().grant(tool).build().unwrap();
    for fatal in ["schema", "begun", "done"] {
        let panics = move |line: &str| {
            assert!(!line.contains(fatal), "a test's panic");
            Ok(())
        };
        let recording = Recording::builder().recorder(panics).build();
        let outcome = engine.eval("(tool/t {:n 1})", Input::new().record(&recording));
        assert_eq!(reason(&outcome), Some(Reason::HostFault), "{fatal}");
        assert!(message(&outcome).contains("the recorder panicked"), "{fatal}: {}", message(&outcome));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1, "only where the end could not be kept");
    assert!(Recording::new().answer("{}").is_err(), "there is no run yet");
}
