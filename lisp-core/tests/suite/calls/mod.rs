//! Calls of every built-in with a small or large argument of every kind, among usual ones.

use crate::cpu::timed;
use lisp_core::builtins::{Builtin, MANY};
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::vm::{Grant, Settings};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The size of large arguments. A build that is not optimized takes as long for fewer.
pub(crate) const LARGE: usize = if cfg!(debug_assertions) { 24_000 } else { 60_000 };
/// Bytes of text for each element of another argument.
pub(crate) const TEXT: usize = 8;
/// Other work on the machine may be in the way a few times.
pub(crate) const ATTEMPTS: usize = 12;

pub(crate) const KINDS: &[&str] =
    &["text", "accents", "cluster", "json", "ints", "same", "texts", "pairs", "rows", "map", "set"];

/// Values of a size, as `data/KIND`.
pub(crate) fn values(size: usize) -> Arc<Grant> {
    let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
        let ints = || (0..).map(|i: i64| Value::Int(i * 7_919 % 1_000_003));
        b.data("text", h.str(&"ab".repeat(size * TEXT / 2))?);
        b.data("accents", h.str(&"e\u{301} ".repeat(size * TEXT / 4))?);
        b.data("cluster", h.str(&format!("e{}", "\u{301}".repeat(size * TEXT / 2)))?);
        b.data("json", h.str(&format!("[{}1]", "1,".repeat(size * TEXT / 2)))?);
        b.data("ints", h.vector_from(size, ints())?);
        b.data("same", h.vector_from(size, std::iter::repeat(Value::Int(7)))?);
        let texts = (0..size).map(|i| h.str(&format!("t{i}"))).collect::<Res<Vec<_>>>()?;
        b.data("texts", h.vector(&texts)?);
        let pairs = (0..size as i64).map(|i| h.vector(&[Value::Int(i), Value::Int(-i)])).collect::<Res<Vec<_>>>()?;
        b.data("pairs", h.vector(&pairs)?);
        let id = h.keyword("id")?;
        let rows = (0..size as i64).map(|i| h.map([(id, Value::Int(i))].into_iter())).collect::<Res<Vec<_>>>()?;
        b.data("rows", h.vector(&rows)?);
        let entries: Vec<_> = ints().take(size).map(|i| (i, i)).collect();
        b.data("map", h.map(entries.into_iter())?);
        let members: Vec<_> = ints().take(size).collect();
        b.data("set", h.set(members.into_iter())?);
        Ok(())
    });
    Arc::new(grant.expect("values"))
}

/// Values for the other places.
pub(crate) const USUAL: &[&str] = &["2", "identity", "\"a\"", "[1]"];

/// Calls with one value of every kind in every place, and usual ones in the others.
pub(crate) fn calls(row: &Builtin, usual: &[&str]) -> Vec<String> {
    let max = if row.max == MANY { row.min.max(2) } else { row.max.min(3) };
    let mut calls = Vec::new();
    for count in row.min.max(1)..=max {
        for kind in KINDS {
            for place in 0..count {
                for usual in usual.iter().take(if count > 1 { USUAL.len() } else { 1 }) {
                    let mut call = format!("({}", row.name);
                    for i in 0..count {
                        // Writing to a string cannot fail.
                        let _ = if i == place { write!(call, " data/{kind}") } else { write!(call, " {usual}") };
                    }
                    calls.push(call + ")");
                }
            }
        }
    }
    calls
}

pub(crate) fn settings() -> Settings {
    Settings {
        heap_bytes: 100_000_000,
        fuel: Some(20_000_000),
        now_ms: Some(1_700_000_000_000),
        loop_iterations: 0,
        ..Settings::default()
    }
}

/// So long takes what is no work on this machine: three times what room for [`LARGE`] elements takes, which may be
/// reserved before the first charge.
pub(crate) fn no_time() -> Duration {
    let reserve = || {
        let mut took = Duration::ZERO;
        let built = Grant::build(usize::MAX / 2, |heap, _| {
            let (room, work) = timed(|| heap.vector_from(LARGE, std::iter::repeat(Value::Nil)));
            std::hint::black_box(room?);
            took = work;
            Ok(())
        });
        assert!(built.is_ok(), "room");
        took
    };
    (0..20).map(|_| reserve()).min().unwrap_or_default() * 3
}

pub(crate) fn report(failures: &[String]) {
    let shown: Vec<&str> = failures.iter().take(60).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} calls:\n{}", failures.len(), shown.join("\n"));
}
