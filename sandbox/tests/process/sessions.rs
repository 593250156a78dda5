//! Sessions behind the process mode: the host keeps what the process says the definitions are.

use lisp_runtime::{Engine, Input, Limits, Program, Reason, Verdict};
use lisp_sandbox::{Sandbox, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A sandbox in which `(tool/stay {})` outlasts the deadline, so that the process is killed.
fn short(limits: Limits) -> Sandbox {
    counted(limits, &Arc::default())
}

/// The same with `(tool/count {})`, whose calls are counted.
fn counted(limits: Limits, calls: &Arc<AtomicUsize>) -> Sandbox {
    let calls = calls.clone();
    let engine = Engine::builder()
        .limits(limits.with_timeout_ms(300))
        .tool("stay", |_| {
            std::thread::sleep(Duration::from_millis(700));
            Ok(1)
        })
        .tool("count", move |_| Ok(calls.fetch_add(1, Ordering::Relaxed)))
        .build()
        .unwrap();
    Sandbox::builder().engine(engine).build().unwrap()
}

fn text(session: &mut Session, program: &str) -> String {
    let outcome = session.eval(program);
    assert!(outcome.is_success(), "{program}: {:?}", outcome.problem());
    outcome.text().unwrap_or_default().to_owned()
}

fn killed(session: &mut Session) -> String {
    let outcome = session.eval("(def x :lost) (tool/stay {})");
    assert_eq!(outcome.verdict(), Verdict::Timeout, "{:?}", outcome.problem());
    assert!(!session.is_alive());
    outcome.problem().unwrap().error.hint.clone().unwrap()
}

pub(crate) fn outlive_a_killed_turn(_: &Sandbox) {
    let set_ups = Arc::default();
    let sandbox = counted(Limits::default(), &set_ups);
    let setup = Program::compile("(def base (do (tool/count {}) 100))", &Limits::default()).unwrap();
    let input = Input::new().data("n", &5).memory(r#"{"m": 1}"#).setup(&setup);
    let mut session = sandbox.session(input);
    // Even before a turn has ended.
    let hint = killed(&mut session);
    assert!(
        hint.contains("the session continues in a new process, with the definitions from before this turn"),
        "{hint}"
    );
    assert_eq!(text(&mut session, "(defn f [x] (+ x base data/n m)) (def x 1)"), "#'x");
    assert_eq!(text(&mut session, "(def add (let [k {:a #{1.5 :b}}] (fn [v] [v k])))"), "#'add");
    for _ in 0..2 {
        killed(&mut session);
        assert_eq!(session.names(), ["add", "base", "f", "m", "x"]);
        assert_eq!(text(&mut session, "[*1 (f 1) (add 2) x]"), "[#'add 107 [2 {:a #{1.5 :b}}] 1]");
        session.undo().unwrap();
    }
    assert_eq!(set_ups.load(Ordering::Relaxed), 1, "the set-up ran once");
    // Places in turns before are told by their numbers.
    assert!(session.eval("(defn bad [v]\n  (inc v))").is_success());
    let turn = session.turns();
    killed(&mut session);
    let outcome = session.eval("(bad nil)");
    let problem = outcome.problem().unwrap();
    assert_eq!((problem.turn, problem.position.map(|at| at.line)), (Some(turn), Some(2)));
}

pub(crate) fn are_saved_and_forked(sandbox: &Sandbox) {
    let mut session = sandbox.session(Input::new().data("n", &5));
    let mut early = session.fork().unwrap();
    text(&mut session, "(def xs [1 2]) (defn all [] (conj xs data/n))");
    let mut fork = session.fork().unwrap();
    text(&mut fork, "(def xs [9])");
    assert_eq!(text(&mut session, "(all)"), "[1 2 5]");
    assert_eq!(text(&mut fork, "(all)"), "[9 5]");
    assert_eq!(early.eval("xs").problem().unwrap().reason(), Reason::UnboundVar);
    // What one mode saves the other loads.
    let saved = session.save().unwrap();
    let engine = Engine::builder().limits(Limits::default()).build().unwrap();
    let mut here = engine.load_session(&saved, Input::new().data("n", &6)).unwrap();
    assert_eq!(here.eval("[(all) *1]").text(), Some("[[1 2 6] [1 2 5]]"));
    let mut there = sandbox.load_session(&here.save().unwrap(), Input::new().data("n", &7)).unwrap();
    assert_eq!(there.names(), ["all", "xs"]);
    assert_eq!(text(&mut there, "(all)"), "[1 2 7]");
    assert_eq!(there.turns(), here.turns() + 1);
    let cut = sandbox.load_session(&saved[..saved.len() / 2], Input::new()).unwrap_err();
    assert!(cut.problem().unwrap().error.message.contains("of the saved session"), "{cut:?}");
    // Before the first turn.
    let fresh = sandbox.session(Input::new().memory(r#"{"m": 3}"#)).save().unwrap();
    assert_eq!(engine.load_session(&fresh, Input::new()).unwrap().eval("m").text(), Some("3"));
}

pub(crate) fn go_back(_: &Sandbox) {
    let sandbox = short(Limits::default().with_session_undo(2));
    let mut session = sandbox.session(Input::new());
    assert_eq!(session.undo().unwrap_err().reason(), Reason::SessionLimitExceeded);
    text(&mut session, "(def x 0)");
    session.undo().unwrap();
    assert!(session.names().is_empty());
    for n in 1..=4 {
        text(&mut session, &format!("(def x {n}) (def y{n} {n})"));
    }
    assert!(session.eval("(def x (/ 1 0))").problem().is_some());
    session.undo().unwrap();
    killed(&mut session);
    assert_eq!(session.names(), ["x", "y1", "y2", "y3"]);
    session.undo().unwrap();
    let error = session.undo().unwrap_err().error;
    assert!(error.message.contains("at most its last 2 turns (session_undo)"), "{}", error.message);
    assert_eq!(text(&mut session, "x"), "2");
}

/// The same turns and the same steps back leave the same at both modes.
pub(crate) fn go_back_alike(_: &Sandbox) {
    let limits = Limits::default().with_session_undo(3);
    let sandbox = short(limits);
    let engine = Engine::builder().limits(limits).build().unwrap();
    let programs = ["1", "1", "nil", "(", "(/ 1 0)", "(def x 5)", "(def x 6)", "x", "(def y (inc x))", "(fail 1)"];
    let mut seed: u64 = 7;
    for _ in 0..6 {
        let (mut here, mut there) = (engine.session(Input::new()), sandbox.session(Input::new()));
        for _ in 0..30 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match programs.get((seed >> 33) as usize % 14) {
                Some(program) => {
                    let (one, other) = (here.eval(program), there.eval(program));
                    assert_eq!(one.text(), other.text(), "{program}");
                    assert_eq!(one.verdict(), other.verdict(), "{program}");
                }
                None => assert_eq!(here.undo().is_ok(), there.undo().is_ok(), "{:?}", here.names()),
            }
            assert_eq!(here.names(), there.names());
        }
    }
}

pub(crate) fn say_what_is_lost(_: &Sandbox) {
    let sandbox = short(Limits::default().with_session_bytes(2_000));
    let mut session = sandbox.session(Input::new());
    let hint = killed(&mut session);
    assert!(hint.contains("starts over: no turn had ended before"), "{hint}");
    text(&mut session, "(def rows (vec (range 1000)))");
    let error = session.save().unwrap_err();
    assert_eq!(error.problem().unwrap().reason(), Reason::SessionLimitExceeded);
    assert_eq!(text(&mut session, "(count rows)"), "1000", "that is no matter for the turns");
    text(&mut session, "(def rows nil) (def a 1)");
    killed(&mut session);
    assert_eq!(text(&mut session, "a"), "1");
    text(&mut session, "(def rows (vec (range 1000)))");
    let hint = killed(&mut session);
    assert!(
        hint.contains("the session starts over, because its definitions could not be kept")
            && hint.contains("session_bytes"),
        "{hint}"
    );
    assert!(session.names().is_empty());
    assert_eq!(session.eval("a").problem().unwrap().reason(), Reason::UnboundVar);
}
