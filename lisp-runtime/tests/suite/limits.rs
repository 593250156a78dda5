//! Every limit ends a run cleanly, in time, with its figures.

use crate::cpu::timed;
use lisp_runtime::outcome::{Detail, Phase};
use lisp_runtime::{Cancel, DataSet, Engine, Input, Limits, LimitsRequest, Outcome, Program, Reason, Session, Verdict};
use std::time::Duration;

fn eval(limits: Limits, source: &str) -> Outcome {
    Engine::builder().limits(limits).build().expect("an engine").eval(source, Input::new())
}

fn detail(outcome: &Outcome, name: &str) -> Option<i64> {
    let details = &outcome.problem()?.error.details;
    details.iter().find_map(|(key, value)| match value {
        Detail::Int(n) if *key == name => Some(*n),
        _ => None,
    })
}

#[test]
fn what_hosts_share_is_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Engine>();
    shared::<Program>();
    shared::<DataSet>();
    shared::<Outcome>();
    shared::<Cancel>();
    sent::<Session>();
}

#[test]
fn time_ends_at_the_deadline() {
    let limits = Limits::default().with_loop_iterations(0).with_timeout_ms(30);
    let (outcome, took) = timed(|| eval(limits, "(loop [] (recur))"));
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert!(took < Duration::from_millis(500), "{took:?}");
    assert_eq!(detail(&outcome, "limit_ms"), Some(30));
    assert_eq!(outcome.problem().map(|p| p.phase), Some(Phase::Eval));
    assert_eq!(eval(limits.with_timeout_ms(0), "1").verdict(), Verdict::Timeout);
    assert_eq!(eval(limits.with_timeout_ms(u64::MAX), "1").value::<i64>(), Ok(1));
}

#[test]
fn compiling_is_a_part_of_the_run() {
    let long = format!("(def a 1) {}", "(inc 1) ".repeat(120_000));
    let limits = Limits::default().with_timeout_ms(10);
    let outcome = eval(limits, &long);
    assert_eq!((outcome.verdict(), outcome.problem().map(|p| p.phase)), (Verdict::Timeout, Some(Phase::Compile)));
    assert_eq!(detail(&outcome, "limit_ms"), Some(10));

    let engine = Engine::builder().limits(limits).build().expect("an engine");
    let mut session = engine.session(Input::new());
    assert_eq!(session.eval("(def a 5)").verdict(), Verdict::Ok);
    assert_eq!(session.eval(&long).verdict(), Verdict::Timeout);
    assert_eq!(session.eval("a").value::<i64>(), Ok(5));
    // Names of built-ins that have another meaning now: the program is compiled twice.
    assert_eq!(session.eval("(def inc 1)").verdict(), Verdict::Ok);
    assert_eq!(session.eval(&long).problem().map(|p| p.phase), Some(Phase::Compile));

    let cancel = Cancel::new();
    cancel.cancel();
    let outcome = Engine::builder().build().expect("an engine").eval(&long, Input::new().cancel_with(&cancel));
    assert_eq!(outcome.problem().map(|p| (p.reason(), p.phase)), Some((Reason::Cancelled, Phase::Compile)));

    // A host that compiles ahead of the run waits for the end.
    assert!(engine.compile(&long).is_ok());
}

#[test]
fn fuel_is_the_same_every_time() {
    let limits = Limits::default().with_fuel(10_000).with_loop_iterations(0);
    let runs: Vec<_> = (0..3).map(|_| eval(limits, "(loop [i 0] (recur (inc i)))")).collect();
    for outcome in &runs {
        assert_eq!(outcome.verdict(), Verdict::Timeout);
        assert_eq!(outcome.problem().map(|p| p.reason()), Some(Reason::FuelExhausted));
        assert_eq!(outcome.usage.fuel, runs[0].usage.fuel);
        assert!(outcome.usage.fuel <= 10_000);
    }
}

#[test]
fn recursion_is_bounded_by_the_heap_and_not_by_the_native_stack() {
    let source = "(defn f [n] (if (= n 0) 0 (+ 1 (f (dec n))))) (f 100000)";
    let large = Limits::default().with_heap_bytes(64_000_000).with_timeout_ms(20_000);
    assert_eq!(eval(large, source).value::<i64>(), Ok(100_000));
    let small = eval(large.with_heap_bytes(1_000_000), source);
    assert_eq!(small.verdict(), Verdict::OutOfMemory);
    assert_eq!(detail(&small, "budget_bytes"), Some(1_000_000));
    let baseline = detail(&small, "baseline_bytes").expect("a baseline");
    assert_eq!(detail(&small, "limit_bytes"), Some(1_000_000 + baseline));
    assert_eq!(small.usage.baseline_bytes, u64::try_from(baseline).ok());
}

