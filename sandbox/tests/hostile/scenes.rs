//! What takes more than a row: several runs, several threads, a system that gives less.

use crate::payloads::{ALL_PAYLOADS, raw};
use crate::{Tally, bounds, builder, by_closure, by_template, paced, short, short_bounded};
use lisp_runtime::outcome::CallStatus;
use lisp_runtime::{Engine, Input, Limits, Request};
use lisp_sandbox::{BoundedError, Bounds, Layer, Sandbox, run_bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// What needs a process with one thread.
pub(crate) fn before_any_thread(tally: &mut Tally) {
    every_call_by_number(tally);
    edges_of_bounds(tally);
    set_up_that_fails(tally);
}

/// The rest.
pub(crate) fn with_threads(tally: &mut Tally) {
    how_late(tally);
    planted_descriptors(tally);
    killed_runs_keep_what_they_had(tally);
    what_a_run_makes_the_host_hold(tally);
    missing_layers(tally);
    a_template_that_dies(tally);
    the_thread_that_built_it(tally);
    children_die_with_the_template(tally, &[]);
    few_descriptors(tally);
    a_crowd(tally);
    what_a_run_leaves(tally);
    honest_beside_hostile(tally);
    nothing_leaks(tally);
}

/// Calls that may be made, whatever their arguments, or that are refused without a kill. It is what `docs/security.md`
/// says.
const KNOWN: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_ppoll,
    libc::SYS_fstat,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_setitimer,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_ioctl,
    libc::SYS_clone3,
    libc::SYS_rseq,
    libc::SYS_statx,
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_faccessat,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];

/// 36: all numbers, with arguments that none can do anything with.
fn every_call_by_number(tally: &mut Tally) {
    let bounds = bounds();
    let killed = |call: i64| {
        let result = run_bounded(&bounds, || i32::from(raw(call, [usize::MAX; 6]) >= 0));
        short_bounded(result) == "S"
    };
    let number = Arc::new(AtomicI64::new(0));
    let clock = number.clone();
    let engine = Engine::builder().clock(move || clock.load(Ordering::Relaxed)).build().expect("an engine");
    let sandbox = Sandbox::builder().engine(engine).build().expect("a sandbox");
    let killed_by_template = |call: i64| {
        number.store(call, Ordering::Relaxed);
        short(&by_template(&sandbox, "call_by_number").0) == "S"
    };
    // Two calls that the kernel's own probes make pass by every filter; there is nothing in them for others.
    let probes: &[i64] = if cfg!(target_arch = "x86_64") { &[335, 336] } else { &[] };
    let all = || (0..=600).filter(|call| !probes.contains(call));
    let wrong: Vec<i64> = all().filter(|call| killed(*call) == KNOWN.contains(call)).collect();
    tally.check("36 every system call by number", wrong.is_empty(), format_args!("{wrong:?}"));
    let wrong: Vec<i64> = all().filter(|call| killed_by_template(*call) == KNOWN.contains(call)).collect();
    tally.check("36 by a template's child", wrong.is_empty(), format_args!("{wrong:?}"));
}

/// 10, 59.
fn edges_of_bounds(tally: &mut Tally) {
    let second = paced(1_000);
    let none = run_bounded(&Bounds::new(Duration::ZERO, 1 << 24), || 1);
    tally.check("10 no time", none == Err(BoundedError::Timeout(0)), format_args!("{none:?}"));
    let ever = run_bounded(&Bounds::new(Duration::MAX, u64::MAX), || 1);
    tally.check("10 all the time", ever == Ok(1), format_args!("{ever:?}"));
    let small = run_bounded(&Bounds::new(second, 0), || 1);
    let said = matches!(&small, Err(BoundedError::ExecutionError(text)) if text.contains("at least"));
    tally.check("10 no memory", said, format_args!("{small:?}"));
    let nested =
        run_bounded(&Bounds::new(second, 1 << 24), || run_bounded(&Bounds::new(second, 1 << 24), || 1).is_err());
    tally.check("59 nested", nested == Ok(true), format_args!("{nested:?}"));
    let long = run_bounded(&Bounds::new(second, 1 << 28).result_bytes(1000), || "x".repeat(2000));
    let said = matches!(&long, Err(BoundedError::ExecutionError(text)) if text.contains("more than 1000 bytes"));
    tally.check("42 a long result", said, format_args!("{long:?}"));
}

