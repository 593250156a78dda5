//! What observers see of runs behind the process mode.

use lisp_runtime::observe::{CallEnded, CallRefused, CallStarted, PrintedLine, RunEnded, RunStarted};
use lisp_runtime::tools::{AskedCall, PolicyDecision};
use lisp_runtime::{Amounts, Answer, Budget, Engine, Input, Limits, LimitsRequest, Observer, Request, Tool};
use lisp_sandbox::Sandbox;
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
        self.note(format!("started {} {}", run.run_id, run.traceparent.is_some()));
    }

    fn run_ended(&self, run: &RunEnded<'_>) {
        self.note(format!("ended {} {} {}", run.run_id, run.verdict, run.usage.tool_calls));
        panic!("a test's panic");
    }

    fn printed(&self, line: &PrintedLine<'_>) {
        self.note(format!("printed {}", line.line));
    }

    fn call_started(&self, call: &CallStarted<'_>) {
        self.note(format!("call {} {} {}", call.name, call.place, call.number));
    }

    fn call_ended(&self, call: &CallEnded<'_>) {
        self.note(format!("done {} {} {}", call.name, call.place, call.status.name()));
    }

    fn call_refused(&self, call: &CallRefused<'_>) {
        self.note(format!("refused {} {:?} {}", call.name, call.worker, call.reason));
    }
}

/// Runs, sessions and killed runs: what is told of them is what is told of runs in-process.
pub(crate) fn observers_see_runs_of_processes(_: &Sandbox) {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let notes = Notes::default();
    let engine = Engine::builder()
        .limits(Limits::default().with_loop_iterations(0))
        .observer(notes.clone())
        .tool("trace", |call| Ok(call.traceparent().map(str::to_owned)))
        .grant(Tool::new("kept", |call| call.get::<i64>("n")).cached())
        .build()
        .unwrap();
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let program = "(println :a) (tool/kept {:n 1}) (println :b) (tool/kept {:n 1}) (tool/trace {})";
    let input = || Input::new().run_id("r1").traceparent(TRACE);
    let outcome = sandbox.eval(program, &input());
    assert_eq!((outcome.value::<String>().unwrap(), &*outcome.run_id), (TRACE.to_owned(), "r1"));
    let seen = notes.take();
    assert_eq!(seen[0], "started r1 true");
    assert_eq!(seen.last().map(String::as_str), Some("ended r1 ok 2"));
    assert!(engine.eval(program, input()).is_success());
    assert_eq!(seen, notes.take());
    // Lines of a run that is killed have been seen by then.
    let mut asked = LimitsRequest::default();
    asked.set("timeout_ms", 150).unwrap();
    let late = sandbox.eval("(println :early) (loop [] (recur))", &Input::new().run_id("r2").limits(asked));
    assert_eq!(late.prints, [":early"]);
    assert_eq!(notes.take(), ["started r2 false", "printed :early", "ended r2 timeout 0"]);
    let bad = sandbox.eval("1", &Input::new().run_id("no name"));
    assert!(bad.problem().unwrap().error.message.contains("name"));
    assert_eq!(notes.take().len(), 2);
    let request = Request::parse(r#"{"program": "(inc 1)"}"#).unwrap();
    let answer = Answer::new(None, &sandbox.run(&request));
    assert_eq!(notes.take(), [format!("started {} false", answer.run_id), format!("ended {} ok 0", answer.run_id)]);
    // A turn is a run; asking for the memory is none, before the first turn either.
    let mut session = sandbox.session(Input::new());
    assert_eq!(session.memory().unwrap(), "{}");
    let (one, two) = (session.eval("(def a 1)"), session.eval("(println a)"));
    assert_eq!(session.memory().unwrap(), r#"{"a":1}"#);
    drop(session);
    let expected = [
        format!("started {} false", one.run_id),
        format!("ended {} ok 0", one.run_id),
        format!("started {} false", two.run_id),
        "printed 1".to_owned(),
        format!("ended {} ok 0", two.run_id),
    ];
    assert_eq!(notes.take(), expected);
    assert_ne!(one.run_id, two.run_id);
}

/// Refused calls are told as in-process.
pub(crate) fn observers_are_told_of_refused_calls(_: &Sandbox) {
    let notes = Notes::default();
    let engine = Engine::builder()
        .observer(Quiet(notes.clone()))
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
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
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
        let outcome = sandbox.eval(source, &input);
        assert_eq!(notes.take(), [wanted], "{source}: {:?}", outcome.problem());
        assert!(wanted.ends_with(outcome.problem().unwrap().reason().name()), "{source}");
    }
}

/// Tells of refused calls only.
struct Quiet(Notes);

impl Observer for Quiet {
    fn call_refused(&self, call: &CallRefused<'_>) {
        self.0.call_refused(call);
    }
}
