//! All workloads on this interpreter and on the peers that are built in, in one run: a table of medians.
//!
//! `cargo bench -p ptc-lisp-benches --features lua,quickjs,starlark,rhai --bench peers [-- WORKLOAD]`

use cpu_time::ThreadTime;
use lisp_benches::orders;
use lisp_benches::peers::{Answer, Peer, Task, all};
use std::hint::black_box;
use std::time::Duration;

/// The fewest runs of a workload, and the most.
const RUNS: (usize, usize) = (20, 20_000);
/// A workload is measured for so long, and longer only to come to the fewest runs.
const MEASURE: Duration = Duration::from_millis(1_500);
/// One that takes longer than this is run five times.
const SLOW: Duration = Duration::from_secs(1);
/// With the name of a peer in this variable the program does nothing but measure the memory of its idle instances.
const IDLE: &str = "LISP_BENCHES_IDLE";
/// Instances alive at once when their memory is measured.
const INSTANCES: usize = 1_000;

fn main() {
    if let Some(name) = std::env::var_os(IDLE) {
        let peer = all().into_iter().find(|peer| name == peer.name()).expect("a peer of this name");
        println!("{}", idle_kilobytes(&*peer));
        return;
    }
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let peers = all();
    let rows = workloads();
    println!("| workload |{}", peers.iter().map(|p| format!(" {} |", p.name())).collect::<String>());
    println!("|---|{}", "---|".repeat(peers.len()));
    for (name, measure) in rows.iter().filter(|row| wanted.as_ref().is_none_or(|w| row.0.starts_with(&**w))) {
        let cells: Vec<Option<f64>> = peers.iter().map(|peer| measure(&**peer)).collect();
        println!("| {name} |{}", cells.iter().map(|cell| format!(" {} |", show(*cell, cells[0]))).collect::<String>());
    }
}

type Measure = Box<dyn Fn(&dyn Peer) -> Option<f64>>;

fn workloads() -> Vec<(&'static str, Measure)> {
    let (small, big) = (orders(1_000), format!("{{\"orders\":{}}}", orders(6_300)));
    let (for_inside, for_bring) = (small.clone(), small);
    let mut rows: Vec<(&'static str, Measure)> = vec![
        ("W1 cold: new interpreter, `1+2`, drop", Box::new(|p| timed("3", || p.cold(p.one_liner())))),
        (
            "W2 `1+2` in a warm environment",
            Box::new(|p| {
                let mut warm = p.warm("[]", "");
                timed("3", || warm(p.one_liner()))
            }),
        ),
        (
            "W3 compile the pipeline",
            Box::new(|p| {
                let mut compile = p.compiler();
                let source = p.program(Task::Pipeline);
                timed("", || {
                    compile(black_box(source));
                    Answer::new()
                })
            }),
        ),
        (
            "W4 compile and run it, 1,000 orders inside",
            Box::new(move |p| {
                let mut warm = p.warm(&for_inside, "");
                timed("SE", || warm(p.program(Task::Pipeline)))
            }),
        ),
        (
            "W5 the orders in from JSON, compile, run",
            Box::new(move |p| {
                let mut bring = p.bring();
                timed("SE", || bring(&for_bring))
            }),
        ),
    ];
    for (name, task, answer) in TASKS {
        let big = big.clone();
        let measure = move |p: &dyn Peer| {
            let mut warm = p.warm("[]", if *task == Task::Json { &big } else { "" });
            timed(answer, || warm(p.program(*task)))
        };
        rows.push((name, Box::new(measure)));
    }
    rows.push(("W14 memory of an idle instance (KB)", Box::new(|p| idle_in_a_process(p.name()))));
    rows
}

/// The long workloads, and what everyone must answer.
const TASKS: &[(&str, Task, &str)] = &[
    ("W6 fib(27)", Task::Fib, "196418"),
    ("W7 loop over 5 million integers", Task::Loop, "12499997500000"),
    ("W8 map, filter, reduce over 1 million", Task::Closures, "749998500000"),
    ("W9 200,000 string keys, then look-ups", Task::Strings, "19999900000"),
    ("W10 join 200,000 formatted pieces", Task::Join, "3730156"),
    ("W11 sort 300,000 with a comparator", Task::Sort, "1074952893"),
    ("W12 1 MB of JSON in, transform, out", Task::Json, ""),
    ("W13 mandelbrot 200x200", Task::Mandelbrot, "976575"),
];

/// The median of a workload's times in microseconds of this thread's processor time; `None` when the answer is wrong,
/// which it is too when the workload was given up.
fn timed(expected: &str, mut work: impl FnMut() -> Answer) -> Option<f64> {
    let start = ThreadTime::now();
    let answer = work();
    let first = start.elapsed();
    if !answer.contains(expected) {
        eprintln!("wrong answer: {}, expected {expected}", answer.chars().take(200).collect::<String>());
        return None;
    }
    let fewest = if first > SLOW { 5 } else { RUNS.0 };
    let (mut times, mut spent) = (Vec::new(), Duration::ZERO);
    while times.len() < fewest || (spent < MEASURE && times.len() < RUNS.1) {
        let start = ThreadTime::now();
        black_box(work());
        let time = start.elapsed();
        spent += time;
        times.push(time);
    }
    times.sort_unstable();
    Some(times[times.len() / 2].as_secs_f64() * 1e6)
}

/// In a process of its own, where no memory has been given back before.
fn idle_in_a_process(name: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = std::process::Command::new(program).env(IDLE, name).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Memory that stays with the process, per instance.
fn idle_kilobytes(peer: &dyn Peer) -> f64 {
    let before = resident_kilobytes();
    let alive: Vec<_> = (0..INSTANCES).map(|_| peer.idle()).collect();
    let after = resident_kilobytes();
    drop(alive);
    (after - before) / INSTANCES as f64
}

fn resident_kilobytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0.0)
}

/// A time, and how many times this interpreter's it is.
fn show(cell: Option<f64>, ours: Option<f64>) -> String {
    let Some(time) = cell else { return "-".into() };
    let digits = usize::from(time < 100.0);
    match ours {
        Some(ours) if ours != time => format!("{time:.digits$} ({:.1}x)", time / ours),
        _ => format!("{time:.digits$}"),
    }
}
