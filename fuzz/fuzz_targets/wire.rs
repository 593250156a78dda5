//! Whatever a run's process sends is read or refused, and so are orders, jobs and replies; what was read can be sent on as
//! the same. See `sandbox/src/testing/fuzzed.rs` for what the first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::{Engine, Limits, Tool};
use std::sync::LazyLock;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let builder = Engine::builder().limits(Limits::default().with_prints_bytes(10_000).with_tool_calls(5));
    let tool = Tool::new("t", |call| call.get::<i64>("n")).cached();
    builder.grant(tool).grant(Tool::echo("e")).build().expect("an engine")
});

fuzz_target!(|bytes: &[u8]| lisp_sandbox::testing::read_wire(&ENGINE, bytes));
