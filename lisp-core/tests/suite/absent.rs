//! Names of Clojure that the language leaves out, and names of other languages: what their errors say is true.

use crate::common;
use lisp_core::Error;
use lisp_core::builtins::foreign::{ABSENT_CLASSES, ABSENT_NAMESPACES};
use lisp_core::builtins::{ABSENT, Absent, LAZY, OTHER_NAMES};
use lisp_core::compile::Program;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Grant, Machine, Settings};
use std::sync::Arc;

/// The public names of `clojure.core`, and those of `clojure.string`, `clojure.set` and `clojure.walk` behind their
/// namespace, of version 1.11.
const CLOJURE: &str = include_str!("names_of_clojure.txt");

/// What is wrong with a program before it runs.
fn refusal(source: &str) -> Option<Error> {
    let load = || -> Result<(), Error> {
        let program = Program::compile(source, &ReadLimits::default())?;
        Machine::new(Vec::<Arc<Grant>>::new(), Settings::default()).load(Arc::new(program))
    };
    load().err()
}

/// Is it a name that the language has, as a function or as a special form?
fn is_there(name: &str) -> bool {
    refusal(name).is_none_or(|e| e.message.contains("special form") || e.message.contains("outside"))
}

#[test]
fn every_name_of_clojure_is_there_or_has_a_hint_of_its_own() {
    let mut wrong = Vec::new();
    for name in CLOJURE.lines() {
        if is_there(name) {
            continue;
        }
        let plain = name.rsplit_once('/').filter(|(space, _)| !space.is_empty()).map_or(name, |(_, plain)| plain);
        let hint = refusal(name).and_then(|e| e.hint);
        match Absent::of(plain) {
            Some(absent) if hint.as_deref() == Some(absent.hint().as_str()) => {}
            _ => wrong.push(format!("{name}: {hint:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} names without a hint of their own:\n{}", wrong.len(), wrong.join("\n"));
    assert!(CLOJURE.lines().count() > 700);
}

#[test]
fn what_is_absent_is_not_there() {
    let names: Vec<&str> = ABSENT.iter().chain(OTHER_NAMES).flat_map(Absent::names).collect();
    let there: Vec<&str> = names.iter().copied().filter(|name| is_there(name)).collect();
    assert!(there.is_empty(), "these are said to be absent: {there:?}");
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "a name stands in two groups");
}

#[test]
fn classes_and_namespaces_of_others_have_a_hint_of_their_own() {
    let mut wrong = Vec::new();
    let mut check = |program: String, hint: String| {
        let got = refusal(&program).and_then(|error| error.hint);
        if got.as_deref() != Some(hint.as_str()) {
            wrong.push(format!("{program}: {got:?}"));
        }
    };
    for (name, absent) in ABSENT_CLASSES.iter().flat_map(|absent| absent.names().map(move |name| (name, absent))) {
        check(format!("({name}/of 1)"), absent.hint());
        check(format!("({name}. 1)"), absent.hint());
        check(format!("(import some.java.{name})"), absent.hint());
    }
    for (name, absent) in ABSENT_NAMESPACES.iter().flat_map(|absent| absent.names().map(move |name| (name, absent))) {
        check(format!("(require '[{name} :as other])"), absent.hint());
        check(format!("({name}/f 1)"), absent.hint());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_hints_say_to_write_works() {
    let all = || ABSENT.iter().chain(OTHER_NAMES).chain(ABSENT_CLASSES).chain(ABSENT_NAMESPACES).chain([&LAZY]);
    let mut wrong = Vec::new();
    for (program, value) in all().flat_map(|absent| absent.instead) {
        let (answer, _) = common::run(program, 10_000);
        wrong.extend(common::difference(&answer, value).map(|difference| format!("{program}\n{difference}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for absent in all() {
        let hint = absent.hint();
        assert!(!hint.contains("{}"), "{hint}");
        assert!(absent.instead.iter().all(|(program, _)| hint.contains(program)), "{hint}");
    }
}
