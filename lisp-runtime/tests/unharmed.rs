//! Hostile source text, and honest programs beside hostile ones.

#[path = "../../lisp-core/tests/cpu/mod.rs"]
mod cpu;

use cpu::timed;
use lisp_runtime::{Engine, Input, Limits, Tool, ToolError, Verdict};
use std::time::Duration;

/// The processor time that a run may take. Debug builds read and compile more slowly.
const MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 300 });

fn engine(timeout_ms: u64) -> Engine {
    let limits = Limits::default().with_timeout_ms(timeout_ms).with_loop_iterations(0).with_program_bytes(0);
    Engine::builder()
        .limits(limits)
        .grant(Tool::echo("echo"))
        .tool("panic", |_| -> Result<(), ToolError> { panic!("a tool's own bug") })
        .build()
        .expect("an engine")
}

/// Runs a program and sees that it ends with one of the verdicts, and after little work. The deadline is far away, so that a busy
/// machine changes nothing.
fn ends(source: &str, verdicts: &[Verdict]) {
    let (outcome, took) = timed(|| engine(600_000).eval(source, Input::new()));
    let shown: String = source.chars().take(80).collect();
    assert!(verdicts.contains(&outcome.verdict()), "{shown}: {:?} {:?}", outcome.verdict(), outcome.problem());
    assert!(took < MAX, "{shown}: {took:?}");
    let budget = outcome.limits.heap_bytes;
    assert!(outcome.usage.heap_peak_bytes <= budget + budget / 4, "{shown}: {:?}", outcome.usage);
}

#[test]
fn source_text_cannot_break_the_reader() {
    use Verdict::{Error, Ok};
    for unit in ["(", "[", "{", "#{", "#(", "'", ")", "(let [", "(fn [", "[{#{("] {
        ends(&unit.repeat(200_000), &[Error]);
    }
    // Many small ones, and few that are costly to compile.
    ends(&"#\"#\"".repeat(100_000), &[Ok]);
    let patterns: Vec<String> = (0..5_000).map(|i| format!("#\"(a{{100}}){{{}}}\"", 50 + i % 50)).collect();
    ends(&patterns.join(" "), &[Ok]);
    for source in ["x".repeat(5_000_000), "1".repeat(5_000_000), format!(":{}", "k".repeat(5_000_000))] {
        ends(&source, &[Error, Ok]);
    }
    for source in ["(+ 1 \0)", "(def \u{202e} 1)", "1e999", "#\"abc", "\u{feff}\u{feff}1", "\u{0}"] {
        ends(source, &[Error]);
    }
    for source in ["\u{feff}(+ 1 2)", "-0.0", "{##NaN 1}", "\"\u{202e}\""] {
        ends(source, &[Ok]);
    }
}

#[test]
fn honest_programs_are_unharmed_beside_hostile_ones() {
    let (engine, patient) = (engine(300), Limits::default().with_timeout_ms(600_000));
    let honest = Engine::builder().limits(patient).build().expect("an engine");
    let hostile = [
        "(loop [] (recur))",
        "(defn f [x] (inc (f (inc x)))) (f 0)",
        "(reduce (fn [s _] (str s s)) \"x\" (range 64))",
        "(tool/panic)",
        "((((((",
    ];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, honest) = (engine.clone(), honest.clone());
            scope.spawn(move || {
                for run in 0..30 {
                    if run % 6 == 0 {
                        let outcome = engine.eval(hostile[(thread + run / 6) % hostile.len()], Input::new());
                        assert_ne!(outcome.verdict(), Verdict::HostFault);
                        assert!(!outcome.is_success());
                    }
                    let rows = Input::new().json("rows", r#"[{"n": 20}, {"n": 22}]"#);
                    let outcome = honest.eval("(reduce + (map :n data/rows))", rows);
                    assert_eq!(outcome.value::<i64>(), Ok(42));
                }
            });
        }
    });
}