/// 52: nothing runs when a step fails.
fn set_up_that_fails(tally: &mut Tally) {
    for layer in [Layer::ParentDeath, Layer::RlimitAs, Layer::RlimitCpu, Layer::NoNewPrivs, Layer::Seccomp] {
        let (saw, _) = by_closure(&bounds().failing_at(layer), |_| 42);
        tally.check(&format!("52 closure, {layer} fails"), saw == "X", saw);
    }
    let sandbox = builder().build().expect("a sandbox");
    for step in 1..=5 {
        let (outcome, _) = sandbox.run_payload("report", &Input::new(), step);
        tally.check(&format!("52 template, step {step} fails"), short(&outcome) == "X", short(&outcome));
    }
    let (outcome, _) = sandbox.run_payload("report", &Input::new(), 0);
    tally.check("52 no step fails", short(&outcome) == "K", short(&outcome));
}

/// 8: how late the signal is, with the processors busy besides.
fn how_late(tally: &mut Tally) {
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(10)).build().expect("an engine");
    let sandbox = Sandbox::builder().engine(engine).grace(Duration::ZERO).build().expect("a sandbox");
    let late = |runs: usize| {
        // A run that ends before the host kills it has no such time: the template was first.
        let late = (0..runs).filter_map(|_| sandbox.run_payload("spin", &Input::new(), 0).1);
        let mut late: Vec<Duration> = late.collect();
        late.sort_unstable();
        late
    };
    let shown = |late: &[Duration]| match late {
        [] => "none was killed by the host".to_owned(),
        [.., worst] => format!(
            "median {:?}, 99th percentile {:?}, worst {worst:?}",
            late[late.len() / 2],
            late[late.len() * 99 / 100]
        ),
    };
    let good = |late: &[Duration]| late.last().is_some_and(|worst| *worst < paced(1_000));
    let idle = late(200);
    println!("deadline to SIGKILL: {}", shown(&idle));
    tally.check("8 the signal comes", good(&idle), shown(&idle));
    let busy = std::thread::scope(|scope| {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for _ in 0..10 {
            let stop = stop.clone();
            scope.spawn(move || while !stop.load(std::sync::atomic::Ordering::Relaxed) {});
        }
        let busy = late(50);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        busy
    });
    println!("with ten threads spinning besides: {}", shown(&busy));
    tally.check("8 under load", good(&busy), shown(&busy));
}

