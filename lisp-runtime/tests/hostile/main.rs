//! Hostile programs: each ends with its verdict, within its limits, in time. `beside.rs` has honest ones beside them.

#[path = "../../../lisp-core/tests/cpu/mod.rs"]
mod cpu;
mod rows;

use cpu::timed;
use lisp_runtime::outcome::{CallStatus, Phase};
use lisp_runtime::{Engine, Input, Limits, Tool};
use rows::{Row, came_to, hungry_rows, rows};
use std::time::Duration;

/// How much processor time a run's thread may take beyond its deadline. Debug builds do less between two looks at the clock.
const OVERSHOOT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 10 });
/// How much longer the deadline is of a run that is to end for another reason, and did not within its own on a busy machine.
const PATIENCE: u64 = 100;

/// What is wrong with how a row ended, if anything.
fn wrong(row: &Row) -> Option<String> {
    let deadline = Duration::from_millis(row.limits.timeout_ms);
    let (mut outcome, mut took) = row.run(row.limits);
    if came_to(&outcome) == "timeout" && !row.expected.contains(&"timeout") {
        (outcome, took) = row.run(row.limits.with_timeout_ms(PATIENCE * row.limits.timeout_ms));
    }
    let came = came_to(&outcome);
    let source: String = row.source.chars().take(100).collect();
    if std::env::var_os("HOSTILE_TIMES").is_some() {
        println!("{took:>12.2?} {came:22} {} {source}", row.name);
    }
    let wrong = |what: String| Some(format!("{}: {what}\n    {source}", row.name));
    if !row.expected.contains(&came) {
        let message = outcome.problem().map(|p| p.error.message.chars().take(200).collect::<String>());
        return wrong(format!("ended with {came}, not {:?}: {message:?}", row.expected));
    }
    if took > deadline + OVERSHOOT {
        return wrong(format!("took {took:?} of the processor ({came}), the deadline is {deadline:?}"));
    }
    let position = outcome.problem().and_then(|problem| problem.position);
    if row.name.starts_with("L20") && came == "parse_error" && position.is_none() {
        return wrong("the error has no place".to_owned());
    }
    let marked = outcome.prints.iter().any(|line| line.contains("chars)") || line.contains("more lines"));
    if row.name.starts_with("L13") && !marked && came != "memory_exceeded" {
        return wrong(format!("nothing says that prints are cut: {:.300?}", outcome.prints));
    }
    let printed: usize = outcome.prints.iter().map(String::len).sum();
    if printed as u64 > row.limits.prints_bytes + 1_000 {
        return wrong(format!("printed {printed} bytes"));
    }
    if outcome.usage.heap_peak_bytes > row.limits.heap_bytes {
        return wrong(format!("held {} bytes", outcome.usage.heap_peak_bytes));
    }
    None
}

#[test]
fn each_ends_with_its_verdict_in_time() {
    let only = std::env::var("HOSTILE_ONLY").unwrap_or_default();
    let failures: Vec<String> = rows().iter().filter(|row| row.name.contains(&only)).filter_map(wrong).collect();
    assert!(failures.is_empty(), "{} rows:\n{}", failures.len(), failures.join("\n"));
}

/// Peak of resident memory of this process in bytes, as the kernel says; `None` elsewhere than on Linux.
fn resident_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()? * 1_024)
}

/// Says in a process of its own how much more memory one row takes at its peak. Without the row's number it is no test.
#[test]
fn one_row_in_a_process_of_its_own() {
    let Ok(number) = std::env::var("HOSTILE_ROW") else { return };
    let row = hungry_rows().into_iter().nth(number.parse().expect("a number")).expect("a row");
    // What every process has: the tables of built-ins, the thread that looks at the clock.
    let first = Engine::default().eval("(frequencies [1 (re-find #\"a\" \"a\")])", Input::new());
    assert!(first.is_success());
    // From here on the kernel counts the peak anew.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = resident_peak().expect("a peak");
    let (outcome, _) = row.run(row.limits);
    let more = resident_peak().expect("a peak") - before;
    println!("\nresident {more} {}", came_to(&outcome));
}

