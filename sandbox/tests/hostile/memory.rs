//! Memory: what holds more than it may in small pieces, what holds just less, and what is said of it.

use crate::payloads::{ALL_PAYLOADS, FILLED, HELD};
use crate::{Tally, by_closure, by_template, short};
use lisp_runtime::{Engine, Input, Limits};
use lisp_sandbox::{BoundedError, Bounds, Layer, Sandbox, run_bounded_measured, testing};
use std::time::{Duration, Instant};

const MOST: Duration = Duration::from_secs(4);
const BUDGET: u64 = 48 << 20;

/// Payloads that fill what they have by touching it, which takes longer than other rows have.
const FILLING: &[(&str, &str)] = &[("13", "double_a_string"), ("13", "keep_factorials"), ("14", "many_small_maps")];

/// Programs that do the same in the language.
const PROGRAMS: &[(&str, &str)] = &[
    ("13 a string doubled", r#"(reduce (fn [s _] (str s s)) "x" (range 64))"#),
    ("13 products kept", "(reduce (fn [v n] (conj v (* (peek v) n))) [1] (range 1 100000))"),
    ("14 small maps", "(reduce (fn [m i] (assoc m i {:a i :b {:c [i]}})) {} (range 100000))"),
    ("14 closures", "(reduce (fn [v i] (conj v (fn [] i))) [] (range 200000))"),
];

fn patient() -> lisp_sandbox::Builder {
    let limits = Limits::default().with_timeout_ms(4_000);
    Sandbox::builder().engine(Engine::builder().limits(limits).build().expect("an engine"))
}

/// What needs a process with one thread.
pub(crate) fn before_any_thread(tally: &mut Tally) {
    for (line, name) in FILLING {
        let payload = ALL_PAYLOADS.iter().find(|payload| payload.0 == *name).expect("a payload").1;
        let seen = by_closure(&Bounds::new(MOST, BUDGET), payload);
        tally.row(&format!("{line} {name} (closure)"), &["M"], MOST, seen);
    }
    peak_of_a_closure(tally);
}

/// The rest.
pub(crate) fn with_threads(tally: &mut Tally) {
    let small = patient().memory_bytes(BUDGET).build().expect("a sandbox");
    for (line, name) in FILLING {
        let (outcome, took) = by_template(&small, name);
        tally.row(&format!("{line} {name} (template)"), &["M"], MOST, (short(&outcome), took));
    }
    let sandbox = patient().build().expect("a sandbox");
    for (what, program) in PROGRAMS {
        let begun = Instant::now();
        let outcome = sandbox.eval(program, &Input::new());
        tally.row(&format!("{what} (program)"), &["M"], MOST, (short(&outcome), begun.elapsed()));
    }
    peak_of_a_run(tally);
    a_small_group(tally, &[]);
    first_to_go(tally, &[]);
}

/// 21: ten runs at once under a small ceiling for all. Those that go beyond end with it, the others do not notice.
pub(crate) fn a_small_group(tally: &mut Tally, off: &[Layer]) {
    let before = testing::groups();
    {
        let builder = off.iter().fold(patient(), |builder, &layer| builder.without(layer));
        let sandbox = builder.total_memory_bytes(FILLED as u64 / 2).memory_bytes(1 << 30).build().expect("a sandbox");
        if off.is_empty() && !sandbox.layers().is_active(Layer::MemoryCgroup) {
            let state = format!("{:?}", sandbox.layers().state(Layer::MemoryCgroup));
            return tally.skip("memcg", &format!("21 runs on a small memory cgroup: {state}"));
        }
        let pids = sandbox.template_pids();
        let works =
            || sandbox.eval("(count (vec (range 10000)))", &Input::new()).value::<i64>().is_ok_and(|n| n == 10_000);
        let (hostile, honest) = std::thread::scope(|scope| {
            let hostile = [(); 5].map(|()| scope.spawn(|| by_template(&sandbox, "fill_and_report")));
            let honest = [(); 5].map(|()| scope.spawn(|| (0..20).filter(|_| works()).count()));
            (hostile.map(|run| run.join().expect("a run")), honest.map(|run| run.join().expect("runs")))
        });
        for (outcome, took) in hostile {
            tally.row("21 one of ten on a small cgroup (template)", &["M"], MOST, (short(&outcome), took));
        }
        tally.check("21 the others", honest == [20; 5], format_args!("{honest:?} of 20 each"));
        let same = sandbox.template_pids() == pids;
        tally.check("21 the template lives", same && works(), format_args!("{pids:?}"));
    }
    tally.check("21 no group stays", testing::groups() == before, format_args!("{before}, {}", testing::groups()));
}

/// 21: when the whole machine is short of memory, runs go before the host.
pub(crate) fn first_to_go(tally: &mut Tally, off: &[Layer]) {
    let score = |pid: u32| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap_or_default();
        text.trim().parse().unwrap_or(i32::MIN)
    };
    let sandbox = off.iter().fold(patient(), |builder, &layer| builder.without(layer)).build().expect("a sandbox");
    let scores: Vec<i32> = std::thread::scope(|scope| {
        scope.spawn(|| by_template(&sandbox, "hold_and_report"));
        crate::scenes::templates().iter().map(|&pid| score(pid)).collect()
    });
    let host = score(std::process::id());
    let good = !scores.is_empty() && scores.iter().all(|&score| score > host);
    tally.check("21 the host is protected", good, format_args!("{scores:?} and {host}"));
}

/// Bytes resident in this process now.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn within_a_twentieth(saw: u64, expected: u64) -> bool {
    saw.abs_diff(expected) <= expected / 20
}

/// 19: just under the limit there is a value, and the peak is what was held; just over there is none.
fn peak_of_a_closure(tally: &mut Tally) {
    let held = HELD as u64;
    let hold = || std::hint::black_box(vec![1_u8; HELD]).iter().map(|&byte| u64::from(byte)).sum::<u64>();
    let before = resident();
    let (result, used) = run_bounded_measured(&Bounds::new(MOST, held + (1 << 20)), hold);
    tally.check("19 just under the limit (closure)", result == Ok(held), format_args!("{result:?}"));
    let (saw, expected) = (used.rss_peak_bytes, before + held);
    println!("peak of a closure that holds {held} bytes above {before}: {saw}");
    tally.check("19 its peak", within_a_twentieth(saw, expected), format_args!("{saw} for {expected}"));
    let (result, _) = run_bounded_measured(&Bounds::new(MOST, held - (2 << 20)), hold);
    let good = result == Err(BoundedError::MemoryExceeded(held - (2 << 20)));
    tally.check("19 just over the limit (closure)", good, format_args!("{result:?}"));
}

/// 19, behind the template.
fn peak_of_a_run(tally: &mut Tally) {
    let held = HELD as u64;
    let peak = |memory: u64| {
        let sandbox = patient().memory_bytes(memory).build().expect("a sandbox");
        let base = by_template(&sandbox, "report").0.usage.rss_peak_bytes.unwrap_or(0);
        let (outcome, _) = by_template(&sandbox, "hold_and_report");
        (short(&outcome), outcome.usage.rss_peak_bytes.unwrap_or(0), base + held)
    };
    let (saw, bytes, expected) = peak(held + (1 << 20));
    tally.check("19 just under the limit (template)", saw == "K", saw);
    println!("peak of a run that holds {held} bytes: {bytes}, expected {expected}");
    tally.check("19 its peak", within_a_twentieth(bytes, expected), format_args!("{bytes} for {expected}"));
    let (saw, ..) = peak(held - (2 << 20));
    tally.check("19 just over the limit (template)", saw == "M", saw);
}
