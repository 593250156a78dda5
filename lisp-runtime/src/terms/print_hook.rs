//! The host's closures that a run calls: with each printed line, and from time to time.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Who printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedBy {
    /// The program itself.
    Program,
    /// A worker of the program, or one below it. The worker has ended, and its lines are next in program order.
    Worker(u32),
    /// A worker of the program, or one below it, before it is known whether its lines count.
    Ahead(u32),
}

impl PrintedBy {
    /// Returns the number that represents it.
    pub fn number(self) -> u32 {
        let of_worker = |worker: u32| worker.saturating_add(1).saturating_mul(2);
        match self {
            PrintedBy::Program => 0,
            PrintedBy::Worker(worker) => of_worker(worker),
            PrintedBy::Ahead(worker) => of_worker(worker).saturating_sub(1),
        }
    }

    /// Returns the value that a number represents.
    pub fn of_number(number: u32) -> Self {
        match (number, number % 2) {
            (0, _) => PrintedBy::Program,
            (_, 0) => PrintedBy::Worker(number / 2 - 1),
            _ => PrintedBy::Ahead(number / 2),
        }
    }
}

/// The closure of [`crate::Input::on_print`] or [`crate::Input::print_to`].
#[derive(Clone)]
pub(crate) struct PrintHook {
    hook: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether the run also keeps the lines for its outcome.
    pub(crate) keeps: bool,
}

impl PrintHook {
    pub(crate) fn new(hook: impl Fn(&str) + Send + Sync + 'static, keeps: bool) -> Self {
        PrintHook { hook: Arc::new(hook), keeps }
    }

    /// Passes the lines to the closure one by one. If it panics, the remaining lines are skipped; the outcome still has
    /// all of them.
    pub(crate) fn show(&self, lines: &[String]) {
        let _ = catch_unwind(AssertUnwindSafe(|| lines.iter().for_each(|line| (self.hook)(line))));
    }
}

/// The closure of [`crate::Input::heartbeat`].
#[derive(Clone)]
pub(crate) struct Heartbeat(Arc<dyn Fn() + Send + Sync>);

impl Heartbeat {
    /// How often it is called, about.
    pub(crate) const EVERY: Duration = Duration::from_millis(50);

    pub(crate) fn new(hook: impl Fn() + Send + Sync + 'static) -> Self {
        Heartbeat(Arc::new(hook))
    }

    /// Calls the closure. If it panics, the run goes on.
    pub(crate) fn beat(&self) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)()));
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Heartbeat")
    }
}

impl fmt::Debug for PrintHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrintHook")
    }
}