#[test]
fn resident_memory_stays_in_proportion_to_the_budget() {
    if resident_peak().is_none() {
        return;
    }
    let mut failures = Vec::new();
    for (i, row) in hungry_rows().iter().enumerate() {
        let output = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "one_row_in_a_process_of_its_own", "--nocapture"])
            .env("HOSTILE_ROW", i.to_string())
            .output()
            .expect("a process");
        let text = String::from_utf8_lossy(&output.stdout);
        let more = text.lines().find_map(|line| line.strip_prefix("resident ")?.split(' ').next()?.parse::<u64>().ok());
        let max = 2 * row.limits.heap_bytes + (8 << 20);
        if std::env::var_os("HOSTILE_TIMES").is_some() {
            println!("{more:?} of {max} {}", row.name);
        }
        match more {
            Some(more) if more <= max => {}
            Some(more) => failures.push(format!("{}: {more} bytes, {max} are allowed", row.name)),
            None => failures.push(format!("{}: {:?} {text}", row.name, output.status)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn memory_that_the_next_turn_cannot_afford() {
    let engine = Engine::builder().limits(Limits::default().with_heap_bytes(100_000)).build().expect("an engine");
    let memory = format!("{{\"rows\": [{}0]}}", "1,".repeat(100_000));
    let outcome = engine.eval("(count rows)", Input::new().memory(memory));
    let problem = outcome.problem().expect("a problem");
    assert_eq!((problem.reason().name(), problem.phase), ("memory_exceeded", Phase::Setup));
    // A definition that does not leave the run takes nothing away from the turn before.
    let mut session = Engine::default().session(Input::new());
    assert!(session.eval("(def x 1)").is_success());
    assert_eq!(came_to(&session.eval("(def x 2) (def y (vec (range 10000000)))")), "memory_exceeded");
    assert_eq!(session.eval("x").value::<i64>(), Ok(1));
}

/// L17: tools.
#[test]
fn tools_end_with_the_run() {
    let limits = Limits::default().with_loop_iterations(0).with_tool_calls(0).with_fuel(0);
    let engine_of = |timeout_ms| {
        Engine::builder()
            .limits(limits.with_timeout_ms(timeout_ms))
            .tool("n", |_| Ok(1))
            .tool("huge", |_| Ok("x".repeat(100_000_000)))
            .tool("bad", |_| -> Result<i64, lisp_runtime::ToolError> { panic!("a tool's own fault") })
            .grant(
                Tool::new("stuck", |_| {
                    std::thread::sleep(Duration::from_secs(60));
                    Ok(1)
                })
                .detached(),
            )
            .grant(
                Tool::new("late", |_| {
                    std::thread::sleep(Duration::from_millis(1_600));
                    Ok(1)
                })
                .detached(),
            )
            .build()
            .expect("an engine")
    };
    // What ends by itself has time for it: a busy machine prints the place of a panic for seconds.
    let (engine, patient) = (engine_of(1_500), engine_of(100_000));
    let rows: &[(&str, &[&str])] = &[
        ("(loop [i 0] (if (< i 1000000) (do (tool/n {:i i}) (recur (inc i))) i))", &["timeout", "ok"]),
        ("(tool/n {:s (reduce (fn [s _] (str s s)) \"x\" (range 22))})", &["result_limit_exceeded", "memory_exceeded"]),
        ("(tool/n {:v (reduce (fn [v _] [v v]) 1 (range 60))})", &["result_limit_exceeded", "memory_exceeded"]),
        ("(count (tool/bad {}))", &["tool_error"]),
        ("(tool/stuck {})", &["timeout"]),
        ("(tool/late {})", &["timeout"]),
        // By now the late reply has come: to nobody.
        ("(loop [] (tool/n {}) (recur))", &["timeout"]),
        ("(inc (tool/n {}))", &["ok"]),
    ];
    for (source, expected) in rows {
        let ends_late = expected.contains(&"timeout");
        let (outcome, took) = timed(|| if ends_late { &engine } else { &patient }.eval(source, Input::new()));
        assert!(expected.contains(&came_to(&outcome)), "{source}: {}", came_to(&outcome));
        assert!(!ends_late || took < Duration::from_millis(1_500) + 5 * OVERSHOOT, "{source}: {took:?}");
        assert_eq!(patient.eval("(+ 1 1)", Input::new()).value::<i64>(), Ok(2));
    }
    // Arguments of a hundred megabytes, for which there is memory.
    let roomy = Engine::builder()
        .limits(limits.with_timeout_ms(100_000).with_heap_bytes(1_000_000_000))
        .tool("n", |_| Ok(1))
        .build()
        .expect("an engine");
    let outcome = roomy.eval("(tool/n {:s (reduce (fn [s _] (str s s)) \"0123456789\" (range 24))})", Input::new());
    assert!(["result_limit_exceeded", "timeout"].contains(&came_to(&outcome)), "{}", came_to(&outcome));
    assert!(outcome.ledger.iter().all(|call| call.status == CallStatus::Error), "the tool was not touched");
    // Making the text is the tool's own work, and nobody cuts it short; what it answers is refused.
    let outcome = engine.eval("(count (tool/huge {}))", Input::new());
    assert!(["memory_exceeded", "timeout"].contains(&came_to(&outcome)), "{}", came_to(&outcome));
}

/// L19: the smallest budget in which a program gets through is found twice.
#[test]
fn the_edge_of_the_budget_is_sharp() {
    let engine = Engine::builder().ceiling(Limits::unlimited()).build().expect("an engine");
    let program = engine.compile("(let [v (vec (range 30000))] (count (map inc v)))").expect("a program");
    let fits = |budget: u64| {
        let mut asked = lisp_runtime::LimitsRequest::default();
        asked.set("heap_bytes", budget).expect("a limit");
        let outcome = engine.run(&program, Input::new().limits(asked));
        assert!(["ok", "memory_exceeded"].contains(&came_to(&outcome)), "{}", came_to(&outcome));
        outcome.is_success()
    };
    let edge = || {
        let (mut low, mut high) = (1, 10_000_000);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        high
    };
    let first = edge();
    assert_eq!(edge(), first);
    assert!(fits(first) && !fits(first - 1));
}
