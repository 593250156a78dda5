//! The gate: policies, ceilings, tagged tools; in files of their own approvals, redaction, budgets. What can be tried at both modes is.

mod approvals;
mod budgets;
mod redaction;

use crate::remote::eval_in_two;
use lisp_runtime::outcome::CallStatus;
use lisp_runtime::progress::Waiting;
use lisp_runtime::record::RecordError;
use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
use lisp_runtime::{
    Amounts, Budget, Engine, Input, Keys, Limits, Outcome, Progress, Reason, Recording, Tool, ToolError, ToolPolicy,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn reason(outcome: &Outcome) -> Option<Reason> {
    outcome.problem().map(|problem| problem.reason())
}

fn message(outcome: &Outcome) -> String {
    outcome.problem().map(|problem| problem.error.message.clone()).unwrap_or_default()
}

/// The outcome at one of the modes.
fn at(mode: usize, engine: &Engine, program: &str, input: Input<'_>) -> Outcome {
    if mode == 0 { engine.eval(program, input) } else { eval_in_two(engine, program, &input) }
}

/// The outcomes at both modes, one after the other.
fn both(engine: &Engine, program: &str, input: &Input<'_>) -> impl Iterator<Item = Outcome> {
    (0..2).map(move |mode| at(mode, engine, program, input.clone()))
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
    (Engine::builder().grant(pay.with_effect(Effect::Write)).policy(policy).build().unwrap(), calls, asked)
}

fn waits(progress: Progress) -> Waiting {
    match progress {
        Progress::Approval(waiting) => waiting,
        other => panic!("{other:?} is no approval"),
    }
}

#[test]
fn the_code_of_an_error_reaches_the_program() {
    let fails = |name: &str, code: lisp_runtime::tools::ToolCode| {
        Tool::new(name, move |_| Err::<(), _>(ToolError::new("no order 7").with_code(code.clone())))
    };
    let engine = Engine::builder()
        .grant(fails("named", "NOT_FOUND".into()))
        .grant(fails("numbered", 404.into()))
        .grant(fails("tagged", 404.into()).tagged())
        .build()
        .unwrap();
    let caught = "(map (fn [f] (try (f) (catch Exception e [(:code e) (:code (ex-data e)) (ex-data e)]))) [tool/named tool/numbered])";
    for outcome in both(&engine, caught, &Input::new()) {
        assert_eq!(outcome.text(), Some(r#"[["NOT_FOUND" "NOT_FOUND" {:code "NOT_FOUND"}] [404 404 {:code 404}]]"#));
    }
    for outcome in both(&engine, "(get-in (tool/tagged) [:error :code])", &Input::new()) {
        assert_eq!(outcome.text(), Some("404"));
    }
    for outcome in both(&engine, "(tool/named)", &Input::new()) {
        let details = &outcome.problem().unwrap().error.details;
        assert!(details.iter().any(|(name, code)| name == "code" && *code == "NOT_FOUND".into()), "{details:?}");
    }
    // What is in the record is the same error again.
    let recording = Recording::new();
    let whole = engine.eval(caught, Input::new().record(&recording));
    let record = recording.record().unwrap();
    assert!(record.text().contains(r#""code":404"#) && record.text().contains(r#""code":"NOT_FOUND""#));
    let (program, input, _) = engine.open_record(&record, &[]).unwrap();
    assert_eq!(engine.run(&program, input).text(), whole.text());
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
        .grant(read.with_effect(Effect::Read).cached())
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
        ("(tool/read {:n 99})", "tool/read was denied: the arguments that it was allowed with are not a JSON object"),
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

#[test]
fn tools_have_ceilings_of_their_own() {
    let engine = Engine::builder().grant(counted("t").0.max_calls(2).cached()).tool("u", |_| Ok(0)).build().unwrap();
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
    let (now, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (its_now, its_max) = (now.clone(), max.clone());
    let slow = Tool::new("slow", move |_| {
        its_max.fetch_max(its_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
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
    assert_eq!((max.load(Ordering::SeqCst), now.load(Ordering::SeqCst)), (2, 0));
    // Who waits for a turn keeps its deadline, and does not take the turn.
    let held = Tool::new("held", |call| {
        call.sleep(Duration::from_secs(600));
        Ok(1)
    });
    let limits = Limits::default().with_timeout_ms(60);
    let engine = Engine::builder().grant(held.concurrency(1)).tool_threads(4).limits(limits).build().unwrap();
    let started = std::time::Instant::now();
    let outcome = engine.eval("(pmap (fn [_] (tool/held {})) [1 2])", Input::new());
    assert_eq!(reason(&outcome), Some(Reason::Timeout));
    assert!(started.elapsed() < Duration::from_secs(300), "{:?}", started.elapsed());
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
        (r#"{"n": 1, "x": 2}"#, Some("unknown field \"x\"")),
        (r#"{"n": 1, "at": "soon"}"#, Some("at: expected a string such as")),
        (r#"{"n": 1, "of": [{"k": "a"}, {"k": 1}]}"#, Some("of[1].k: expected a string")),
        (r#"{"n": 1, "of": {}}"#, Some("of: expected a vector")),
        (r#"{"n": 1, "f": "1"}"#, Some("f: expected a number")),
        (r#"{"n": 1, "b": 0}"#, Some("b: expected true or false")),
        (r#"{"n": 1, "m": []}"#, Some("m: expected a map")),
        ("[]", Some("not a JSON object")),
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

#[test]
fn the_ledger_tells_a_refused_call_from_a_failed_one() {
    let engine = Engine::builder()
        .grant(Tool::new("good", |_| Ok(1)))
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("it is broken"))))
        .grant(Tool::new("signed", |_| Ok(1)).signature("(n :int) -> :int"))
        .grant(Tool::new("once", |_| Ok(1)).max_calls(1))
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
            .grant(Tool::new("good", |_| Ok(5)).signature("(n :int?) -> :int").tagged().max_calls(1))
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

/// A name of one tool is what programs call another one.
#[test]
fn a_call_is_served_by_its_own_tool() {
    let tool = |name: &str, says: &'static str| {
        Tool::from_json_schema(name, "", r#"{"type": "object"}"#, None).unwrap().with_handler(move |_| Ok(says))
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
