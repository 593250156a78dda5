//! What built-ins charge: for all of their work, before they do it, and the same whatever memory is left. Every built-in
//! is called with a small and a large argument of every kind, among usual ones.

mod corpus;

use lisp_core::builtins::{Builtin, MANY, all};
use lisp_core::compile::Program;
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::machine::{Ending, Grant, Machine, Settings, Usage};
use lisp_core::syntax::ReadLimits;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WHOLE: u64 = u64::MAX / 2;
/// Enough for the instructions of a call, and for hardly any work.
const HARDLY_ANY: u64 = 40;
/// Other work on the machine may be in the way a few times.
const ATTEMPTS: usize = 12;
/// What may be allocated for a unit of fuel, besides what every call may.
const BYTES_PER_UNIT: u64 = 512;
const BYTES: u64 = 40_000;
/// The size of large arguments.
const LARGE: usize = 60_000;
/// Bytes of text for each element of another argument.
const TEXT: usize = 8;
/// Room for results as long as the argument may be reserved before the first charge: the account of memory sees it.
const RESERVED: u64 = 2 * 16 * LARGE as u64;

const KINDS: &[&str] = &["text", "accents", "cluster", "ints", "same", "texts", "pairs", "rows", "map", "set"];

/// Values of a size, as `data/KIND`.
fn values(size: usize) -> Arc<Grant> {
    let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
        let ints = || (0..).map(|i: i64| Value::Int(i * 7_919 % 1_000_003));
        b.data("text", h.str(&"ab".repeat(size * TEXT / 2))?);
        b.data("accents", h.str(&"e\u{301} ".repeat(size * TEXT / 4))?);
        b.data("cluster", h.str(&format!("e{}", "\u{301}".repeat(size * TEXT / 2)))?);
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
const USUAL: &[&str] = &["2", "identity", "\"a\"", "[1]"];

/// Calls with one value of every kind in every place, and usual ones in the others.
fn calls(row: &Builtin, usual: &[&str]) -> Vec<String> {
    let most = if row.max == MANY { row.min.max(2) } else { row.max.min(3) };
    let mut calls = Vec::new();
    for count in row.min.max(1)..=most {
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

struct Run {
    ending: String,
    usage: Usage,
    took: Duration,
}

impl Run {
    fn succeeded(&self) -> bool {
        self.ending.is_empty()
    }
}

/// Runs a call; `None` when it does not compile.
fn run(source: &str, grant: &Arc<Grant>, settings: &Settings) -> Option<Run> {
    let program = Program::compile(source, &ReadLimits::default()).ok()?;
    let mut machine = Machine::new(vec![grant.clone()], settings.clone());
    machine.load(Arc::new(program)).ok()?;
    let start = Instant::now();
    let ending =
        corpus::workers::to_end(&mut machine, settings, WHOLE, &|machine| drop(machine.reply(|_| Ok(Value::Nil))));
    let took = start.elapsed();
    let ending = match ending {
        Ending::Error(error) => error.reason.name().to_owned(),
        _ => String::new(),
    };
    Some(Run { ending, usage: machine.usage(), took })
}

fn settings() -> Settings {
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
fn no_time() -> Duration {
    let reserve = || {
        let heap = Heap::new(1, usize::MAX / 2);
        let start = Instant::now();
        std::hint::black_box(heap.vec_builder(LARGE).expect("room"));
        start.elapsed()
    };
    (0..20).map(|_| reserve()).min().unwrap_or_default() * 3
}

/// Does a run take hardly any time in one of several attempts?
fn takes_no_time(source: &str, grant: &Arc<Grant>, settings: &Settings, no_time: Duration) -> Result<(), Duration> {
    let mut least = Duration::MAX;
    for _ in 0..ATTEMPTS {
        least = least.min(run(source, grant, settings).map_or(Duration::ZERO, |run| run.took));
        if least <= no_time {
            return Ok(());
        }
    }
    Err(least)
}

fn report(failures: &[String]) {
    let shown: Vec<&str> = failures.iter().take(60).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} calls:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn work_is_charged_for() {
    let (small, large, no_time) = (values(100), values(LARGE), no_time());
    let mut failures = Vec::new();
    let mut grown: BTreeSet<&str> = BTreeSet::new();
    for row in all() {
        for source in calls(row, USUAL) {
            let (Some(few), Some(many)) = (run(&source, &small, &settings()), run(&source, &large, &settings())) else {
                continue;
            };
            if !few.succeeded() || !many.succeeded() {
                continue;
            }
            let more = many.usage.fuel.saturating_sub(few.usage.fuel);
            let allocated = many.usage.allocated_bytes.saturating_sub(few.usage.allocated_bytes);
            if allocated > BYTES + BYTES_PER_UNIT * more {
                failures.push(format!("{source}: {allocated} bytes more for {more} units"));
            }
            if more >= 600 {
                grown.insert(row.name);
            } else if let Err(took) = takes_no_time(&source, &large, &settings(), no_time) {
                failures.push(format!("{source}: {took:?} for {more} units more"));
            }
        }
    }
    report(&failures);
    assert!(grown.len() > 100, "the arguments are such that there is work: {grown:?}");
}

#[test]
fn work_is_charged_for_before_it_is_done() {
    let (large, no_time) = (values(LARGE), no_time());
    let mut failures = Vec::new();
    let mut refused = 0;
    for row in all() {
        for source in calls(row, USUAL) {
            let settings = Settings { fuel: Some(HARDLY_ANY), ..settings() };
            let Some(run) = run(&source, &large, &settings) else { continue };
            refused += usize::from(run.ending == "fuel_exhausted");
            if run.usage.allocated_bytes > BYTES + RESERVED {
                failures.push(format!("{source}: {} bytes for {HARDLY_ANY} units", run.usage.allocated_bytes));
            }
            if let Err(took) = takes_no_time(&source, &large, &settings, no_time) {
                failures.push(format!("{source}: {took:?} for {HARDLY_ANY} units"));
            }
        }
    }
    report(&failures);
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn charges_do_not_depend_on_memory() {
    let some = values(90);
    let settings = || Settings { fuel: Some(30_000), ..settings() };
    let mut failures = Vec::new();
    let mut compared = 0;
    for row in all() {
        for source in calls(row, &USUAL[..2]) {
            let Some(free) = run(&source, &some, &settings()) else { continue };
            let budgets = [3_000, 10_000, 40_000, 300_000, 2_000_000];
            let tight = budgets.map(|heap_bytes| Settings { heap_bytes, ..settings() });
            let often = [3].map(|every| Settings { compact_every: Some(every), ..settings() });
            for settings in tight.into_iter().chain(often) {
                let Some(other) = run(&source, &some, &settings) else { continue };
                if other.ending == "memory_exceeded" {
                    continue;
                }
                compared += 1;
                if (&other.ending, other.usage.fuel) != (&free.ending, free.usage.fuel) {
                    let (budget, every) = (settings.heap_bytes, settings.compact_every);
                    failures.push(format!(
                        "{source}: {} units, {} in a budget of {budget}, compacted at every {every:?}",
                        free.usage.fuel, other.usage.fuel
                    ));
                }
            }
        }
    }
    report(&failures);
    assert!(compared > 5_000, "{compared}");
}
