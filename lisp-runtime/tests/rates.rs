//! Work at the edges of a run takes time in proportion to what it is charged for, or to what is brought in and out.
//!
//! Times are those of this thread, and are compared with others of the same moment.

#[path = "../../lisp-core/tests/cpu/mod.rs"]
mod cpu;

use cpu::thread_time;
use lisp_runtime::outcome::Phase;
use lisp_runtime::{Check, Engine, Input, Limits, Outcome, Tool, Verdict};
use std::time::Duration;

/// The most time that a unit of fuel may take, as a multiple of what it takes in a loop. Without the optimizer the loop is
/// favoured.
const MAX: f64 = if cfg!(debug_assertions) { 60.0 } else { 20.0 };
/// Other work on the machine may be in the way a few times.
const ATTEMPTS: usize = 8;

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = thread_time();
    let done = work();
    (thread_time() - start, done)
}

fn limits() -> Limits {
    Limits::default()
        .with_timeout_ms(60_000)
        .with_heap_bytes(100_000_000)
        .with_setup_heap_bytes(400_000_000)
        .with_result_bytes(50_000_000)
        .with_loop_iterations(0)
}

fn engine(limits: Limits) -> Engine {
    let ints = format!("[{}1]", "12345,".repeat(50_000));
    let floats = format!("[{}1]", "1.2345678901234567e300,".repeat(20_000));
    let rows = format!("[{}{{}}]", r#"{"id":1,"name":"n","tags":["a","b"]},"#.repeat(10_000));
    let reply = move |json: &str| serde_json::value::RawValue::from_string(json.to_owned());
    let nested = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let deep = format!("[{}1]", format!("{nested},").repeat(100));
    Engine::builder()
        .limits(limits)
        .tool("take", |_| Ok(1))
        .grant(Tool::new("checked", |_| Ok(1)).signature("(x [:any]) -> :int"))
        .grant(Tool::echo("echo"))
        .tool("ints", move |_| Ok(reply(&ints)?))
        .tool("floats", move |_| Ok(reply(&floats)?))
        .tool("rows", move |_| Ok(reply(&rows)?))
        .tool("deep", move |_| Ok(reply(&deep)?))
        .build()
        .expect("an engine")
}

/// What stands for the worst values, bound to `x`.
const VALUES: &[(&str, &str)] = &[
    ("integers", "(vec (range 50000))"),
    ("floats", "(mapv (fn [i] (* 1.2345678901234567e300 (inc i))) (range 20000))"),
    ("texts", "(mapv (fn [i] (str \"text \" i)) (range 20000))"),
    ("escapes", "(vec (take 3000 (map (fn [_] \"\\n\\t\\\"\\n\\n\\n\\n\\n\") (range 3000))))"),
    ("rows", "(mapv (fn [i] {:id i :user-name \"n\" :tags #{:a :b}}) (range 10000))"),
    ("maps", "(into {} (map (fn [i] [(str \"k\" i) i]) (range 2000)))"),
    ("numbers for keys", "(into {} (map (fn [i] [i i]) (range 2000)))"),
    ("a set", "(set (range 20000))"),
    ("shared", "(reduce (fn [v _] [v v]) [1 2 3] (range 14))"),
    ("deep", "(mapv (fn [_] (reduce (fn [v _] [v]) 1 (range 500))) (range 40))"),
    ("a long integer", "(reduce * (repeat-of 400))"),
];

fn value(source: &str) -> String {
    match source.contains("repeat-of") {
        true => "(reduce * (map (constantly 1000000007) (range 400)))".to_owned(),
        false => source.to_owned(),
    }
}

/// The time of a loop for a unit.
fn of_a_loop(engine: &Engine) -> f64 {
    let program = engine.compile("(loop [i 0] (if (< i 200000) (recur (inc i))))").expect("a program");
    let rate = |_| {
        let (took, outcome) = timed(|| engine.run(&program, Input::new()));
        took.as_nanos() as f64 / outcome.usage.fuel as f64
    };
    (0..3).map(rate).fold(f64::MAX, f64::min)
}

/// How many times the time of a loop a unit takes in `source`, but for what `without` takes; the least of some attempts.
fn times(engine: &Engine, source: &str, without: &str) -> f64 {
    let [long, short] = [source, without].map(|source| engine.compile(source).expect("a program"));
    let mut least = f64::MAX;
    for _ in 0..ATTEMPTS {
        let run = |program| {
            let (took, outcome) = timed(|| engine.run(program, Input::new()));
            assert_eq!(outcome.verdict(), Verdict::Ok, "{source}: {:?}", outcome.problem());
            (took.as_nanos() as f64, outcome.usage.fuel as f64)
        };
        let ((more, fuel), (less, before)) = (run(&long), run(&short));
        least = least.min((more - less) / (fuel - before) / of_a_loop(engine));
        if least < MAX / 2.0 {
            break;
        }
    }
    least
}

#[test]
fn what_goes_to_tools_and_comes_from_them_is_charged_for() {
    let engine = engine(limits());
    let mut failures = Vec::new();
    let mut check = |what: &str, body: &str, call: &str| {
        let source = |call: &str| format!("(let [x {body}] (doseq [_ (range 4)] {call}) 1)");
        let times = times(&engine, &source(call), &source("1"));
        println!("{what}: {times:.1}");
        if times > MAX {
            failures.push(format!("{what}: {times:.0} times the time of a loop"));
        }
    };
    for &(kind, body) in VALUES {
        for tool in ["take", "checked", "echo"] {
            check(&format!("{kind} to tool/{tool}"), &value(body), &format!("(tool/{tool} {{:x [x]}})"));
        }
    }
    for tool in ["ints", "floats", "rows", "deep"] {
        check(&format!("from tool/{tool}"), "1", &format!("(tool/{tool} {{}})"));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The least time of some.
fn least(mut work: impl FnMut() -> Duration) -> Duration {
    (0..ATTEMPTS).map(|_| work()).min().unwrap_or_default()
}

fn ok(outcome: &Outcome) {
    assert_eq!(outcome.verdict(), Verdict::Ok, "{:?}", outcome.problem());
}

#[test]
fn answers_take_time_in_proportion_to_their_texts() {
    let engine = engine(limits());
    // Twice: the result is one part of the answer, the memory another.
    let per_byte = |body: &str| {
        let [whole, without] = [format!("(def x {body}) x"), format!("(let [x {body}] 1)")];
        let [whole, without] = [whole, without].map(|source| engine.compile(&source).expect("a program"));
        let mut bytes = 1;
        let mut run = |program| {
            least(|| {
                let (took, outcome) = timed(|| engine.run(program, Input::new()));
                ok(&outcome);
                bytes = bytes.max(outcome.text().map_or(0, str::len));
                took
            })
        };
        let (long, short) = (run(&whole), run(&without));
        long.saturating_sub(short).as_nanos() as f64 / bytes as f64
    };
    let usual = per_byte("(vec (range 50000))");
    for &(kind, body) in VALUES {
        if kind == "deep" || kind == "escapes" {
            continue;
        }
        let times = per_byte(&value(body)) / usual;
        println!("{kind}: {times:.1}");
        // Keys are sorted.
        assert!(times < 3.0 * MAX, "{kind}: {times:.0} times the time of integers for a byte of the answer");
    }
}

#[test]
fn a_signature_is_checked_in_time_that_follows_from_the_data() {
    let engine = engine(limits().with_result_bytes(1_000));
    let check = |levels: usize| {
        let source = format!("(reduce (fn [v _] [v v]) 1 (range {levels}))");
        let signature = format!("{}:string{}", "[".repeat(levels), "]".repeat(levels));
        let program = engine.compile(&source).expect("a program");
        least(|| {
            let (took, outcome) = timed(|| engine.run(&program, Input::new().signature(signature.clone())));
            assert_eq!(outcome.problem().map(|p| p.error.reason.name()), Some("validation_error"));
            took
        })
    };
    // Each level doubles the ways to the number at the bottom.
    let (few, many) = (check(3), check(31));
    assert!(many < few * 100, "{many:?} for 31 levels, {few:?} for 3");
}

#[test]
fn data_is_looked_up_by_name_at_once() {
    let engine = engine(limits().with_symbols(0));
    let data = |names: usize| {
        let entries: Vec<String> = (0..names).map(|i| format!("\"name_{i}\":{i}")).collect();
        format!("{{{}}}", entries.join(","))
    };
    let program = |names: usize| {
        let source: String = (0..names).map(|i| format!("data/name_{i} ")).collect();
        engine.compile(&source).expect("a program")
    };
    let run = |names: usize, program| {
        let set = engine.import_object(data(names)).expect("data");
        least(|| {
            let (took, outcome) = timed(|| engine.run(program, Input::new().data_set(&set)));
            ok(&outcome);
            took
        })
    };
    let names = program(5_000);
    let (few, many) = (run(10, &names), run(50_000, &names));
    assert!(many < few * 8, "{many:?} among 50,000 names, {few:?} among ten");
}

/// Programs that take a check as long as any.
fn hard_to_check() -> Vec<(&'static str, String)> {
    let names = |count: usize, prefix: &str| (0..count).map(|i| format!("{prefix}{i:03} {i} ")).collect::<String>();
    let pairs: String = (0..24).map(|i| format!(" a{} {{:l a{i} :r a{i}}}", i + 1)).collect();
    let similar: String = (0..2_000).map(|i| format!("(:a-rather-long-name-of-a-key-{i}x m)")).collect();
    vec![
        ("branches", format!("(let [o (first data/rows)] {}1{})", "(if (:x o) (:y o) ".repeat(60), ")".repeat(60))),
        ("loops", format!("{}1{}", "(loop [x {:a 1}] (if (:b x) (recur {:a x}) ".repeat(30), "))".repeat(30))),
        ("calls", "(defn f [g] (g g)) (if data/nothing (f (fn [g] (f (fn [h] (g h) (h g))))) 1)".to_owned()),
        (
            "functions",
            format!(
                "(defn f0 [x] x) {} (if data/nothing (f30 1) 1)",
                (0..30).map(|i| format!("(defn f{} [x] (f{i} (f{i} x))) ", i + 1)).collect::<String>()
            ),
        ),
        ("shapes", format!("(let [a0 {{:x 1}}{pairs}] (:ll a24))")),
        (
            "joined",
            format!(
                "(let [m {{{}}}] {}m{})",
                names(200, ":k"),
                "(if data/rows (assoc m :x 1) ".repeat(50),
                ")".repeat(50)
            ),
        ),
        ("names", format!("(let [m {{{}}}] {similar})", names(200, ":a-rather-long-name-of-a-key-"))),
        (
            "folds",
            format!("{}1{}", "(reduce (fn [a x] (merge a {:b a :c x} ".repeat(15), ")) {} data/rows)".repeat(15)),
        ),
        ("tuples", format!("(map (fn [x] (nth x 1)) [{}])", "[1 {:a 1} \"a\"] ".repeat(3_000))),
    ]
}

/// A check ends soon, whatever the program is: its work is bounded, and each step of it is small.
#[test]
fn a_check_takes_a_bounded_time() {
    /// What the longest may take, in units of a loop's time. Without the optimizer the loop is favoured.
    const MOST: f64 = if cfg!(debug_assertions) { 30e6 } else { 10e6 };
    let rows = serde_json::json!([{ "x": 1, "y": [{ "z": 2 }] }, { "x": null, "w": "a" }]);
    let engine = |check| Engine::builder().limits(limits()).check(check).build().expect("an engine");
    let (checks, runs) = (engine(Check::Warn), engine(Check::Off));
    for (kind, source) in hard_to_check() {
        let [long, short] = [&checks, &runs].map(|engine| engine.compile(&source).expect("a program"));
        let input = || Input::new().data("rows", &rows);
        let mut least = f64::MAX;
        for _ in 0..ATTEMPTS {
            let (more, _) = timed(|| checks.run(&long, input()));
            let (less, _) = timed(|| runs.run(&short, input()));
            let took = more.saturating_sub(less);
            least = least.min(took.as_nanos() as f64 / of_a_loop(&runs));
            println!("{kind}: {took:?}");
            if least < MOST / 2.0 {
                break;
            }
        }
        assert!(least < MOST, "{kind}: {least:.0} times a unit of a loop");
    }
}

/// Programs whose forms, once read, are many.
fn long_programs() -> Vec<(&'static str, String)> {
    let names: String = (0..200_000).map(|_| "a ").collect();
    vec![
        ("keys", format!("(let [{{:keys [{names}]}} {{}}] 1)")),
        ("steps", format!("(some-> 1 {})", "inc ".repeat(200_000))),
        ("calls", "(inc 1) ".repeat(100_000)),
        ("vectors", format!("[{}]", "[] ".repeat(300_000))),
        ("texts", format!("[{}]", "\"a\" ".repeat(200_000))),
    ]
}

#[test]
fn compiling_ends_at_the_deadline_forms_and_all() {
    /// Ten milliseconds of work, and more where nothing is optimized.
    const LATE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 60 } else { 14 });
    let mut stopped = 0;
    for (kind, source) in long_programs() {
        let whole = least(|| timed(|| engine(limits()).compile(&source).is_ok()).0);
        for part in [3, 5] {
            let timeout = whole * part / 6;
            let ms = timeout.as_millis() as u64;
            if ms < 10 {
                continue;
            }
            let engine = engine(limits().with_timeout_ms(ms));
            let late = least(|| {
                let start = thread_time();
                let outcome = engine.eval(&source, Input::new());
                if outcome.problem().is_some_and(|problem| problem.phase == Phase::Compile) {
                    stopped += 1;
                }
                (thread_time() - start).saturating_sub(Duration::from_millis(ms))
            });
            println!("{kind} in {ms} of {whole:?}: {late:?} late");
            assert!(late < LATE, "{kind}: {late:?} after {ms} ms of {whole:?}");
        }
    }
    assert!(stopped > 5, "{stopped} were stopped");
}

#[test]
fn arguments_of_tools_are_within_the_budget() {
    let engine = engine(limits().with_heap_bytes(100_000));
    let shared = "(tool/take {:x (reduce (fn [v _] [v v]) 1 (range 16))})";
    let outcome = engine.eval(shared, Input::new());
    assert_eq!(outcome.problem().map(|p| p.error.reason.name()), Some("memory_exceeded"));
    assert!(outcome.usage.heap_peak_bytes <= 100_000, "{}", outcome.usage.heap_peak_bytes);
    // Garbage is no hindrance.
    let often = "(doseq [_ (range 50)] (tool/take {:x (vec (range 800))}))";
    ok(&engine.eval(often, Input::new()));
    let reply = engine.eval("(count (tool/ints {}))", Input::new());
    assert_eq!(reply.problem().map(|p| p.error.reason.name()), Some("memory_exceeded"));
    assert!(reply.usage.heap_peak_bytes <= 100_000, "{}", reply.usage.heap_peak_bytes);
}

#[test]
fn the_programs_of_a_session_have_a_ceiling() {
    let engine = engine(limits().with_setup_heap_bytes(200_000));
    let mut session = engine.session(Input::new());
    let text = "a text ".repeat(100);
    // Programs that no function needs are forgotten.
    for i in 0..1_000 {
        ok(&session.eval(&format!("(def x{} {i}) \"{text}\"", i % 10)));
    }
    ok(&session.eval("(def fs [])"));
    let turn = |i: usize| format!("(def fs (conj fs (fn [] [{i} \"{text}\"]))) (count fs)");
    let refused = (0..1_000).find_map(|i| {
        let outcome = session.eval(&turn(i));
        outcome.problem().map(|problem| (i, problem.error.reason.name(), problem.phase, problem.error.message.clone()))
    });
    let (turns, reason, phase, message) = refused.expect("one too many");
    assert_eq!((reason, phase), ("memory_exceeded", Phase::Compile), "{message}");
    assert!((20..400).contains(&turns) && message.contains("setup_heap_bytes is 200000"), "{turns}: {message}");
    assert_eq!(session.names().len(), 11, "what was defined is there");
}
