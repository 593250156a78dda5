//! Every built-in on the worst arguments there are, under tight limits: each call ends, with a value or an error, soon.

use super::extremes::{colliding, nested};
use lisp_core::builtins::{Builtin, MANY};
use lisp_core::compile::Program;
use lisp_core::error::Reason;
use lisp_core::heap::{Fault, Res, Value};
use lisp_core::json::read;
use lisp_core::library::all;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FUEL: u64 = 2_000_000;
const HEAP: usize = 2_000_000;
/// No call takes longer.
const MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20_000 } else { 200 });

/// Arguments that are written in the program.
const WRITTEN: &[&str] = &[
    "nil",
    "-1",
    "9223372036854775807",
    "1e308",
    "##NaN",
    "\"\"",
    "[]",
    ":k",
    "inc",
    "(fn [& xs] xs)",
    "(iterate inc 0)",
    "(comp (map inc) (partition-all 2))",
    "#\"(a|b|ab)*c\"",
    "\"%999999d %s\"",
    "\"(a+)+$\"",
];

/// Arguments that the host grants, as `data/NAME`: large ones that are not to be built for each call.
const GRANTED: &[&str] = &[
    "data/text",
    "data/accents",
    "data/digits",
    "data/json",
    "data/big",
    "data/numbers",
    "data/texts",
    "data/rows",
    "data/pairs",
    "data/deep",
    "data/shared",
    "data/map",
    "data/set",
    "data/colliding",
    "data/mixed",
    "data/letters",
];

fn worst_values() -> Arc<Grant> {
    let grant = Grant::build(usize::MAX, |h, b| {
        b.data("text", h.str(&"a".repeat(4_000_000))?);
        b.data("accents", h.str(&"e\u{301}\u{1f469}\u{200d}\u{1f469} ".repeat(40_000))?);
        b.data("digits", h.str(&"9".repeat(1_000_000))?);
        b.data("json", h.str(&format!("[{}1]", "[1,{\"a\":\"\\u00e9\"}],".repeat(40_000)))?);
        let big = format!("-{}", "9".repeat(4_000));
        b.data("big", read(h, &big).map_err(|e| e.into_fault(Reason::ParseError))?);
        b.data("numbers", h.vector_from(250_000, (0..).map(|i| Value::Int(i * 7_919 % 1_000_003)))?);
        let texts = (0..50_000).map(|i| h.str(&format!("t{i}"))).collect::<Res<Vec<_>>>()?;
        b.data("texts", h.vector(&texts)?);
        let letters = (0..100_000).map(|_| h.str("\u{e9}")).collect::<Res<Vec<_>>>()?;
        b.data("letters", h.vector(&letters)?);
        let pairs = (0..20_000).map(|i| h.vector(&[Value::Int(i), Value::Int(-i)])).collect::<Res<Vec<_>>>()?;
        b.data("pairs", h.vector(&pairs)?);
        let row = |i: i64| {
            let (name, id) = (h.keyword("name")?, h.keyword("id")?);
            h.map([(name, h.str("n")?), (id, Value::Int(i))].into_iter())
        };
        let rows = (0..10_000).map(row).collect::<Res<Vec<_>>>()?;
        b.data("rows", h.vector(&rows)?);
        b.data("deep", nested(h, 100_000, |h, v| h.vector(&[v]))?);
        b.data("shared", nested(h, 30, |h, v| h.vector(&[v, v]))?);
        b.data("map", h.map((0..20_000).map(|i| (Value::Int(i), Value::Int(i))).collect::<Vec<_>>().into_iter())?);
        b.data("set", h.set((0..20_000).map(Value::Int).collect::<Vec<_>>().into_iter())?);
        let keys = colliding().take(500).map(|k| Ok((h.str(&k)?, Value::Nil))).collect::<Res<Vec<_>>>()?;
        b.data("colliding", h.map(keys.into_iter())?);
        let name = |i: usize| if i.is_multiple_of(2) { h.keyword(&format!("a-{i}")) } else { h.str(&format!("a_{i}")) };
        let mixed = (0..10_000).map(|i| Ok((name(i)?, Value::Nil))).collect::<Res<Vec<_>>>()?;
        b.data("mixed", h.map(mixed.into_iter())?);
        Ok::<(), Fault>(())
    });
    Arc::new(grant.expect("the worst values"))
}

