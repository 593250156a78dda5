//! Whole programs, made of the language's own parts: each ends with a verdict of its own within its limits, twice the
//! same.
#![no_main]

mod shared;

use libfuzzer_sys::{Corpus, fuzz_target};
use lisp_runtime::{Engine, Input, Limits, Reason, Verdict};
use shared::Source;
use std::sync::LazyLock;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let limits = Limits::default()
        .with_fuel(200_000)
        .with_timeout_ms(10_000)
        .with_heap_bytes(1 << 20)
        .with_result_bytes(1 << 20)
        .with_tool_calls(10);
    Engine::builder().limits(limits).grant(lisp_runtime::Tool::echo("echo")).build().expect("an engine")
});

fuzz_target!(|source: Source| -> Corpus {
    let input = || Input::new().json("rows", r#"[{"a": 1, "b": "x"}, {"a": null}, {"a": 2.5, "c": [1, 2]}]"#).now_ms(0);
    let first = ENGINE.eval(&source.0, input());
    assert_ne!(first.verdict(), Verdict::HostFault, "{:?}", first.problem());
    if first.problem().is_some_and(|problem| problem.reason() == Reason::Timeout) {
        panic!("200,000 units of fuel take more than ten seconds");
    }
    assert!(first.usage.heap_peak_bytes <= (1 << 20) + 1024, "{:?}", first.usage);
    let again = ENGINE.eval(&source.0, input());
    assert_eq!((first.text(), first.problem(), first.usage.fuel), (again.text(), again.problem(), again.usage.fuel));
    if first.problem().is_some_and(|problem| problem.phase == lisp_runtime::outcome::Phase::Compile) {
        return Corpus::Reject;
    }
    Corpus::Keep
});