#[test]
fn the_grant_is_not_on_the_programs_bill() {
    let data = format!("[{}1]", "1,".repeat(50_000));
    let engine = Engine::builder().limits(Limits::default().with_heap_bytes(100_000)).build().expect("an engine");
    let over = engine.eval("(count data/xs)", Input::new().json("xs", &data));
    let problem = over.problem().expect("a problem");
    assert_eq!((over.verdict(), problem.phase), (Verdict::OutOfMemory, Phase::Setup));
    assert_eq!((over.usage.baseline_bytes, detail(&over, "limit_bytes")), (None, Some(400_000)));
    let engine = Engine::builder().limits(Limits::default().with_heap_bytes(500_000)).build().expect("an engine");
    let fits = engine.eval("(count data/xs)", Input::new().json("xs", &data));
    assert_eq!(fits.value::<i64>(), Ok(50_001));
    assert!(fits.usage.baseline_bytes > Some(500_000), "{:?}", fits.usage);
    assert!(fits.usage.heap_peak_bytes < 100_000, "{:?}", fits.usage);
}

#[test]
fn a_client_gets_what_the_operator_allows() {
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(20)).build().expect("an engine");
    let mut asked = LimitsRequest::default();
    asked.set("timeout_ms", 60_000).expect("a limit");
    asked.set("loop_iterations", 0).expect("a limit");
    let outcome = engine.eval("(loop [] (recur))", Input::new().limits(asked));
    assert_eq!((outcome.limits.timeout_ms, outcome.limits.loop_iterations), (20, 1_000));
    let trusting = Engine::builder().ceiling(Limits::unlimited()).build().expect("an engine");
    let outcome = trusting.eval("1", Input::new().limits(asked));
    assert_eq!((outcome.limits.timeout_ms, outcome.limits.loop_iterations), (60_000, 0));
}

#[test]
fn results_are_bounded() {
    let limits = Limits::default().with_result_bytes(100);
    assert!(eval(limits, "(vec (range 20))").is_success());
    let outcome = eval(limits, "(vec (range 200))");
    assert_eq!(outcome.problem().map(|p| (p.reason(), p.phase)), Some((Reason::ResultLimitExceeded, Phase::Result)));
    // A small value whose text is exponentially long.
    let doubling = "(defn grow [v n] (if (= n 0) v (grow [v v] (dec n)))) (grow [1] 60)";
    let outcome = eval(Limits::default(), doubling);
    assert_eq!(outcome.problem().map(|p| p.reason()), Some(Reason::ResultLimitExceeded));
}

#[test]
fn a_result_may_be_as_large_as_the_heap_was_full() {
    // The program's budget says nothing about the host's work of writing the result down.
    let limits = Limits::default().with_heap_bytes(200_000);
    let outcome = eval(limits, "(vec (range 9000))");
    assert!(outcome.is_success(), "{:?}", outcome.problem());
}

#[test]
fn a_million_deep_value_neither_breaks_the_host_nor_the_answer() {
    let limits = Limits::default().with_loop_iterations(0).with_heap_bytes(1 << 30).with_timeout_ms(20_000);
    let outcome = eval(limits, "(loop [i 0 v []] (if (= i 1000000) v (recur (inc i) [v])))");
    match outcome.problem() {
        None => assert!(outcome.json().is_some_and(|json| json.starts_with("[[[["))),
        Some(problem) => assert_eq!(problem.reason(), Reason::ResultLimitExceeded),
    }
}

#[test]
fn source_and_names_are_bounded() {
    let limits = Limits::default().with_program_bytes(10).with_symbols(2);
    assert_eq!(eval(limits, "(+ 1 2)").value::<i64>(), Ok(3));
    assert_eq!(eval(limits, "(+ 1 2 3 4 5)").problem().map(|p| p.reason()), Some(Reason::ProgramTooLarge));
    assert_eq!(eval(limits, "[:a :b :c]").problem().map(|p| p.reason()), Some(Reason::SymbolLimitExceeded));
    let nested = "(".repeat(1_000_000);
    let outcome = eval(Limits::default().with_program_bytes(0), &nested);
    assert_eq!(outcome.problem().map(|p| (p.reason(), p.phase)), Some((Reason::ParseError, Phase::Compile)));
}

