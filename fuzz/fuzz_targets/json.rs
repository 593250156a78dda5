//! JSON text: what comes in goes out as the same value, and what serde_json refuses is refused here too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::{Engine, Input, Limits, Program};
use std::sync::LazyLock;

static ENGINE: LazyLock<(Engine, Program)> = LazyLock::new(|| {
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(20_000)).build().expect("an engine");
    let program = engine.compile("data/x").expect("a program");
    (engine, program)
});

fuzz_target!(|text: &str| {
    let (engine, program) = &*ENGINE;
    let outcome = engine.run(program, Input::new().json("x", text));
    let Some(json) = outcome.json() else { return };
    // Numbers of any length are JSON, though not everybody can hold them.
    serde_json::from_str::<serde::de::IgnoredAny>(json).expect("what goes out is JSON");
    let again = engine.run(program, Input::new().json("x", json.to_owned()));
    assert_eq!(again.json(), Some(json), "the second time is like the first");
    // Numbers beyond 64 bits are exact here and floats there.
    if !text.bytes().any(|b| b.is_ascii_digit())
        && let Ok(direct) = serde_json::from_str::<serde_json::Value>(text)
    {
        assert_eq!(direct, serde_json::from_str::<serde_json::Value>(json).expect("the same depth"));
    }
});
