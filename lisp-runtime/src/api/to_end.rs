//! Drives a run to its end on one thread.

use super::run::{Run, RunEvent};
use crate::parallel::executor::Executor;
use crate::parallel::task::run_task;
use crate::terms::outcome::Outcome;
use crate::terms::print_hook::Heartbeat;
use crate::tools::threads::ToolThreads;
use std::time::{Duration, Instant};

/// Drives a run to its end, with the program itself on this thread.
pub(crate) fn to_end(run: &mut Run, threads: &ToolThreads, executor: impl Fn() -> Executor) -> Outcome {
    /// How often the deadlines of waiting workers are checked.
    const STEP: Duration = Duration::from_millis(2);
    loop {
        match run.advance() {
            RunEvent::Call(tool, call) => {
                let reply = tool.call(call, threads, &|| run.beat());
                run.reply(reply);
            }
            RunEvent::Printed(_) | RunEvent::Turn => {}
            RunEvent::Beat => run.beat(),
            RunEvent::Workers => {
                let executor = executor();
                if let Some(first) = run.send_workers(executor.clone()) {
                    run_task(first);
                }
                match executor {
                    Executor::Local(inline) => {
                        inline.run();
                        run.is_back(Run::LONG);
                    }
                    Executor::Pool(on) => {
                        let mut beat_at = Instant::now();
                        while !run.is_back(STEP) {
                            on.end_those_that_are_over();
                            if beat_at.elapsed() >= Heartbeat::EVERY {
                                run.beat();
                                beat_at = Instant::now();
                            }
                        }
                    }
                }
            }
            RunEvent::Done(outcome) => return *outcome,
        }
    }
}
