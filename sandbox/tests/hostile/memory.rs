//! Memory: what holds more than it may in small pieces, what holds just less, and what is said of it.

use crate::payloads::{ALL_PAYLOADS, FILLED, HELD};
use crate::{Tally, by_closure, by_template, paced, short};
use lisp_runtime::{Engine, Input, Limits};
use lisp_sandbox::{BoundedError, Bounds, Layer, Sandbox, run_bounded_measured, testing};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MAX_MS: u64 = 4_000;
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
    let limits = Limits::default().with_timeout_ms(crate::paced_ms(MAX_MS)).with_fuel(0);
    Sandbox::builder().engine(Engine::builder().limits(limits).build().expect("an engine"))
}

/// What needs a process with one thread.
pub(crate) fn before_any_thread(tally: &mut Tally) {
    for (line, name) in FILLING {
        let payload = ALL_PAYLOADS.iter().find(|payload| payload.0 == *name).expect("a payload").1;
        let seen = by_closure(&Bounds::new(paced(MAX_MS), BUDGET), payload);
        tally.row(&format!("{line} {name} (closure)"), &["M"], paced(MAX_MS), seen);
    }
    peak_of_a_closure(tally);
}

/// The rest.
pub(crate) fn with_threads(tally: &mut Tally) {
    let small = patient().memory_bytes(BUDGET).build().expect("a sandbox");
    for (line, name) in FILLING {
        let (outcome, took) = by_template(&small, name);
        tally.row(&format!("{line} {name} (template)"), &["M"], paced(MAX_MS), (short(&outcome), took));
    }
    let sandbox = patient().build().expect("a sandbox");
    for (what, program) in PROGRAMS {
        let begun = Instant::now();
        let outcome = sandbox.eval(program, &Input::new());
        tally.row(&format!("{what} (program)"), &["M"], paced(MAX_MS), (short(&outcome), begun.elapsed()));
    }
    peak_of_a_run(tally);
    a_small_group(tally, &[]);
    groups_that_go(tally);
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
            tally.row("21 one of ten on a small cgroup (template)", &["M"], paced(MAX_MS), (short(&outcome), took));
        }
        tally.check("21 the others", honest == [20; 5], format_args!("{honest:?} of 20 each"));
        let same = sandbox.template_pids() == pids;
        tally.check("21 the template lives", same && works(), format_args!("{pids:?}"));
    }
    tally.check("21 no group stays", testing::groups() == before, format_args!("{before:?}, {:?}", testing::groups()));
}

/// Ends the template of a sandbox, and waits until nobody is in its group.
fn leave(sandbox: &Sandbox, group: &Path) -> bool {
    for pid in sandbox.template_pids() {
        crate::payloads::raw(libc::SYS_kill, [pid as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
    }
    let until = Instant::now() + paced(MAX_MS);
    while std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|all| !all.is_empty()) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// A sandbox whose templates are in a group, and that; where the system gives one.
fn grouped(tally: &mut Tally, what: &str) -> Option<(Sandbox, PathBuf)> {
    let before = testing::groups();
    let sandbox = patient().build().expect("a sandbox");
    let group = testing::groups().into_iter().find(|group| !before.contains(group));
    if group.is_none() || !sandbox.layers().is_active(Layer::MemoryCgroup) {
        tally.skip("memcg", what);
        return None;
    }
    group.map(|group| (sandbox, group))
}

/// Is a run well, and are its template and itself in a group?
fn well(sandbox: &Sandbox) -> bool {
    let value = sandbox.eval("(inc 1)", &Input::new()).value::<i64>();
    let inside = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        text.contains("ptc-lisp-")
    };
    value.is_ok_and(|n| n == 2)
        && sandbox.layers().is_active(Layer::MemoryCgroup)
        && sandbox.template_pids().iter().all(inside)
}

/// What a run is told while its template cannot join a group; at once, and each time.
fn refused(tally: &mut Tally, what: &str, sandbox: &Sandbox, why: &str) {
    for _ in 0..2 {
        let begun = Instant::now();
        let outcome = sandbox.eval("(inc 1)", &Input::new());
        let said = outcome.problem().map(|problem| problem.error.message.clone()).unwrap_or_default();
        let good = said.contains("memory_cgroup") && said.contains(why) && begun.elapsed() < paced(MAX_MS);
        tally.check(what, good, format_args!("{said:?} after {:?}", begun.elapsed()));
    }
}

/// 21: the group goes, and there is no room for another.
pub(crate) fn no_other_group(tally: &mut Tally) {
    let Some((sandbox, group)) = grouped(tally, "21 no other group") else { return };
    let gone = leave(&sandbox, &group) && std::fs::remove_dir(&group).is_ok();
    tally.check("21 a group that goes", gone, "it stays");
    let calls = [(libc::SYS_mkdir, libc::ENOSPC), (libc::SYS_mkdirat, libc::ENOSPC)];
    tally.check("21 the filter", testing::answer(&calls).is_ok(), "it cannot be put on");
    refused(tally, "21 no other group", &sandbox, "No space left");
}

/// 21: nothing runs without the ceiling that the sandbox began with.
fn groups_that_go(tally: &mut Tally) {
    let Some((sandbox, group)) = grouped(tally, "21 a group that goes") else { return };
    let gone = leave(&sandbox, &group) && std::fs::remove_dir(&group).is_ok();
    tally.check("21 a group that goes", gone, "it stays");
    tally.check("21 there is another", well(&sandbox) && !group.exists(), format_args!("{:?}", testing::groups()));
    drop(sandbox);
    let Some((sandbox, group)) = grouped(tally, "21 a group that is full") else { return };
    tally.check("21 a group without members", leave(&sandbox, &group), "they stay");
    let mode = std::ffi::CString::new(group.join("cgroup.procs").as_os_str().as_encoded_bytes()).unwrap_or_default();
    let mount = |from: &std::ffi::CStr| {
        let places = [from.as_ptr() as usize, mode.as_ptr() as usize];
        crate::payloads::raw(libc::SYS_mount, [places[0], places[1], 0, libc::MS_BIND as usize, 0, 0])
    };
    if mount(c"/dev/full") != 0 {
        return tally.skip("mount", "21 a group that is full");
    }
    refused(tally, "21 a group that is full", &sandbox, "No space left");
    crate::payloads::raw(libc::SYS_umount2, [mode.as_ptr() as usize, libc::MNT_DETACH as usize, 0, 0, 0, 0]);
    tally.check("21 it has room again", well(&sandbox) && group.exists(), format_args!("{:?}", sandbox.layers()));
    let small = patient().total_memory_bytes(256 << 10).build().map(drop).map_err(|error| error.to_string());
    let good = small.as_ref().is_err_and(|error| error.contains("all runs together may take"));
    tally.check("21 a group too small for a template", good, format_args!("{small:?}"));
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
    let (result, used) = run_bounded_measured(&Bounds::new(paced(MAX_MS), held + (1 << 20)), hold);
    tally.check("19 just under the limit (closure)", result == Ok(held), format_args!("{result:?}"));
    let saw = used.rss_peak_bytes;
    println!("peak of a closure that holds {held} bytes above {before}: {saw}");
    // A fork leaves out the pages of files: some of those that were there before are there when they are used again.
    let max = before + held + held / 20;
    tally.check("19 its peak", (held..=max).contains(&saw), format_args!("{saw} for {held} to {max}"));
    let (result, _) = run_bounded_measured(&Bounds::new(paced(MAX_MS), held - (2 << 20)), hold);
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
