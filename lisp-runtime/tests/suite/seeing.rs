//! What those see who look at runs: names of runs, observers, traces.

use lisp_runtime::observe::{CallEnded, CallRefused, CallStarted, HostFault, PrintedLine, RunEnded, RunStarted};
use lisp_runtime::tools::{AskedCall, PolicyDecision};
use lisp_runtime::{
    Amounts, Answer, Budget, Engine, EngineBuilder, Input, LimitsRequest, Observer, Progress, Recording, Request, Tool,
};
use std::sync::{Arc, Mutex};

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer for Notes {
    fn run_started(&self, run: &RunStarted<'_>) {
        self.note(format!("started {} {}", run.run_id, run.traceparent.unwrap_or("-")));
    }

    fn run_ended(&self, run: &RunEnded<'_>) {
        let usage = run.usage;
        let counted = usage.fuel > 0;
        let reason = run.reason.unwrap_or("-");
        self.note(format!("ended {} {} {reason} {counted} {}", run.run_id, run.verdict, usage.tool_calls));
    }

    fn printed(&self, line: &PrintedLine<'_>) {
        self.note(format!("printed {} {}", line.run_id, line.line));
    }

    fn call_started(&self, call: &CallStarted<'_>) {
        let again = if call.replayed { " again" } else { "" };
        self.note(format!("call {} {} {}{again}", call.name, call.place, call.number));
    }

    fn call_ended(&self, call: &CallEnded<'_>) {
        self.note(format!("done {} {} {}", call.name, call.place, call.status.name()));
    }

    fn call_refused(&self, call: &CallRefused<'_>) {
        self.note(format!("refused {} {:?} {}", call.name, call.worker, call.reason));
    }

    fn host_fault(&self, fault: &HostFault<'_>) {
        self.note(format!("fault {}", fault.run_id));
    }
}

fn builder(notes: &Notes) -> EngineBuilder {
    Engine::builder()
        .observer(notes.clone())
        .tool("twice", |call| Ok(call.get::<i64>("n")? * 2))
        .grant(Tool::new("kept", |call| call.get::<i64>("n")).cached())
        .tool("fails", |_| Err::<(), _>(lisp_runtime::ToolError::new("no")))
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn an_observer_sees_runs_calls_and_prints_in_order() {
    let notes = Notes::default();
    let engine = builder(&notes).build().unwrap();
    let program = "(println :a) (tool/twice {:n 1}) (println :b) (tool/kept {:n 2}) (tool/kept {:n 2}) (tool/fails {})";
    let outcome = engine.eval(program, Input::new().run_id("r1").traceparent(TRACE));
    assert_eq!(&*outcome.run_id, "r1");
    let seen = notes.take();
    let expected = [
        &format!("started r1 {TRACE}"),
        "printed r1 :a",
        "call twice 1 1",
        "done twice 1 ok",
        "printed r1 :b",
        "call kept 2 2",
        "done kept 2 ok",
        "call kept 3 0",
        "done kept 3 cached",
        "call fails 4 3",
        "done fails 4 error",
        "ended r1 error tool_error true 3",
    ];
    assert_eq!(seen, expected);
    // Set-up programs print nothing; a program that is not compiled is a run all the same.
    let setup = engine.compile("(println :hidden)").unwrap();
    assert!(engine.eval("1", Input::new().run_id("r2").setup(&setup)).is_success());
    assert_eq!(notes.take(), ["started r2 -", "ended r2 ok - true 0"]);
    let fails = engine.compile("(println :hidden) (/ 1 0)").unwrap();
    let failed = engine.eval("1", Input::new().print_to(|line| panic!("{line} is shown")).setup(&fails));
    assert_eq!(
        (failed.problem().and_then(|problem| problem.setup), failed.prints),
        (Some(0), vec![":hidden".to_owned()])
    );
    notes.take();
    engine.eval("(", Input::new().run_id("r3"));
    assert_eq!(notes.take(), ["started r3 -", "ended r3 error parse_error false 0"]);
}

#[test]
fn calls_of_workers_have_their_places_and_each_ends() {
    let notes = Notes::default();
    let engine = builder(&notes).build().unwrap();
    let outcome = engine.eval("(pmap (fn [i] (println i) (tool/twice {:n i})) (range 20))", Input::new());
    assert!(outcome.is_success());
    let seen = notes.take();
    for i in 0..20 {
        assert!(seen.iter().any(|line| line.starts_with(&format!("call twice 1:{i}/1 "))), "{seen:?}");
        assert!(seen.contains(&format!("done twice 1:{i}/1 ok")), "{seen:?}");
        assert!(seen.contains(&format!("printed {} {i}", outcome.run_id)), "{seen:?}");
    }
    assert_eq!(seen.len(), 62);
    assert_eq!(seen.last(), Some(&format!("ended {} ok - true 20", outcome.run_id)));
}

#[test]
fn a_run_that_is_dropped_ends_as_cancelled_and_so_do_its_calls() {
    let notes = Notes::default();
    let engine = Engine::builder().observer(notes.clone()).grant(Tool::external("ask")).build().unwrap();
    let program = engine.compile("(pmap (fn [i] (tool/ask {:i i})) (range 2))").unwrap();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new().run_id("w").traceparent(TRACE)) else {
        panic!()
    };
    assert_eq!(waiting.run_id(), "w");
    assert!(waiting.calls().all(|(_, call)| call.traceparent() == Some(TRACE)));
    notes.take();
    drop(waiting);
    let mut seen = notes.take();
    assert_eq!(seen.pop().as_deref(), Some("ended w cancelled cancelled false 0"));
    seen.sort();
    assert_eq!(seen, ["done ask 1:0/1 unknown", "done ask 1:1/1 unknown"]);
}