#[test]
fn cancelling_ends_a_run() {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let limits = Limits::default().with_loop_iterations(0).with_timeout_ms(60_000);
    let engine = Engine::builder().limits(limits).build().expect("an engine");
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        handle.cancel();
    });
    let outcome = engine.eval("(loop [] (recur))", Input::new().cancel_with(&cancel));
    canceller.join().expect("the canceller");
    assert_eq!(outcome.verdict(), Verdict::Cancelled);
    assert_eq!(engine.eval("1", Input::new().cancel_with(&cancel)).verdict(), Verdict::Cancelled);
}

#[test]
fn prints_are_bounded_with_a_mark() {
    let limits = Limits::default().with_prints_bytes(100).with_print_chars(20);
    let outcome = eval(limits, "(doseq [i (range 50)] (println \"line\" i))");
    assert!(outcome.prints.iter().map(String::len).sum::<usize>() < 300, "{:?}", outcome.prints);
    assert!(outcome.prints_dropped > 0);
    let outcome = eval(limits, "(println \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\")");
    assert!(outcome.prints[0].starts_with("aaaaaaaaaaaaaaaaaaaa..."), "{:?}", outcome.prints);
}

/// The error of a limit names it, says its value, and how to raise it.
#[test]
fn errors_of_limits_name_them() {
    let limits = Limits::default().with_loop_iterations(0);
    let endless = "(loop [] (recur))";
    let rows = [
        (limits.with_timeout_ms(23), endless, Reason::Timeout, "timeout_ms", "23"),
        (limits.with_fuel(1_023), endless, Reason::FuelExhausted, "fuel", "1023"),
        (limits.with_heap_bytes(54_321), "(vec (range 9999))", Reason::MemoryExceeded, "heap_bytes", "54321"),
        (limits.with_setup_heap_bytes(4_321), "data/xs", Reason::MemoryExceeded, "setup_heap_bytes", "4321"),
        (
            limits.with_worker_heap_bytes(54_321),
            "(pmap (fn [_] (count (vec (range 9999)))) [1])",
            Reason::MemoryExceeded,
            "worker_heap_bytes",
            "54321",
        ),
        (limits.with_loop_iterations(23), endless, Reason::LoopLimitExceeded, "loop_iterations", "23"),
        (
            limits.with_tool_calls(3),
            "(map (fn [i] (tool/n {:i i})) (range 9))",
            Reason::ToolCallLimitExceeded,
            "tool_calls",
            "3",
        ),
        (
            limits.with_program_bytes(23),
            "(+ 1 2 3 4 5 6 7 8 9 10 11 12)",
            Reason::ProgramTooLarge,
            "program_bytes",
            "23",
        ),
        (limits.with_symbols(3), "[:a :b :c :d]", Reason::SymbolLimitExceeded, "symbols", "3"),
        (limits.with_result_bytes(23), "(range 99)", Reason::ResultLimitExceeded, "result_bytes", "23"),
        (limits.with_result_bytes(23), "(tool/n {:i (range 99)})", Reason::ResultLimitExceeded, "result_bytes", "23"),
        (
            limits.with_parallel_workers(1),
            "(pmap (fn [_] (pmap inc [1])) [1])",
            Reason::ParallelCapacityExceeded,
            "parallel_workers",
            "1",
        ),
        (
            limits.with_parallel_timeout_ms(23),
            "(pmap (fn [_] (loop [] (recur))) [1])",
            Reason::Timeout,
            "parallel_timeout_ms",
            "23",
        ),
    ];
    for (limits, source, reason, name, value) in rows {
        let engine = Engine::builder().limits(limits).tool("n", |_| Ok(1)).build().expect("an engine");
        let data = format!("[{}1]", "1,".repeat(9_999));
        let input = if name == "setup_heap_bytes" { Input::new().json("xs", data) } else { Input::new() };
        let outcome = engine.eval(source, input);
        let problem = outcome.problem().unwrap_or_else(|| panic!("{name}: {source} succeeded"));
        let (message, hint) = (&problem.error.message, problem.error.hint.as_deref().unwrap_or_default());
        assert_eq!(problem.reason(), reason, "{name}: {message}");
        let figures = problem.error.details.iter().any(|(_, figure)| match figure {
            Detail::Int(n) => n.to_string() == value,
            _ => false,
        });
        assert!(message.replace(['_', ','], "").contains(value), "{name} = {value}: {message}");
        assert!(figures, "{name} = {value}: {:?}", problem.error.details);
        assert!(hint.contains("raise") && hint.contains(name), "{name}: {hint:?}");
    }
}