/// The calls of a built-in: with all arguments the same, and with one bad one among usual ones.
fn calls(row: &Builtin) -> Vec<String> {
    let mut calls = Vec::new();
    let max = if row.max == MANY { row.min.max(3) } else { row.max.min(4) };
    let worst = || WRITTEN.iter().chain(GRANTED);
    // Debug builds leave out most of the usual values; a call is slow with any of them.
    let usual: &[&str] = if cfg!(debug_assertions) { &["2"] } else { &["2", "inc"] };
    for count in row.min..=max {
        for bad in worst() {
            calls.push(format!("({}{})", row.name, format!(" {bad}").repeat(count.into())));
            for place in 0..if count > 1 { count } else { 0 } {
                for good in usual {
                    let mut call = format!("({}", row.name);
                    for i in 0..count {
                        let _ = write!(call, " {}", if i == place { bad } else { good });
                    }
                    call.push(')');
                    calls.push(call);
                }
            }
        }
        if count == 0 {
            calls.truncate(1);
        }
        if count == 2 && !cfg!(debug_assertions) {
            for (a, b) in worst().flat_map(|a| worst().map(move |b| (a, b))) {
                calls.push(format!("({} {a} {b})", row.name));
            }
        }
    }
    calls
}

/// How long the call took and its fuel.
fn call(source: &str, grant: &Arc<Grant>) -> Result<(Duration, u64), String> {
    let Ok(program) = Program::compile(source, &ReadLimits::default()) else { return Ok((Duration::ZERO, 0)) };
    let settings =
        Settings { heap_bytes: HEAP, fuel: Some(FUEL), now_ms: Some(1_700_000_000_000), ..Settings::default() };
    let mut machine = Machine::new(vec![grant.clone()], settings.clone());
    if machine.load(Arc::new(program)).is_err() {
        return Ok((Duration::ZERO, 0));
    }
    let start = crate::cpu::thread_time();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let reply = |machine: &mut Machine| drop(machine.reply(|_| Ok(Value::Nil)));
        match crate::workers::to_end(&mut machine, &settings, u64::MAX / 2, &reply) {
            Ending::Error(error) if error.reason == Reason::HostFault => Err(error.to_string()),
            // What the failing instruction spent is not counted.
            Ending::Error(error) if error.reason == Reason::MemoryExceeded => Ok(FUEL),
            Ending::Error(error) if error.reason == Reason::FuelExhausted => Ok(FUEL),
            _ => Ok(0),
        }
    }));
    let took = crate::cpu::thread_time() - start;
    match ended {
        Ok(Ok(fuel)) => Ok((took, machine.usage().fuel.max(fuel))),
        Ok(Err(error)) => Err(format!("{source}: {error}")),
        Err(_) => Err(format!("{source}: a panic")),
    }
}

#[test]
fn every_built_in_ends_soon_whatever_it_is_given() {
    let grant = worst_values();
    let only = std::env::var("WORST_ONLY").unwrap_or_default();
    let rows: Vec<_> = all().iter().filter(|row| only.is_empty() || row.name == only).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut failures, mut slow, mut count) = (Vec::new(), Vec::new(), 0);
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            for source in calls(row) {
                count += 1;
                match call(&source, &grant) {
                    Err(failure) => failures.push(failure),
                    // Other work on the machine may have been in the way.
                    Ok((took, _)) if took > MAX && call(&source, &grant).is_ok_and(|(again, _)| again > MAX) => {
                        failures.push(format!("{source}: {took:?}"));
                    }
                    Ok((took, fuel)) => slow.push((took.as_nanos() as u64 / (fuel + 10_000), took, fuel, source)),
                }
            }
        }
        slow.sort();
        (failures, slow.split_off(slow.len().saturating_sub(400)), count)
    };
    let (mut failures, mut slow, count) = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        let other = other.join().expect("the other half");
        all.0.extend(other.0);
        all.1.extend(other.1);
        (all.0, all.1, all.2 + other.2)
    });
    if std::env::var_os("WORST_TIMES").is_some() {
        slow.sort();
        println!("{count} calls; nanoseconds for a unit of fuel, time, fuel");
        for (ratio, took, fuel, source) in slow.iter().rev() {
            println!("{ratio:>8} {took:>12.2?} {fuel:>9} {source}");
        }
    }
    failures.truncate(100);
    assert!(failures.is_empty(), "{} calls:\n{}", failures.len(), failures.join("\n"));
}
