//! Arguments that nobody but the tool is to see.

use super::{at, both, counted, message, reason};
use lisp_runtime::record::RecordError;
use lisp_runtime::tools::{AskedCall, PolicyDecision};
use lisp_runtime::{BuildError, Engine, Input, Reason, Recording, Tool, ToolError};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

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
    for mode in 0..2 {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let outcome = at(mode, &engine, program, input);
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
        .grant(Tool::from_json_schema("schema", "", schema, None).unwrap().redact(["card"]).with_handler(|_| Ok(1)))
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
        for mode in 0..2 {
            let recording = Recording::new();
            let outcome = at(mode, &engine, &program, Input::new().record(&recording));
            let lines: Vec<String> = recording.text().lines().skip(1).map(str::to_owned).collect();
            assert!(message(&outcome).contains(told), "{program}: {}", message(&outcome));
            let shown = format!("{:?} {:?} {lines:?}", outcome.problem(), outcome.ledger);
            assert!(!shown.contains(SECRET), "{program} at door {mode}: {shown}");
        }
    }
    // What is not redacted is said as ever.
    let outcome = engine.eval("(tool/signed {:card {:number 1} :user 77})", Input::new());
    assert!(message(&outcome).contains("user: expected a string, got integer"), "{}", message(&outcome));
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
    for mode in 0..2 {
        let recording = Recording::new();
        at(mode, &engine, "(tool/pay {:card 1 :n 2})", Input::new().record(&recording));
        let mut record = recording.record().unwrap();
        let before = record.text().to_owned();
        let fault = record.approve("1", Some(r#"{"card":1,"n":1}"#)).unwrap_err();
        assert_eq!(fault, RecordError::Redacted("pay".to_owned()));
        assert_eq!(record.text(), before);
        record.approve("1", None).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        assert!(at(mode, &engine, program.source(), input).is_success());
        assert_eq!(calls.swap(0, Ordering::Relaxed), 1);
    }
}