/// A heap of 0 bytes is no limit; the worker's follows it unless it is given.
#[test]
fn a_heap_without_a_limit() {
    let source = "(count (vec (range 2000000)))";
    let run = |heap: u64| {
        let limits = Limits::default().with_timeout_ms(60_000).with_heap_bytes(heap);
        Engine::builder().limits(limits).build().unwrap().eval(source, Input::new())
    };
    assert_eq!(run(10_000_000).problem().unwrap().reason(), Reason::MemoryExceeded);
    let outcome = run(0);
    assert_eq!(outcome.value::<i64>().unwrap(), 2_000_000);
    assert!(
        outcome.usage.heap_peak_bytes > 30_000_000 && outcome.usage.baseline_bytes.is_some(),
        "{:?}",
        outcome.usage
    );
}

/// `output_bytes` is the bytes of the printed lines and of the result as JSON, of a failed run those of its lines.
#[test]
fn output_is_counted_in_bytes() {
    let bytes = |source: &str| Engine::default().eval(source, Input::new()).usage.output_bytes;
    assert_eq!(bytes("nil"), 4);
    assert_eq!(bytes("(println \"é\") {:a 1}"), 2 + 7);
    assert_eq!(bytes("(println \"abc\") (println) (/ 1 0)"), 3);
    assert_eq!(bytes("(println 1) (println 22) \"x\""), 3 + 3);
}

/// A program may make any number of patterns: compiled ones are forgotten, and paid for again, whatever the budget.
#[test]
fn any_number_of_patterns_fits_the_budget() {
    let engine = Engine::default();
    let source = r#"(count (for [i (range 120)] (re-find (re-pattern (str "\\p{L}+\\b" i)) "é1ab")))"#;
    let fuel = |heap_bytes| {
        let mut limits = LimitsRequest::default();
        limits.set("heap_bytes", heap_bytes).unwrap();
        limits.set("timeout_ms", 60_000).unwrap();
        let outcome = engine.eval(source, Input::new().limits(limits));
        assert_eq!(outcome.value::<i64>(), Ok(120), "{heap_bytes}");
        outcome.usage.fuel
    };
    assert_eq!(fuel(9_000_000), fuel(10_000_000));
}

/// The ledger of calls with long arguments keeps previews, of cached tools too.
#[test]
fn a_ledger_does_not_keep_the_arguments() {
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(60_000))
        .grant(lisp_runtime::Tool::new("t", |_| Ok(1)).cached())
        .build()
        .unwrap();
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB").to_owned();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
    };
    let run = |calls: u32| {
        let source = format!(
            r#"(let [s (reduce (fn [a _] (str a a)) "a" (range 17))] (doseq [i (range {calls})] (tool/t {{:s s :i i}})))"#
        );
        assert!(engine.eval(&source, Input::new()).is_success());
    };
    run(10);
    let before = resident();
    run(3_000);
    // 393 MB of arguments; 16 MiB of them are kept in the cache. Other tests run beside this one.
    let grown = resident().saturating_sub(before);
    assert!(grown < 150_000, "{grown} KiB");
}

#[test]
fn an_error_about_size_names_its_limit() {
    let engine = Engine::builder().limits(Limits::default().with_setup_heap_bytes(1_000)).build().unwrap();
    let problem = engine.eval("1", Input::new().json("xs", format!("[{}1]", "1,".repeat(1_000))));
    assert_eq!(
        problem.problem().unwrap().error.message,
        "the data and the program of the run take more than 1000 bytes, the limit setup_heap_bytes"
    );
    let engine = Engine::builder()
        .tool("t", |_: &lisp_runtime::ToolCall| Ok::<_, lisp_runtime::ToolError>(1))
        .limits(Limits::default().with_result_bytes(1_000))
        .build()
        .unwrap();
    let outcome = engine.eval("(tool/t {:v (vec (range 1000))})", Input::new());
    let message = &outcome.problem().unwrap().error.message;
    assert_eq!(message, "tool/t: the map of its arguments takes 3897 bytes as JSON; the limit result_bytes is 1000");
}