#[test]
fn turns_of_a_session_are_runs_and_its_memory_is_none() {
    let notes = Notes::default();
    let engine = builder(&notes).build().unwrap();
    let mut session = engine.session(Input::new());
    let outcomes = [session.eval("(def a (tool/twice {:n 1}))"), session.eval("(println a) a"), session.eval("(")];
    assert_eq!(session.memory().unwrap(), r#"{"a":2}"#);
    drop(session);
    let ids = outcomes.each_ref().map(|outcome| outcome.run_id.to_string());
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    let expected = [
        format!("started {} -", ids[0]),
        "call twice 1 1".to_owned(),
        "done twice 1 ok".to_owned(),
        format!("ended {} ok - true 1", ids[0]),
        format!("started {} -", ids[1]),
        format!("printed {} 2", ids[1]),
        format!("ended {} ok - true 0", ids[1]),
        format!("started {} -", ids[2]),
        format!("ended {} error parse_error false 0", ids[2]),
    ];
    assert_eq!(notes.take(), expected);
}

#[test]
fn a_run_has_one_name_everywhere() {
    let engine = Engine::builder().tool("key", |call| Ok(call.key().map(str::to_owned))).build().unwrap();
    for named in [Some("order-7"), None] {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let input = named.into_iter().fold(input, Input::run_id);
        let outcome = engine.eval("(tool/key {})", input);
        assert_eq!(outcome.value::<String>().unwrap(), format!("{}/1", outcome.run_id));
        assert_eq!(recording.run_id(), *outcome.run_id);
        assert_eq!(Answer::new(None, &outcome).run_id, *outcome.run_id);
        assert!(named.is_none_or(|named| *outcome.run_id == *named));
        // It goes on under its name, whatever the host calls it now.
        let record = recording.record().unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        assert_eq!(engine.run(&program, input.run_id("another")).run_id, outcome.run_id);
    }
    let long = "x".repeat(129);
    for bad in ["", "a b", "é", &long] {
        let outcome = engine.eval("1", Input::new().run_id(bad));
        assert!(outcome.problem().unwrap().error.hint.as_deref().unwrap().contains("1 to 128"), "{bad}");
        assert_ne!(&*outcome.run_id, bad);
    }
}

#[test]
fn a_request_brings_its_trace() {
    let engine = Engine::builder().tool("trace", |call| Ok(call.traceparent().map(str::to_owned))).build().unwrap();
    for (header, seen) in [(TRACE, Some(TRACE)), ("00-garbage", None)] {
        let json = serde_json::json!({ "program": "(tool/trace {})", "traceparent": header }).to_string();
        let outcome = Request::parse(&json).unwrap().outcome(&engine);
        assert_eq!(outcome.value::<Option<String>>().unwrap().as_deref(), seen);
    }
}

#[test]
fn an_observer_that_panics_does_no_harm() {
    struct Panics;
    impl Observer for Panics {
        fn run_started(&self, _: &RunStarted<'_>) {
            panic!("a test's panic")
        }
        fn run_ended(&self, _: &RunEnded<'_>) {
            panic!("a test's panic")
        }
        fn printed(&self, _: &PrintedLine<'_>) {
            panic!("a test's panic")
        }
        fn call_started(&self, _: &CallStarted<'_>) {
            panic!("a test's panic")
        }
        fn call_ended(&self, _: &CallEnded<'_>) {
            panic!("a test's panic")
        }
    }
    let engine =
        Engine::builder().observer(Panics).tool("twice", |call| Ok(call.get::<i64>("n")? * 2)).build().unwrap();
    let outcome = engine.eval("(println 1) (pmap (fn [n] (tool/twice {:n n})) [1 2])", Input::new());
    assert_eq!((outcome.value::<Vec<i64>>().unwrap(), &outcome.prints[..]), (vec![2, 4], &["1".to_owned()][..]));
}

#[test]
fn who_is_told_changes_nothing_of_the_answer() {
    let program = "(doseq [i (range 30)] (println i)) (pmap (fn [i] (println i) (tool/twice {:n i})) (range 9))";
    let of = |engine: Engine| {
        let outcome = engine.eval(program, Input::new());
        (outcome.text().map(str::to_owned), outcome.prints, outcome.usage.fuel, outcome.usage.allocated_bytes)
    };
    let plain = Engine::builder().tool("twice", |call| Ok(call.get::<i64>("n")? * 2)).build().unwrap();
    let notes = Notes::default();
    let seen = of(builder(&notes).build().unwrap());
    assert_eq!(seen, of(plain));
    assert_eq!(notes.take().iter().filter(|line| line.starts_with("printed")).count(), 39);
}

#[test]
fn an_observer_is_told_of_calls_that_are_refused() {
    let notes = Notes::default();
    let engine = Engine::builder()
        .observer(notes.clone())
        .policy(|call: &AskedCall<'_>| match call.name() {
            "denied" => PolicyDecision::Deny("no".to_owned()),
            "asked" => PolicyDecision::Ask("may it?".to_owned()),
            _ => PolicyDecision::Allow,
        })
        .tool("denied", |_| Ok(1))
        .tool("asked", |_| Ok(1))
        .grant(Tool::new("once", |_| Ok(1)).max_calls(1))
        .grant(Tool::new("typed", |_| Ok(1)).signature("(n :int) -> :int"))
        .grant(Tool::from_json_schema("schema", "", r#"{"properties": {"n": {"type": "integer"}}}"#, None).unwrap())
        .build()
        .unwrap();
    let budget = Budget::new(Amounts::new().with_calls(0));
    let long = "(tool/once {:n (apply str (repeat 3000 \"x\"))})";
    let rows = [
        ("(tool/denied {})", "refused denied [] tool_denied"),
        ("(pmap (fn [i] (when (= i 1) (tool/denied {}))) (range 2))", "refused denied [1] tool_denied"),
        ("(tool/asked {})", "refused asked [] approval_required"),
        ("[(tool/once {}) (tool/once {})]", "refused once [] tool_call_limit_exceeded"),
        ("(tool/typed {:n :a})", "refused typed [] invalid_tool_args"),
        ("(tool/schema {:n 1.5})", "refused schema [] invalid_tool_args"),
        (long, "refused once [] result_limit_exceeded"),
        ("(tool/typed {:n 1})", "refused typed [] budget_exceeded"),
    ];
    for (source, wanted) in rows {
        let mut asked = LimitsRequest::default();
        asked.set("result_bytes", 2_000).unwrap();
        let mut input = Input::new().limits(asked);
        if wanted.ends_with("budget_exceeded") {
            input = input.budget(&budget);
        }
        let outcome = engine.eval(source, input);
        let refused: Vec<String> = notes.take().into_iter().filter(|line| line.starts_with("refused")).collect();
        assert_eq!(refused, [wanted], "{source}: {:?}", outcome.problem());
        assert!(wanted.ends_with(outcome.problem().unwrap().reason().name()), "{source}");
    }
}
