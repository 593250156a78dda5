//! Regular expressions: any pattern on any text, by every function that takes one, ends with an answer of its own, and
//! the parts of a text are in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::{Engine, Input, Limits, Program, Reason, Verdict};
use std::sync::LazyLock;

static ENGINE: LazyLock<(Engine, Program)> = LazyLock::new(|| {
    let limits = Limits::default().with_fuel(500_000).with_timeout_ms(10_000).with_heap_bytes(1 << 22);
    let engine = Engine::builder().limits(limits).build().expect("an engine");
    let program = engine
        .compile(
            "(let [re (re-pattern data/pattern) s data/text found (re-find re s) all (re-seq re s)]
               [(every? (fn [m] (str/includes? s (if (vector? m) (first m) m))) all)
                (= found (first all))
                (nil? (re-matches re s))
                (count (str/split s re))
                (str/replace s re \"<$0>\")])",
        )
        .expect("a program");
    (engine, program)
});

fuzz_target!(|input: (&str, &str)| {
    let (engine, program) = &*ENGINE;
    let (pattern, text) = input;
    let outcome = engine.run(program, Input::new().data("pattern", &pattern).data("text", &text));
    assert_ne!(outcome.verdict(), Verdict::HostFault, "{:?}", outcome.problem());
    if let Some(problem) = outcome.problem() {
        assert_ne!(problem.reason(), Reason::Timeout, "500,000 units of fuel take more than ten seconds");
        return;
    }
    let answer = outcome.text().unwrap_or_default();
    assert!(answer.starts_with("[true true"), "{answer}");
});
