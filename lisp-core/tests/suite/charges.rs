//! What built-ins charge: for all of their work, before they do it, and the same whatever memory is left.

use crate::calls::{ATTEMPTS, LARGE, USUAL, calls, no_time, report, settings, values};
use crate::cpu::timed;
use lisp_core::compile::Program;
use lisp_core::heap::Value;
use lisp_core::library::all;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Ending, Grant, Machine, Settings, Step, Usage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const WHOLE: u64 = u64::MAX / 2;
/// Enough for the instructions of a call, and for hardly any work.
const HARDLY_ANY: u64 = 40;
/// What may be allocated for a unit of fuel, besides what every call may.
const BYTES_PER_UNIT: u64 = 512;
const BYTES: u64 = 40_000;
/// Room for results as long as the argument may be reserved before the first charge: the account of memory sees it.
const RESERVED: u64 = 2 * 16 * LARGE as u64;

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
    let reply = |machine: &mut Machine| drop(machine.reply(|_| Ok(Value::Nil)));
    let (ending, took) = timed(|| crate::workers::to_end(&mut machine, settings, WHOLE, &reply));
    let ending = match ending {
        Ending::Error(error) => error.reason.name().to_owned(),
        _ => String::new(),
    };
    Some(Run { ending, usage: machine.usage(), took })
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

/// One of two halves, each on a thread of its own: it is the longest of the tests.
#[test]
fn work_of_one_half_is_charged_for() {
    work_is_charged_for(0);
}

#[test]
fn work_of_the_other_half_is_charged_for() {
    work_is_charged_for(1);
}

fn work_is_charged_for(half: usize) {
    let (small, large, no_time) = (values(100), values(LARGE), no_time());
    let mut failures = Vec::new();
    let mut grown: BTreeSet<&str> = BTreeSet::new();
    // Without optimization every second call of each function: all of them take minutes.
    let step = if cfg!(debug_assertions) { 2 } else { 1 };
    for row in all().iter().skip(half).step_by(2) {
        for source in calls(row, USUAL).into_iter().step_by(step) {
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
    assert!(grown.len() > 50, "the arguments are such that there is work: {grown:?}");
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

#[test]
fn calls_of_functions_made_of_many_copy_none_of_them() {
    let source = |make: &str, calls: u32| {
        format!(
            "(def f (apply {make} (map (fn [i] (constantly (= i 0))) (range 20000))))
             (loop [i 0] (when (< i {calls}) (f 1) (recur (inc i))))"
        )
    };
    for make in ["some-fn", "every-pred #(not %) #(do %)"] {
        let allocated = |calls| {
            let run = run(&source(make, calls), &values(1), &settings()).expect("a program");
            assert!(run.succeeded(), "{make}: {}", run.ending);
            run.usage.allocated_bytes
        };
        let (none, many) = (allocated(0), allocated(200));
        assert!(many - none < 200 * 1_000, "{make}: {} bytes for 200 calls", many - none);
    }
}

/// Errors that are caught, names and lists of captures of any length: nothing of them is much dearer than a loop.
#[test]
fn errors_and_captures_are_charged_for() {
    /// Without the optimizer the loop is favoured.
    const MAX: f64 = if cfg!(debug_assertions) { 40.0 } else { 20.0 };
    let per_unit = |source: &str| {
        let mut least = f64::MAX;
        for _ in 0..8 {
            let settings = Settings { loop_iterations: 0, ..Settings::default() };
            let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
            let program = Program::compile(source, &ReadLimits::default());
            let program = program.unwrap_or_else(|error| panic!("{:.200}", error.message));
            machine.load(Arc::new(program)).unwrap();
            let (step, took) = timed(|| machine.resume(u64::MAX / 2));
            assert!(matches!(step, Step::Done(Ending::Value)), "{source:.100}");
            least = least.min(took.as_secs_f64() / machine.usage().fuel as f64);
        }
        least
    };
    let plain = per_unit("(dotimes [i 200000] (inc i))");
    let long = "x".repeat(1_990);
    let name = "n".repeat(200_000);
    let locals: String = (0..150).map(|i| format!("a{i} {i} ")).collect();
    let captured: String = (0..150).map(|i| format!("a{i} ")).collect();
    let programs = [
        format!("(dotimes [i 2000] (try (throw \"{long}\") (catch Exception e e)))"),
        format!("(def e (ex-info \"{long}\" {{}})) (dotimes [i 2000] (try (throw e) (catch Exception e e)))"),
        "(dotimes [i 2000] (try (nth 1 2) (catch Exception e e)))".to_owned(),
        "(dotimes [i 2000] (try (5 5) (catch Exception e e)))".to_owned(),
        format!("(let [k :{name}] (dotimes [i 2000] (try (k) (catch Exception e e))))"),
        format!("(defn {name} [x] x) (dotimes [i 2000] (try ({name}) (catch Exception e e)))"),
        format!("(defn f [a {name}] 1) (dotimes [i 2000] (try (f) (catch Exception e e)))"),
        format!("(let [{locals}] (letfn [(f [i] (if (> i 9) [{captured}] g)) (g [i] f)] (dotimes [i 2000] (f 1))))"),
    ];
    for program in programs {
        let ratio = per_unit(&program) / plain;
        assert!(ratio < MAX, "{ratio:.1} times a loop: {program:.120}");
    }
}
