//! Sessions: what a turn leaves, and what one that fails does not.

use crate::cpu::timed;
use lisp_runtime::outcome::OutcomeKind;
use lisp_runtime::{Cancel, Engine, Input, Limits, Outcome, Reason, Session, Tool, Verdict};
use std::time::Duration;

fn reason(outcome: &Outcome) -> Option<Reason> {
    outcome.problem().map(|problem| problem.reason())
}

fn text(session: &mut Session, program: &str) -> String {
    let outcome = session.eval(program);
    assert!(outcome.is_success(), "{program}: {:?}", outcome.problem());
    outcome.text().unwrap_or_default().to_owned()
}

#[test]
fn definitions_that_json_cannot_say_hold_up_no_turn() {
    let mut session = Engine::default().session(Input::new());
    assert_eq!(text(&mut session, "(def ok 1)"), "#'ok");
    assert_eq!(text(&mut session, "(def m2 {:a 1 \"a\" 2})"), "#'m2");
    assert_eq!(text(&mut session, "[ok (count m2)]"), "[1 2]");
    let error = session.memory().expect_err("two keys of one name").error;
    assert_eq!(error.reason, Reason::TypeError);
    assert!(error.message.starts_with("the definition m2: "), "{}", error.message);
    assert_eq!(text(&mut session, "(def m2 nil) *1"), "[1 2]");
    assert_eq!(session.memory().expect("definitions"), r#"{"m2":null,"ok":1}"#);
    assert_eq!(text(&mut session, "[ok *1]"), "[1 [1 2]]", "asking for the definitions is no turn");
}

#[test]
fn definitions_larger_than_a_result_may_be_hold_up_no_turn() {
    let mut session = Engine::default().session(Input::new());
    for name in ["a", "b", "c", "d", "e"] {
        let define = format!("(def {name} (reduce (fn [s _] (str s s)) \"{name}\" (range 20)))");
        assert_eq!(text(&mut session, &define), format!("#'{name}"));
    }
    assert_eq!(text(&mut session, "(+ 1 1)"), "2");
    let error = session.memory().expect_err("five megabytes").error;
    assert_eq!(error.reason, Reason::ResultLimitExceeded);
    assert_eq!(error.message, "the memory takes 5242916 bytes as JSON; the limit result_bytes is 4000000");
    assert_eq!(session.names(), ["a", "b", "c", "d", "e"]);
}

/// However a turn fails, definitions and results are as they were.
#[test]
fn a_turn_that_fails_leaves_nothing() {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let cancelling = Tool::new("cancel", move |_| {
        handle.cancel();
        Ok(1)
    });
    let limits = Limits::default().with_result_bytes(1_000).with_timeout_ms(200);
    let engine = Engine::builder().limits(limits).grant(cancelling).tool("sleep", |call| {
        call.sleep(Duration::from_secs(5));
        Ok(1)
    });
    let engine = engine.tool("bad", |_| Err::<(), _>(lisp_runtime::ToolError::new("no"))).build().expect("an engine");
    let mut session = engine.session(Input::new().signature(":int").cancel_with(&cancel));
    assert_eq!(text(&mut session, "(def x 1) 7"), "7");
    for (failing, why) in [
        ("(def x 2) (def y 3) \"text\"", Reason::ValidationError),
        ("(def x 2) (return \"text\")", Reason::ValidationError),
        ("(def x 2) (vec (range 1000))", Reason::ValidationError),
        ("(def x 2) (+ 1 nil)", Reason::TypeError),
        ("(def x 2) (tool/bad)", Reason::ToolError),
        ("(def x 2) (tool/nope)", Reason::UnknownTool),
        ("(def x 2) (tool/sleep)", Reason::Timeout),
        ("(def x 2) (tool/cancel)", Reason::Cancelled),
        ("(def x 2) (vec (range 10000000))", Reason::MemoryExceeded),
        ("(def x 2) (loop [] (recur))", Reason::LoopLimitExceeded),
        ("(def x 2", Reason::ParseError),
        ("(def x nope)", Reason::UnboundVar),
    ] {
        let outcome = session.eval(failing);
        assert_eq!(reason(&outcome), Some(why), "{failing}: {:?}", outcome.problem());
        cancel.reset();
        assert_eq!(text(&mut session, "(if (= *1 7) x 100)"), "1", "after {failing}");
        assert_eq!(text(&mut session, "7"), "7");
        assert_eq!(session.names(), ["x"], "after {failing}");
    }
    let mut session = engine.session(Input::new());
    assert_eq!(text(&mut session, "(def x 1) 7"), "7");
    let outcome = session.eval("(def x 2) (vec (range 1000))");
    assert_eq!(reason(&outcome), Some(Reason::ResultLimitExceeded));
    let problem = outcome.problem().expect("a problem");
    assert_eq!(problem.error.message, "the result takes 3891 bytes as JSON; the limit result_bytes is 1000");
    assert_eq!(session.eval("(def x 3) (fail 1)").kind(), Some(OutcomeKind::Fail));
    assert_eq!(text(&mut session, "[x *1]"), "[1 7]");
}

#[test]
fn what_is_returned_is_a_result_of_the_session() {
    let mut session = Engine::default().session(Input::new());
    assert_eq!(text(&mut session, "(+ 1 1)"), "2");
    assert_eq!(text(&mut session, "(do (def z 7) (return 5))"), "5");
    assert_eq!(text(&mut session, "[*1 *2 z]"), "[5 2 7]");
}

#[test]
fn names_and_memory_are_there_before_the_first_turn() {
    let mut session = Engine::default().session(Input::new().memory(r#"{"b": 1, "a": [2]}"#));
    assert_eq!(session.names(), ["a", "b"]);
    assert_eq!(session.memory().expect("definitions"), r#"{"b": 1, "a": [2]}"#);
    assert_eq!(text(&mut session, "(def c (+ b 1))"), "#'c");
    assert_eq!(session.memory().expect("definitions"), r#"{"a":[2],"b":1,"c":2}"#);
    let mut broken = Engine::default().session(Input::new().memory("[1]"));
    assert_eq!((broken.names(), reason(&broken.eval("1"))), (Vec::new(), Some(Reason::ParseError)));
}

/// A turn takes as long with much in memory as with little.
#[test]
fn a_turn_does_not_pay_for_what_is_in_memory() {
    let limits = Limits::default().with_heap_bytes(100_000_000).with_timeout_ms(60_000);
    let engine = Engine::builder().limits(limits).build().expect("an engine");
    let least = |define: &str| {
        let mut session = engine.session(Input::new());
        assert!(session.eval(define).is_success());
        let turn = |session: &mut Session| {
            let (outcome, took) = timed(|| session.eval("(+ 1 1)"));
            assert_eq!(outcome.verdict(), Verdict::Ok);
            took
        };
        (0..200).map(|_| turn(&mut session)).min().unwrap_or_default()
    };
    let (small, large) = (least("(def xs [1])"), least("(def xs (vec (range 400000)))"));
    assert!(large < small * 20 + Duration::from_micros(100), "{large:?} with much in memory, {small:?} with little");
}

#[test]
fn a_run_is_none_the_worse_for_definitions_that_cannot_be_brought_out() {
    let outcome = Engine::default().eval("(def m2 {:a 1 \"a\" 2}) :done", Input::new());
    assert_eq!((outcome.json(), outcome.memory()), (Some("\"done\""), None));
    assert!(outcome.memory_error().is_some_and(|error| error.message.contains("the definition m2")));
    let outcome = Engine::default().eval("(def a 1)", Input::new().without_memory());
    assert_eq!((outcome.is_success(), outcome.memory(), outcome.memory_error()), (true, None, None));
}

#[test]
fn what_is_live_is_measured_without_garbage() {
    let engine = Engine::default();
    let program = "(do (reduce + (map inc (vec (range 50000)))) (reduce + (map inc (vec (range 50000)))))";
    assert_eq!(engine.eval(program, Input::new()).usage.heap_live_bytes, None);
    let usage = engine.eval(program, Input::new().measure_live()).usage;
    assert!(usage.heap_live_bytes.is_some_and(|live| live < 20_000), "{usage:?}");
    assert!(usage.heap_peak_bytes > 400_000, "{usage:?}");
    let usage = engine.eval("(def held (vec (range 50000))) 1", Input::new().measure_live()).usage;
    assert!(usage.heap_live_bytes.is_some_and(|live| (800_000..1_500_000).contains(&live)), "{usage:?}");
}

/// It ends the turn, and nothing else.
#[test]
fn a_clock_that_panics_costs_a_session_nothing() {
    let engine = Engine::builder().clock(|| panic!("no clock")).build().unwrap();
    let mut session = engine.session(Input::new());
    assert_eq!(session.eval("(def a 1)").verdict(), Verdict::Ok);
    let outcome = session.eval("(def b (System/currentTimeMillis))");
    assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::HostFault));
    assert_eq!(session.eval("(inc a)").text(), Some("2"));
    assert_eq!(session.names(), ["a"]);
}
