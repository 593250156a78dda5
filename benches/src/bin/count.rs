//! Runs a program for `.ci/instructions`, which counts the instructions of the processor: no limits but that of memory.

use lisp_runtime::{Engine, Input, Limits};
use std::process::ExitCode;

fn main() -> ExitCode {
    let program = std::env::args().nth(1).unwrap_or_default();
    let limits = Limits::default().with_timeout_ms(600_000).with_loop_iterations(0).with_fuel(9_000_000_000);
    let engine = Engine::builder().limits(limits.with_heap_bytes(100_000_000)).build();
    let outcome = match &engine {
        Ok(engine) => engine.eval(&program, Input::new()),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match outcome.problem() {
        None => ExitCode::SUCCESS,
        Some(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
