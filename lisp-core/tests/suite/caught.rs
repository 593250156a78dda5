//! Errors that a program catches, where the driver has a part in them: tools that fail, and workers.

use lisp_core::vm::{Grant, Machine, Settings};
use lisp_core::{Error, Reason};
use std::sync::Arc;

/// What a program answers whose tools all fail, in several rhythms, which must make no difference, and the units of fuel.
fn run(source: &str) -> Result<String, &'static str> {
    let mut answers = Vec::new();
    for (slice, every) in [(u64::MAX / 4, None), (1, None), (7, Some(2)), (u64::MAX / 4, Some(1))] {
        let settings = Settings { compact_every: every, ..Settings::default() };
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        let answer = crate::common::answer_with_tools(&mut machine, source, slice, |machine| {
            let name = machine.with_call(|_, name, _| name.to_owned()).unwrap_or_default();
            let (reason, message) = match name.as_str() {
                "late" => (Reason::Timeout, "too late"),
                "often" => (Reason::ToolCallLimitExceeded, "too often"),
                _ => (Reason::ToolError, "it is out of order"),
            };
            machine.reply_error(Error::new(reason, message));
        });
        answers.push((answer.map_err(|error| error.0), machine.usage().fuel, machine.take_prints()));
    }
    for other in &answers[1..] {
        assert_eq!(*other, answers[0], "{source}");
    }
    answers.swap_remove(0).0
}

#[test]
fn a_tool_that_fails_can_be_caught() {
    let caught = "(try (tool/search {:q 1}) (catch Exception e [(:reason e) (:tool e) (ex-message e)]))";
    assert_eq!(run(caught).as_deref(), Ok("[:tool_error \"search\" \"it is out of order\"]"));
    assert_eq!(
        run("(map (fn [x] (try (tool/search {:q x}) (catch Exception e x) (finally (println x)))) [1 2])").as_deref(),
        Ok("[1 2]")
    );
    assert_eq!(run("(try (tool/search {}) (catch IllegalArgumentException e 1))"), Err("tool_error"));
    assert_eq!(run("(try (tool/search {}) (finally (println 1)))"), Err("tool_error"));
    assert_eq!(run("(try (map tool/search [{}]) (catch Exception e :none))").as_deref(), Ok(":none"));
    assert_eq!(run("(try (pmap tool/search [{}]) (catch Exception e (:reason e)))").as_deref(), Ok(":pmap_error"));
    assert_eq!(
        run("(pmap (fn [x] (try (tool/search {:x x}) (catch Exception e x))) [1 2 3])").as_deref(),
        Ok("[1 2 3]")
    );
}

#[test]
fn what_the_host_ends_cannot_be_caught() {
    for (tool, reason) in [("late", "timeout"), ("often", "tool_call_limit_exceeded")] {
        let source = format!("(try (tool/{tool} {{}}) (catch Exception e 1) (finally (println 2)))");
        assert_eq!(run(&source), Err(reason));
    }
    assert_eq!(run("(try (pmap tool/late [{}]) (catch Exception e 1))"), Err("timeout"));
    assert_eq!(run("(try (pmap tool/often [{}]) (catch Exception e 1))"), Err("pmap_error"));
}

/// The places that an error has when it ends the run after all.
#[test]
fn an_error_that_goes_on_has_its_first_place() {
    for source in [
        "(defn f [x] (/ 1 x))\n(try (f 0) (finally 1))",
        "(defn f [x] (/ 1 x))\n(try (f 0) (catch ExceptionInfo e 1))",
        "(defn f [x] (/ 1 x))\n(try (f 0) (catch Exception e (throw e)))",
        "(defn f [x] (throw (ex-info \"no\" {:x x})))\n(try (try (f 0) (finally 1)) (finally 2))",
    ] {
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
        let program = lisp_core::compile::Program::compile(source, &Default::default()).expect("a program");
        machine.load(Arc::new(program)).expect("loaded");
        let ending = crate::workers::to_end(&mut machine, &Settings::default(), 100, &|_| {});
        let lisp_core::vm::Ending::Error(error) = ending else { panic!("{source} ends well") };
        let line = source[..error.span.expect("a place").start as usize].lines().count();
        assert_eq!(line, 1, "{source}: {error:?}");
    }
}