/// 33, with descriptors that would be inherited.
fn planted_descriptors(tally: &mut Tally) {
    let planted: Vec<i64> = (0..5).map(|_| raw(libc::SYS_dup, [1, 0, 0, 0, 0, 0])).collect();
    let sandbox = builder().build().expect("a sandbox");
    let (outcome, _) = by_template(&sandbox, "other_descriptors");
    tally.check("33 planted descriptors", short(&outcome) == "C10", short(&outcome));
    for fd in planted {
        raw(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
    }
}

/// Prints and ledger of a run that was killed; a call cut off is unknown.
fn killed_runs_keep_what_they_had(tally: &mut Tally) {
    let sandbox = builder().build().expect("a sandbox");
    let (outcome, _) = by_template(&sandbox, "call_and_spin");
    let entry = outcome.ledger.first().map(|entry| (entry.name.as_str(), entry.status));
    let good = outcome.prints == ["before"] && entry == Some(("stuck", CallStatus::Unknown));
    tally.check("what a killed run had", good, format_args!("{:?} {entry:?}", outcome.prints));
    let figures = outcome.usage.cpu_us.is_some_and(|cpu| cpu > 5_000) && outcome.usage.rss_peak_bytes > Some(100_000);
    tally.check("its figures", figures, format_args!("{:?}", outcome.usage));
    let (outcome, _) = by_template(&sandbox, "several_calls");
    let names: Vec<&str> = outcome.ledger.iter().map(|entry| entry.name.as_str()).collect();
    tally.check("several calls at once", names == ["slow", "quick", "slow"], format_args!("{names:?}"));
    let (outcome, _) = by_template(&sandbox, "dirty_words");
    let message = outcome.problem().map(|problem| problem.error.message.clone()).unwrap_or_default();
    tally.check("46 no control characters", !message.chars().any(char::is_control), format_args!("{message:?}"));
}

/// 42: whatever a run's process sends, the host holds little of it, and has few threads for it.
fn what_a_run_makes_the_host_hold(tally: &mut Tally) {
    /// A few times the replies that may wait, or the longest of these frames.
    const MAX_KIB: u64 = 16 << 10;
    const THREADS: u64 = 80;
    let figure = |name: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap_or(0)
    };
    let sandbox = builder().build().expect("a sandbox");
    for payload in ["calls_without_end", "replies_without_end", "calls_at_once", "empty_lines", "empty_details"] {
        let before = figure("VmRSS:");
        let done = std::sync::atomic::AtomicBool::new(false);
        let (peak, threads) = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let (mut peak, mut threads) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    peak = figure("VmRSS:").max(peak);
                    threads = figure("Threads:").max(threads);
                    std::thread::sleep(Duration::from_micros(500));
                }
                (peak, threads)
            });
            (0..3).for_each(|_| drop(by_template(&sandbox, payload)));
            done.store(true, Ordering::Relaxed);
            sampler.join().expect("a sampler")
        });
        let grown = peak.saturating_sub(before);
        println!("{payload}: {grown} KiB more, {threads} threads");
        tally.check(&format!("42 memory for {payload}"), grown < MAX_KIB, format_args!("{grown} KiB"));
        tally.check(&format!("42 threads for {payload}"), threads < THREADS, format_args!("{threads}"));
    }
    // What was not begun at the deadline is not called.
    let calls = Arc::new(AtomicI64::new(0));
    let counted = calls.clone();
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(100)).tool("slow", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(paced(40));
        Ok(1)
    });
    let sandbox = Sandbox::builder().engine(engine.build().expect("an engine")).build().expect("a sandbox");
    let (outcome, took) = by_template(&sandbox, "calls_at_once");
    let calls = calls.load(Ordering::SeqCst);
    let good = short(&outcome) == "T" && calls <= 4 && took < paced(600);
    tally.check("6 nothing is called after the deadline", good, format_args!("{calls} calls, {took:?}"));
}

/// 51: what is required and missing refuses to run, and nothing degrades in silence.
fn missing_layers(tally: &mut Tally) {
    for &layer in Sandbox::REQUIRED {
        let refused = builder().without(layer).build();
        tally.check(&format!("51 without {layer}"), refused.is_err(), "it was built");
    }
    for layer in [Layer::NoNewPrivs, Layer::Seccomp, Layer::WallKill] {
        let refused = builder().failing_at(layer).build();
        tally.check(&format!("51 {layer} fails"), refused.is_err(), "it was built");
    }
    for layer in [Layer::Landlock, Layer::UserNamespace, Layer::NetNamespace, Layer::RlimitFsize, Layer::NoCapabilities]
    {
        let sandbox = builder().failing_at(layer).build();
        let said = sandbox.as_ref().map(|sandbox| !sandbox.layers().is_active(layer));
        tally.check(&format!("51 {layer} missing is said"), matches!(said, Ok(true)), format_args!("{said:?}"));
        let refused = builder().failing_at(layer).require(layer).build();
        tally.check(&format!("51 {layer} required"), refused.is_err(), "it was built");
    }
}

fn works(sandbox: &Sandbox) -> bool {
    sandbox.eval("(+ 40 2)", &Input::new()).value::<i64>().is_ok_and(|n| n == 42)
}

fn patient() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_timeout_ms(crate::paced_ms(20_000)).with_fuel(0))
        .build()
        .expect("an engine")
}

fn signal(pid: u32, signal: i32) {
    raw(libc::SYS_kill, [pid as usize, signal as usize, 0, 0, 0, 0]);
}

