//! Tools: how arguments arrive, how calls end, what the ledger says.

use lisp_runtime::outcome::CallStatus;
use lisp_runtime::{BuildError, Cancel, Engine, Input, Limits, Outcome, Progress, Reason, Tool, ToolError, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn engine(tools: impl IntoIterator<Item = Tool>) -> Engine {
    tools.into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool)).build().expect("an engine")
}

fn reason(outcome: &Outcome) -> Option<Reason> {
    outcome.problem().map(|problem| problem.reason())
}

/// A tool that takes its time whatever the run's deadline.
fn sleeper(name: &str, time: Duration) -> Tool {
    Tool::new(name, move |_| {
        std::thread::sleep(time);
        Ok(())
    })
}

#[test]
fn arguments_arrive_with_string_keys() {
    let engine = engine([Tool::echo("echo"), Tool::new("json", |call| Ok(call.json().to_owned()))]);
    for (program, json) in [
        ("(tool/json)", "{}"),
        ("(tool/json {})", "{}"),
        ("(tool/json {:id 1})", r#"{"id":1}"#),
        (r#"(tool/json {"id" 1})"#, r#"{"id":1}"#),
        ("(tool/json :q \"x\" :limit 10)", r#"{"limit":10,"q":"x"}"#),
        // Only the names of arguments change, and only when they are keywords.
        (
            "(tool/json {:user-id {:is-new true} :xs [{:a-b :k-v}]})",
            r#"{"user_id":{"is-new":true},"xs":[{"a-b":"k-v"}]}"#,
        ),
        ("(tool/json :user-id 1 :a-b-c {:d-e 2})", r#"{"a_b_c":{"d-e":2},"user_id":1}"#),
        (
            r#"(tool/json {"Content-Type" "json" :by-day {"2024-01-01" 5 "2024_01_01" 6}})"#,
            r#"{"Content-Type":"json","by_day":{"2024-01-01":5,"2024_01_01":6}}"#,
        ),
        ("(tool/json {:tags #{:b :a}})", r#"{"tags":["a","b"]}"#),
        ("(tool/json {1 2})", r#"{"1":2}"#),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!(outcome.value::<String>().as_deref(), Ok(json), "{program}");
    }
    for (program, text) in [
        ("(tool/echo {:items #{1 2} :labels #{:x}})", r##"{"items" #{1 2} "labels" #{"x"}}"##),
        (r#"(tool/echo {:a-b {:c-d 1} "e-f" 2})"#, r#"{"a_b" {"c-d" 1} "e-f" 2}"#),
    ] {
        assert_eq!(engine.eval(program, Input::new()).text(), Some(text), "{program}");
    }
}

#[test]
fn the_signature_is_the_authority_for_names() {
    let spelt = |signature: &str| engine([Tool::new("t", |call| Ok(call.json().to_owned())).signature(signature)]);
    for (signature, program, json) in [
        ("(user-id :string) -> :any", "(tool/t {:user-id \"u\"})", r#"{"user-id":"u"}"#),
        ("(user-id :string) -> :any", r#"(tool/t {"user-id" "u"})"#, r#"{"user-id":"u"}"#),
        ("(user_id :string) -> :any", "(tool/t {:user-id \"u\"})", r#"{"user_id":"u"}"#),
        ("(user_id :string) -> :any", "(tool/t :user_id \"u\")", r#"{"user_id":"u"}"#),
        (
            "(user {first-name :string}) -> :any",
            "(tool/t {:user {:first-name \"u\"}})",
            r#"{"user":{"first-name":"u"}}"#,
        ),
        ("(a :int, ...) -> :any", "(tool/t {:a 1 :b-c 2})", r#"{"a":1,"b_c":2}"#),
        ("(a {b :int, ...}) -> :any", "(tool/t {:a {:b 1 :c-d 2}})", r#"{"a":{"b":1,"c-d":2}}"#),
        (":any", "(tool/t {:x 1})", r#"{"x":1}"#),
    ] {
        let outcome = spelt(signature).eval(program, Input::new());
        assert_eq!(outcome.value::<String>().as_deref(), Ok(json), "{signature} {program}: {:?}", outcome.problem());
    }
    for (signature, program, message) in [
        ("(limit :int?) -> :any", "(tool/t {:limt 5})", "tool/t: unknown argument \"limt\": did you mean limit?"),
        (
            "(user-id :int?) -> :any",
            "(tool/t {:user_id 5})",
            "tool/t: unknown argument \"user_id\": did you mean user-id?",
        ),
        (
            "(user_id :int?) -> :any",
            r#"(tool/t {"user-id" 5})"#,
            "tool/t: unknown argument \"user-id\": did you mean user_id?",
        ),
        ("(a {b-c :int?}) -> :any", "(tool/t {:a {:b_c 1}})", "tool/t: a: unknown field \"b_c\": did you mean b-c?"),
        ("() -> :any", "(tool/t {:x 1})", "tool/t: unknown argument \"x\": expected none"),
        ("(a :int?, b :int?) -> :any", "(tool/t {:xyz 1})", "tool/t: unknown argument \"xyz\": expected a, b"),
    ] {
        let outcome = spelt(signature).eval(program, Input::new());
        assert_eq!(reason(&outcome), Some(Reason::InvalidToolArgs), "{signature} {program}");
        assert_eq!(outcome.problem().map(|p| p.error.message.as_str()), Some(message), "{signature} {program}");
    }
}

#[test]
fn keywords_and_datetimes_are_texts_for_tools() {
    let engine = engine([
        Tool::echo("echo").signature("(k :keyword?, at :datetime?) -> :any"),
        Tool::new("kind", |_| Ok("big")).signature("() -> :keyword"),
        Tool::new("time", |_| Ok("2024-01-01T00:00:00Z"))
            .signature("() -> {at :datetime}")
            .signature("() -> :datetime"),
        Tool::new("day", |_| Ok("2024-01-01")).signature("() -> :datetime"),
    ]);
    for (program, text) in [
        ("(tool/echo {:k :a})", r#"{"k" "a"}"#),
        (r#"(tool/echo {:k "a"})"#, r#"{"k" "a"}"#),
        (r#"(tool/echo {:at "2024-01-31T12:00:00Z"})"#, r#"{"at" "2024-01-31T12:00:00Z"}"#),
        (r#"(str (:at (tool/echo {:at (Instant/parse "2024-01-31T12:00:00Z")})))"#, r#""2024-01-31T12:00:00Z""#),
        ("[(tool/kind) (tool/time)]", r#"["big" "2024-01-01T00:00:00Z"]"#),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!(outcome.text(), Some(text), "{program}: {:?}", outcome.problem());
    }
    for program in [r#"(tool/echo {:at "yesterday"})"#, "(tool/echo {:k 1})", "(tool/echo {:at 5})", "(tool/day)"] {
        assert!(!engine.eval(program, Input::new()).is_success(), "{program}");
    }
}

#[test]
fn arguments_that_are_none_are_refused() {
    let engine =
        engine([Tool::echo("echo"), Tool::new("strict", |_| Ok(1)).signature("(id :int, q :string?) -> :int")]);
    for program in [
        "(tool/echo 1)",
        "(tool/echo :key)",
        "(tool/echo nil)",
        "(tool/echo {:a 1} {:b 2})",
        "(tool/echo :a 1 :b)",
        r#"(tool/echo {"path" "a" :path "b"})"#,
        "(tool/echo {:a-b 1 :a_b 2})",
        r#"(tool/echo {:a-b 1 "a_b" 2})"#,
        r#"(tool/echo {:outer {"a" 1 :a 2}})"#,
        "(tool/echo :a 1 :a 2)",
        "(tool/strict)",
        "(tool/strict {:id 1.5})",
        "(tool/strict {:id 1 :q 2})",
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!(reason(&outcome), Some(Reason::InvalidToolArgs), "{program}: {:?}", outcome.problem());
        // The tool was not touched, and the ledger knows that it was to be.
        assert_eq!((outcome.ledger.len(), outcome.usage.tool_calls), (1, 0), "{program}");
        assert_eq!(outcome.ledger[0].status, CallStatus::Error, "{program}");
        let message = outcome.problem().map(|problem| problem.error.message.clone());
        assert_eq!(outcome.ledger[0].error, message, "{program}");
        let problem = outcome.problem().expect("a problem");
        let end = program.chars().count() as u32 + 1;
        let at = problem.position.map(|at| [at.line, at.column, at.end_line, at.end_column]);
        assert_eq!(at, Some([1, 1, 1, end]), "{program}");
        assert!(problem.error.hint.is_some(), "{program}");
    }
    assert_eq!(engine.eval("(tool/strict {:id 1})", Input::new()).value::<i64>(), Ok(1));
}

#[test]
fn unknown_tools_are_found_before_anything_runs() {
    let engine = engine([Tool::new("greet", |_| Ok("hello"))]);
    let outcome = engine.eval("(do (tool/greet) (tool/unknown {}))", Input::new());
    let problem = outcome.problem().expect("a problem");
    assert_eq!(problem.reason(), Reason::UnknownTool);
    assert_eq!(problem.position.map(|at| (at.line, at.column, at.end_line, at.end_column)), Some((1, 19, 1, 31)));
    assert!(problem.error.hint.as_deref().is_some_and(|hint| hint.contains("tool/greet")));
    assert!(outcome.ledger.is_empty());
}

#[test]
fn a_refused_call_is_in_the_ledger_as_it_was_to_be_made() {
    let engine = engine([Tool::echo("echo").signature("(id :int) -> :any")]);
    for (program, arguments) in [
        ("(tool/echo {:id 1}) (tool/echo {:id :x})", r#"{"id":"x"}"#),
        ("(tool/echo {:id 1}) (tool/echo {:id 1 :user-name 2})", r#"{"id":1,"user_name":2}"#),
        ("(tool/echo {:id 1}) (tool/echo 1 [2])", "[1,[2]]"),
        ("(tool/echo {:id 1}) (tool/echo inc)", "[\"#<builtin>\"]"),
        ("(tool/echo {:id 1}) (tool/echo {:id 1 \"id\" 2})", "null"),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!(reason(&outcome), Some(Reason::InvalidToolArgs), "{program}");
        let status: Vec<_> = outcome.ledger.iter().map(|entry| entry.status).collect();
        assert_eq!(status, [CallStatus::Ok, CallStatus::Error], "{program}");
        assert_eq!(outcome.ledger[1].arguments.text, arguments, "{program}");
    }
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let hint = |names: &[&str], call: &str| {
        let outcome = engine(names.iter().map(|name| Tool::external(*name))).eval(call, Input::new());
        assert_eq!(reason(&outcome), Some(Reason::UnknownTool));
        outcome.problem().and_then(|p| p.error.hint.clone()).unwrap_or_default()
    };
    assert_eq!(hint(&[], "(tool/x)"), "this run has no tools; use data/... only");
    assert_eq!(hint(&["search-orders", "refund"], "(tool/serch-orders {})"), "did you mean tool/search-orders?");
    assert_eq!(hint(&["a", "refund"], "(tool/search {})"), "available: tool/a, tool/refund");
    let many: Vec<String> = (0..300).map(|n| format!("server1__tool_number_{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let near = hint(&many, "(tool/server1__tool_numbr_8 {})");
    assert!(near.starts_with("did you mean tool/server1__tool_number_8,") && near.len() < 300, "{near}");
    assert!(hint(&many, "(tool/refund {})").starts_with("none of the 300 tools has a similar name; the first is "));
}

#[test]
fn errors_and_panics_of_tools_are_the_programs_errors() {
    let engine = engine([
        Tool::new("boom", |_| Err::<(), _>(ToolError::new("boom"))),
        Tool::new("panic", |_| -> Result<(), ToolError> { panic!("no way") }),
        Tool::new("parse", |call| Ok(call.get::<String>("n")?.parse::<i64>()?)),
        Tool::new("shape", |_| Ok("text")).signature("() -> {n :int}"),
    ]);
    for (program, reason_is, text) in [
        ("(tool/boom)", Reason::ToolError, "boom"),
        ("(tool/panic)", Reason::ToolError, "no way"),
        ("(tool/parse {:n \"x\"})", Reason::ToolError, "invalid digit"),
        ("(tool/parse {:m 1})", Reason::InvalidToolArgs, "argument n"),
        ("(tool/shape)", Reason::ToolError, "expected a map, got string"),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!(reason(&outcome), Some(reason_is), "{program}");
        let message = outcome.problem().map(|p| p.error.message.clone()).unwrap_or_default();
        assert!(message.contains(text), "{program}: {message}");
        assert_eq!(outcome.ledger.len(), 1, "{program}");
    }
    assert_eq!(engine.eval("(inc (tool/parse {:n \"41\"}))", Input::new()).value::<i64>(), Ok(42));
}

#[test]
fn the_ledger_is_there_when_the_program_failed() {
    let engine = engine([Tool::echo("touch")]);
    let outcome = engine.eval("(do (println \"before\") (tool/touch {:x 1}) (+ 1 nil))", Input::new());
    assert_eq!(outcome.verdict(), Verdict::Error);
    assert_eq!(outcome.prints, ["before"]);
    assert_eq!(outcome.ledger.len(), 1);
    assert_eq!((outcome.ledger[0].status, outcome.ledger[0].arguments.text.as_str()), (CallStatus::Ok, r#"{"x":1}"#));
    assert_eq!(outcome.usage.tool_calls, 1);
}

#[test]
fn cached_calls_are_not_counted() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let tool = Tool::new("slow", move |_| Ok(counter.fetch_add(1, Ordering::Relaxed))).cached();
    let engine = Engine::builder().limits(Limits::default().with_tool_calls(2)).grant(tool).build().expect("an engine");
    let outcome =
        engine.eval("[(tool/slow {:a 1}) (tool/slow {:a 1}) (tool/slow {\"a\" 1}) (tool/slow {:a 2})]", Input::new());
    assert_eq!(outcome.value::<Vec<i64>>(), Ok(vec![0, 0, 0, 1]));
    let status: Vec<_> = outcome.ledger.iter().map(|entry| entry.status).collect();
    assert_eq!(status, [CallStatus::Ok, CallStatus::Cached, CallStatus::Cached, CallStatus::Ok]);
    let outcome = engine.eval("(map #(tool/slow {:a %}) [1 2 3])", Input::new());
    assert_eq!(reason(&outcome), Some(Reason::ToolCallLimitExceeded));
    assert_eq!((outcome.usage.tool_calls, outcome.ledger.len()), (2, 3));
    assert_eq!(outcome.ledger[2].arguments.text, r#"{"a":3}"#);
    assert_eq!((outcome.ledger[2].status, outcome.ledger[2].result.is_none()), (CallStatus::Error, true));
}

#[test]
fn a_tool_that_returns_its_arguments_can_be_cached() {
    let engine = engine([Tool::echo("echo").cached()]);
    let outcome = engine
        .eval("[(tool/echo {:a #{1}}) (tool/echo {:a #{1}}) (tool/echo {:a [1]}) (tool/echo {:a 2})]", Input::new());
    assert_eq!(outcome.text(), Some(r##"[{"a" #{1}} {"a" #{1}} {"a" [1]} {"a" 2}]"##));
    let status: Vec<_> = outcome.ledger.iter().map(|entry| entry.status).collect();
    assert_eq!(status, [CallStatus::Ok, CallStatus::Cached, CallStatus::Cached, CallStatus::Ok]);
    assert_eq!(outcome.usage.tool_calls, 2);
    assert_eq!(outcome.ledger[1].result.as_ref().map(|result| result.text.as_str()), Some(r#"{"a":[1]}"#));
}

#[test]
fn a_detached_tool_cannot_hold_a_run_past_its_deadline() {
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(50))
        .grant(sleeper("sleep", Duration::from_secs(600)).detached())
        .grant(sleeper("late", Duration::from_millis(80)))
        .build()
        .expect("an engine");
    let start = Instant::now();
    let outcome = engine.eval("(tool/sleep)", Input::new());
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert_eq!(outcome.ledger[0].status, CallStatus::Unknown);
    // The reply of a tool on the caller's own thread is dropped when it comes late.
    let outcome = engine.eval("(tool/late)", Input::new());
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert!(outcome.usage.compute_us < outcome.usage.duration_us);
}

#[test]
fn a_detached_tool_is_left_when_the_run_is_cancelled() {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(600_000))
        .grant(sleeper("wait", Duration::from_secs(600)).detached())
        .build()
        .expect("an engine");
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        handle.cancel();
    });
    let start = Instant::now();
    let outcome = engine.eval("(tool/wait)", Input::new().cancel_with(&cancel));
    canceller.join().expect("the canceller");
    assert_eq!(outcome.verdict(), Verdict::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_run_driven_step_by_step_stops_at_each_call() {
    let engine = engine([Tool::external("fetch"), Tool::external("store")]);
    let program =
        engine.compile("(tool/store {:sum (+ (tool/fetch {:id 1}) (tool/fetch {:id 2}))})").expect("a program");
    let mut progress = engine.start(&program, Input::new());
    let mut seen = Vec::new();
    let outcome = loop {
        progress = match progress {
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                let call = waiting.call();
                seen.push(format!("{} {}", call.name(), call.json()));
                match call.name() {
                    "fetch" => {
                        let id: i64 = call.get("id").expect("an id");
                        waiting.reply(&(id * 10))
                    }
                    _ => waiting.fail(ToolError::new("disk full")),
                }
            }
            Progress::Done(outcome) => break outcome,
        };
    };
    assert_eq!(seen, [r#"fetch {"id":1}"#, r#"fetch {"id":2}"#, r#"store {"sum":30}"#]);
    assert_eq!(reason(&outcome), Some(Reason::ToolError));
    assert_eq!(outcome.ledger.len(), 3);
    // Without a driver an external tool fails.
    assert_eq!(reason(&engine.run(&program, Input::new())), Some(Reason::ToolError));
}

#[test]
fn bad_tools_are_refused_when_the_engine_is_built() {
    let twice = Engine::builder().tool("a", |_| Ok(1)).tool("a", |_| Ok(2)).build();
    assert_eq!(twice.err(), Some(BuildError::Twice("a".to_owned())));
    for name in ["a b", "a/b", "", "a,b", "a(", "a;b", "a~"] {
        assert!(matches!(Engine::builder().tool(name, |_| Ok(1)).build(), Err(BuildError::Name(_))), "{name:?}");
    }
    for name in ["a-b", "server__tool", "a.b", "9", "ok?", "-", "a:b", "é"] {
        let engine = Engine::builder().tool(name, |_| Ok(1)).build().expect(name);
        assert_eq!(engine.eval(&format!("(tool/{name})"), Input::new()).value::<i64>(), Ok(1), "{name}");
    }
    let signature = Engine::builder().grant(Tool::new("a", |_| Ok(1)).signature("-> :integer")).build();
    assert!(matches!(signature, Err(BuildError::Signature { .. })));
}

#[test]
fn long_arguments_are_cut_in_the_ledger_only() {
    let engine = engine([Tool::new("size", |call| Ok(call.get::<String>("text")?.len()))]);
    let long = "é".repeat(5_000);
    let outcome = engine.eval("(tool/size {:text data/long})", Input::new().data("long", &long));
    assert_eq!(outcome.value::<usize>(), Ok(10_000));
    assert!(!outcome.ledger[0].arguments.is_whole());
    assert_eq!(outcome.ledger[0].arguments.bytes_total, 10_011);
}

#[test]
fn arguments_larger_than_the_limit_are_refused() {
    let engine = Engine::builder()
        .limits(Limits::default().with_result_bytes(1_000))
        .tool("size", |call| Ok(call.json().len()))
        .build()
        .expect("an engine");
    let long = "x".repeat(5_000);
    let outcome = engine.eval("(tool/size {:text data/long})", Input::new().data("long", &long));
    assert_eq!(reason(&outcome), Some(Reason::ResultLimitExceeded));
}

#[test]
fn very_many_calls_are_counted_but_not_all_recorded() {
    let limits = Limits::default().with_loop_iterations(0).with_timeout_ms(60_000).with_tool_calls(0);
    let engine = Engine::builder().limits(limits).grant(Tool::echo("echo").cached()).build().expect("an engine");
    let outcome = engine.eval("(loop [i 0] (when (< i 12000) (tool/echo {:i i}) (recur (inc i))))", Input::new());
    assert_eq!(outcome.verdict(), Verdict::Ok, "{:?}", outcome.problem());
    assert_eq!(outcome.usage.tool_calls, 12_000);
    assert_eq!(outcome.ledger.len() as u64 + outcome.ledger_dropped, 12_000);
    assert!(outcome.ledger_dropped > 0);
}

/// Taking the arguments out is not on the program's bill, but what is left of it does not stay.
#[test]
fn many_calls_leave_no_garbage_behind() {
    let limits =
        Limits::default().with_heap_bytes(200_000).with_loop_iterations(0).with_tool_calls(0).with_timeout_ms(60_000);
    let engine = Engine::builder().limits(limits).tool("one", |_| Ok(1)).build().expect("an engine");
    let outcome = engine.eval("(loop [i 0] (if (< i 20000) (recur (+ i (tool/one {}))) i))", Input::new());
    assert_eq!(outcome.value::<i64>(), Ok(20_000));
    assert!(outcome.usage.compactions > 10, "{:?}", outcome.usage);
    assert!(outcome.usage.heap_peak_bytes < 210_000, "{:?}", outcome.usage);
    // Next to a budget that is all but full it does not count as the program's own want of room.
    let full = "(let [v (vec (range 12350))] (loop [i 0] (if (< i 5000) (recur (+ i (tool/one {}))) (count v))))";
    let outcome = engine.eval(full, Input::new());
    assert_eq!(outcome.value::<i64>(), Ok(12_350));
    assert!(outcome.usage.compactions > 500, "{:?}", outcome.usage);
}

#[test]
fn errors_of_tools_can_be_caught() {
    let engine = engine([
        Tool::new("broken", |_| Err::<(), _>(ToolError::new("it is broken"))),
        Tool::new("panics", |_| -> Result<i64, ToolError> { panic!("a bug of the host's") }),
        Tool::new("number", |_| Ok("no number")).signature("(n :int) -> :int"),
        Tool::echo("echo"),
    ]);
    let caught = |call: &str| format!("(try {call} (catch Exception e [(:reason e) (:tool e)]))");
    for (program, text) in [
        (caught("(tool/broken {})"), "[:tool_error \"broken\"]"),
        (caught("(tool/panics {})"), "[:tool_error \"panics\"]"),
        (caught("(tool/number {:n 1})"), "[:tool_error \"number\"]"),
        (caught("(tool/number {:n :a})"), "[:invalid_tool_args \"number\"]"),
        (caught("(pmap tool/broken [{}])"), "[:pmap_error nil]"),
        (caught("(pmap (fn [_] (tool/panics {})) [1])"), "[:runtime_error nil]"),
        (format!("(pmap (fn [i] {} i) [1 2])", caught("(tool/panics {})")), "[1 2]"),
        (format!("[{} (tool/echo {{:a 1}})]", caught("(tool/broken {})")), "[[:tool_error \"broken\"] {\"a\" 1}]"),
    ] {
        let outcome = engine.eval(&program, Input::new());
        assert_eq!(outcome.text(), Some(text), "{program}: {:?}", outcome.problem());
        // A tool that gives what does not fit its signature has done its work.
        let wanted = if program.contains("{:n 1}") { CallStatus::Ok } else { CallStatus::Error };
        assert_eq!(outcome.ledger.first().map(|call| call.status), Some(wanted), "{program}");
    }
    for program in [caught("(tool/missing {})"), caught("(loop [] (recur))")] {
        let outcome = engine.eval(&program, Input::new());
        assert!(!reason(&outcome).expect("an error").is_catchable(), "{program}");
    }
}

/// What ends a run from outside goes through every `catch`, in workers too, and no `finally` is done.
#[test]
fn the_deadline_and_a_cancellation_are_not_caught() {
    let limits = Limits::default().with_timeout_ms(100).with_fuel(0);
    let engine =
        Engine::builder().limits(limits).grant(sleeper("sleep", Duration::from_secs(5))).build().expect("an engine");
    for body in ["(tool/sleep {})", "(pmap tool/sleep [{}])", "(reduce + (map count (map range (range 100000))))"] {
        let program = format!("(try {body} (catch Throwable e 1) (finally (println 2)))");
        let outcome = engine.eval(&program, Input::new());
        assert!(matches!(reason(&outcome), Some(Reason::Timeout | Reason::MemoryExceeded)), "{program}");
        assert!(outcome.prints.is_empty(), "{program}");
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let outcome = engine.eval("(try (tool/sleep {}) (catch Throwable e 1))", Input::new().cancel_with(&cancel));
    assert_eq!(reason(&outcome), Some(Reason::Cancelled));
}

#[test]
fn the_heartbeat_goes_on_while_a_detached_tool_runs() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let stuck = Tool::new("stuck", move |_| Ok(released.lock().unwrap().recv().is_ok())).detached();
    let limits = Limits::default().with_timeout_ms(20_000);
    let engine = Engine::builder().grant(stuck).limits(limits).build().expect("an engine");
    let cancel = Cancel::new();
    let at_once = cancel.clone();
    let input = Input::new().cancel_with(&cancel).heartbeat(move || at_once.cancel());
    assert_eq!(engine.eval("(tool/stuck)", input).verdict(), Verdict::Cancelled);
    drop(release);
}
