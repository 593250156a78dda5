//! Dates: any text is a date or none; what is one prints, reads back, and keeps its place in the calendar.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::{Engine, Input, Limits, Program, Verdict};
use std::sync::LazyLock;

/// `data/text` is whatever it is; `data/n` days or months are added.
const PROGRAMS: &[&str] = &[
    "(let [d (LocalDate/parse data/text)]
       [(= d (LocalDate/parse (str d))) (= d (.minusDays (.plusDays d data/n) data/n))])",
    "(let [i (Instant/parse data/text)] [(= i (Instant/parse (str i))) true])",
    "(let [i (Instant/parse data/text) d (LocalDate/parse (subs (str i) 0 10))] [(= d (LocalDate/parse (str d))) true])",
];

static ENGINE: LazyLock<(Engine, Vec<Program>)> = LazyLock::new(|| {
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(10_000)).build().expect("an engine");
    let programs = PROGRAMS.iter().map(|source| engine.compile(source).expect("a program")).collect();
    (engine, programs)
});

fuzz_target!(|input: (&str, i32)| {
    let (engine, programs) = &*ENGINE;
    let (text, n) = input;
    for program in programs {
        let outcome = engine.run(program, Input::new().data("text", &text).data("n", &n));
        assert_ne!(outcome.verdict(), Verdict::HostFault, "{:?}", outcome.problem());
        // A text that is none is an error; so is a date that leaves the calendar.
        if outcome.problem().is_none() {
            assert_eq!(outcome.text(), Some("[true true]"), "{text} and {n} in {}", program.source());
        }
    }
});