/// 29.
fn a_template_that_dies(tally: &mut Tally) {
    for off in [&[][..], crate::rows::NAMESPACES] {
        // A new template takes its time on a busy machine.
        let patient = builder().engine(patient());
        let sandbox = off.iter().fold(patient, |builder, &layer| builder.without(layer)).build().expect("a sandbox");
        signal(sandbox.template_pids()[0], libc::SIGKILL);
        std::thread::sleep(Duration::from_millis(20));
        tally.check("29 killed while idle", works(&sandbox), "the next run fails");
        let outcome = std::thread::scope(|scope| {
            let run = scope.spawn(|| by_template(&sandbox, "sleep").0);
            std::thread::sleep(paced(50));
            signal(sandbox.template_pids()[0], libc::SIGKILL);
            run.join().expect("a run")
        });
        let said = outcome.problem().is_some_and(|problem| problem.error.message.contains("template"));
        tally.check("29 killed while busy", said, format_args!("{:?}", outcome.problem()));
        tally.check("29 and the next run", works(&sandbox), "fails");
    }
    let sandbox = builder().without_namespaces().build().expect("a sandbox");
    signal(sandbox.template_pids()[0], libc::SIGSTOP);
    let (outcome, took) = by_template(&sandbox, "report");
    let good = short(&outcome) == "T" && took < paced(600);
    tally.check("29 stopped", good, format_args!("{} {took:?}", short(&outcome)));
    tally.check("29 and the next run", works(&sandbox), "fails");
    // One that is stopped while a run is under way does not hold its end up: the host has killed the process itself.
    let (outcome, took) = std::thread::scope(|scope| {
        let run = scope.spawn(|| by_template(&sandbox, "spin"));
        std::thread::sleep(paced(60));
        signal(sandbox.template_pids()[0], libc::SIGSTOP);
        run.join().expect("a run")
    });
    let good = short(&outcome) == "T" && took < paced(2_500);
    tally.check("29 stopped while busy", good, format_args!("{} {took:?}", short(&outcome)));
    // A new template takes its time on a busy machine.
    tally.check("29 and the next run", soon(|| works(&sandbox)), "fails");
}

/// 28.
fn the_thread_that_built_it(tally: &mut Tally) {
    let sandbox = std::thread::spawn(|| builder().build().expect("a sandbox")).join().expect("a thread");
    std::thread::sleep(Duration::from_millis(20));
    let pids = sandbox.template_pids();
    tally.check(
        "28 the thread that built it is gone",
        works(&sandbox) && pids == sandbox.template_pids(),
        "a new template",
    );
}

/// Templates and their children that live: this process's, and those that nobody owns any more.
fn processes() -> usize {
    templates().len()
}

/// Their pids, also of those that have outlived their host. Other hosts on the machine have their own.
pub(crate) fn templates() -> Vec<u32> {
    let is_template = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(TEMPLATE.len()).any(|part| part == TEMPLATE)
    };
    // An orphan goes to one of the processes above.
    let above: Vec<u32> = std::iter::successors(Some(std::process::id()), |&pid| parent(pid)).collect();
    let is_ours = |&pid: &u32| {
        let host = std::iter::successors(Some(pid), |&pid| parent(pid)).find(|&pid| !is_template(pid));
        is_template(pid) && host.is_some_and(|host| above.contains(&host))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).filter(is_ours).collect()
}

/// The parent of a process that lives.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut after = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (after.next()?, after.next()?);
    if state == "Z" { None } else { parent.parse().ok() }
}

const TEMPLATE: &[u8] = b"--ptc-lisp-template";

pub(crate) fn soon(mut good: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if good() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// 23, and what `parent_death` is for where there is no namespace of processes.
pub(crate) fn children_die_with_the_template(tally: &mut Tally, off: &[Layer]) {
    // A host that finds its template gone kills what it has a descriptor of: that is not what is asked here.
    let builder = builder().without_namespaces().without(Layer::WallKill).requiring_none();
    let builder = off.iter().fold(builder, |builder, &layer| builder.without(layer));
    let sandbox = builder.grace(paced(4_000)).build().expect("a sandbox");
    let children: Vec<u32> = std::thread::scope(|scope| {
        scope.spawn(|| by_template(&sandbox, "sleep"));
        let template = sandbox.template_pids()[0];
        let mut children = Vec::new();
        soon(|| {
            children = templates().into_iter().filter(|&pid| parent(pid) == Some(template)).collect();
            !children.is_empty()
        });
        signal(template, libc::SIGKILL);
        children
    });
    let gone = !children.is_empty() && soon(|| children.iter().all(|&pid| parent(pid).is_none()));
    tally.check("23 children die with the template", gone, format_args!("{children:?}"));
    // Those that a missing layer has left behind.
    for pid in children.into_iter().filter(|&pid| parent(pid) == Some(1)) {
        signal(pid, libc::SIGKILL);
    }
}

/// 53.
fn few_descriptors(tally: &mut Tally) {
    let [used, new] = [(); 2].map(|()| builder().without_spares().build().expect("a sandbox"));
    tally.check("53 at first", works(&used), "fails");
    let mut old = [0_u64; 2];
    raw(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, 0, old.as_mut_ptr() as usize, 0, 0]);
    // No more than the process has at least.
    let few = [4_u64, old[1]];
    raw(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, few.as_ptr() as usize, 0, 0, 0]);
    let outcome = new.eval("1", &Input::new());
    // The channels that another run had are there, but no room for a descriptor of the process.
    let endless = by_template(&used, "spin");
    raw(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, old.as_ptr() as usize, 0, 0, 0]);
    let said = outcome.problem().is_some_and(|problem| problem.error.message.contains("set-up"));
    tally.check("53 no descriptors left", said, format_args!("{:?}", outcome.problem()));
    let ended = short(&endless.0) == "T" && endless.1 < paced(300);
    tally.check("53 a run that has no end then", ended, format_args!("{endless:?}"));
    tally.check("53 and the next run", works(&new) && works(&used), "fails");
}

