//! Deep values on all ways out of a run, and back, on a native stack that is too small for any recursion over them.

use lisp_runtime::{Engine, Input, Limits, Outcome, Tool};

const STACK: usize = 128 << 10;
const DEPTH: usize = 20_000;

/// Values made of another one, `a`; by turns of all of them.
const LEVELS: &[&[&str]] = &[
    &["[a]"],
    &["{:k a}"],
    &["{a 1}"],
    &["#{a}"],
    &["(list a 1)", "{:k a :l [1]}", "{a 1 :b 2}", "#{a 1}", "(ex-info \"m\" {:a a})"],
    &["(fn [] a)"],
    &["(partial vector a)", "[a]", "{a :k}"],
    &["(map (constantly a))", "{:k a}"],
];

/// Where a value goes.
const PROGRAMS: &[&str] = &[
    "TOWER",
    "(let [d TOWER] [d {:d d} #{d}])",
    "(return TOWER)",
    "(fail TOWER)",
    "(def d TOWER) (def e {:d d}) nil",
    "(do (println TOWER) (prn TOWER) 1)",
    "(tool/echo {:d TOWER})",
    "(tool/echo TOWER)",
    "(tool/text {:d TOWER})",
    "(tool/typed {:d TOWER})",
    "(count (str (tool/echo {:d TOWER})))",
    "(pmap (fn [i] [i TOWER]) (range 3))",
    "(pmap (fn [_] (tool/echo {:d TOWER})) (range 3))",
    "(let [d TOWER] (+ 1 d))",
    "(throw (ex-info \"m\" {:d TOWER}))",
    "(throw TOWER)",
    "(TOWER 1 2 3 4)",
    "(tool/echo (json/parse-string (json/generate-string TOWER)))",
];

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread");
    thread.join().expect("no panic");
}

fn engine() -> Engine {
    let limits = Limits::unlimited().with_heap_bytes(200_000_000).with_result_bytes(100_000_000);
    Engine::builder()
        .limits(limits)
        .grant(Tool::echo("echo"))
        .grant(Tool::new("text", |call| Ok(call.json().len())))
        .grant(Tool::new("typed", |call| Ok(call.json().len())).signature("(d :any) -> :int"))
        .build()
        .expect("an engine")
}

fn program(levels: &[&str], template: &str) -> String {
    let inner = levels.iter().fold("a".to_owned(), |inner, level| format!("(let [a {inner}] {level})"));
    let tower = format!("(reduce (fn [a _] {inner}) 1 (range {}))", DEPTH / levels.len());
    template.replace("TOWER", &tower)
}

fn looked_at(outcome: &Outcome) -> usize {
    [outcome.json(), outcome.text(), outcome.memory()].iter().flatten().map(|text| text.len()).sum()
}

#[test]
fn deep_values_leave_a_run() {
    on_a_small_stack(|| {
        let engine = engine();
        let mut seen = 0;
        for levels in LEVELS {
            for template in PROGRAMS {
                let outcome = engine.eval(&program(levels, template), Input::new());
                let reason = outcome.problem().map(|problem| problem.reason());
                assert_ne!(reason, Some(lisp_runtime::Reason::HostFault), "{levels:?}: {template}");
                seen += looked_at(&outcome);
            }
        }
        assert!(seen > 10 * DEPTH, "{seen}");
    });
}

#[test]
fn deep_values_stay_in_sessions() {
    on_a_small_stack(|| {
        let engine = engine();
        for levels in LEVELS {
            let mut session = engine.session(Input::new());
            let made = session.eval(&program(levels, "(def d TOWER) (def e TOWER) [d]"));
            assert!(made.problem().is_none_or(|problem| !problem.error.message.is_empty()));
            let saved = session.save().expect("a text");
            let mut loaded = engine.load_session(&saved, Input::new()).expect("a session");
            let same = loaded.eval("[(= d d) (= d e)]");
            let text = same.text().unwrap_or_default();
            assert!(["[true true]", "[true false]"].contains(&text), "{levels:?}: {text:.100}");
            drop(session.memory());
        }
    });
}