/// 1, more at once than a template has children or its channel room for: all end at their deadline.
fn a_crowd(tally: &mut Tally) {
    let sandbox = builder().build().expect("a sandbox");
    let ends: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..320).map(|_| scope.spawn(|| short(&by_template(&sandbox, "spin").0))).collect();
        runs.into_iter().map(|run| run.join().expect("a run")).collect()
    });
    let others: Vec<_> = ends.iter().filter(|end| *end != "T").collect();
    tally.check("1 a crowd", others.is_empty(), format_args!("{} others, {:?}", others.len(), others.first()));
    // The other user's crowd may still have the processors: a run of 150 ms has its turn when it has ended.
    tally.check("1 after a crowd", soon(|| works(&sandbox)), "no run works within a minute");
}

/// Runs have their channels one after the other, and nothing of the one before is in them.
fn what_a_run_leaves(tally: &mut Tally) {
    let sandbox = builder().without_spares().build().expect("a sandbox");
    for payload in ["call_and_leave", "two_reports", "aborts", "garbage", "flood", "call_and_leave"] {
        let outcome = by_template(&sandbox, payload).0;
        let clean = (0..3).all(|_| works(&sandbox));
        tally.check(&format!("42, 44 after {payload}"), clean, short(&outcome));
    }
}

/// Hostile and honest runs at once; the honest are unharmed.
fn honest_beside_hostile(tally: &mut Tally) {
    let sandbox = builder().forkers(2).build().expect("a sandbox");
    let honest = Sandbox::builder().engine(patient()).build().expect("a sandbox");
    let hostile = ["spin", "hold_memory", "flood", "bad_address", "fork", "endless_lines", "garbage", "aborts"];
    let good = std::thread::scope(|scope| {
        for name in hostile {
            scope.spawn({
                let sandbox = sandbox.clone();
                move || (0..5).for_each(|_| drop(by_template(&sandbox, name)))
            });
        }
        (0..100).filter(|_| works(&honest)).count()
    });
    tally.check("21, 56 honest beside hostile", good == 100, good);
}

/// Waits until calls of tools that were left behind are over.
pub(crate) fn wait_for_threads() {
    soon(|| std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) == 1);
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// 56, in small; `examples/soak.rs` is the large one.
fn nothing_leaks(tally: &mut Tally) {
    let before = (descriptors(), processes());
    {
        let sandbox = builder().build().expect("a sandbox");
        // What runs have one after the other is there from the second on.
        (0..2).for_each(|_| tally.check("56 at first", works(&sandbox), "fails"));
        let with_template = descriptors();
        let request = r#"{"program": "(do (println (tool/quick {})) (+ 1 2))"}"#;
        for round in 0..300 {
            match round % 30 {
                0 => drop(by_template(&sandbox, ALL_PAYLOADS[round / 30 % 5].0)),
                7 => drop(by_template(&sandbox, "aborts")),
                _ => drop(sandbox.run(&Request::parse(request).expect("a request"))),
            }
        }
        tally.check(
            "56 descriptors",
            descriptors() == with_template,
            format_args!("{} then {}", with_template, descriptors()),
        );
    }
    // What another test left may go meanwhile.
    let gone = soon(|| descriptors() == before.0 && processes() <= before.1);
    tally.check("56 nothing stays", gone, format_args!("{before:?} then {:?}", (descriptors(), processes())));
}
