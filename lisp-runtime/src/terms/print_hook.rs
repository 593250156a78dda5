//! A closure of the host's that sees each printed line as it happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Whose lines they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedBy {
    /// The program's own.
    Program,
    /// Those of a worker of the program, and of all that worked for it; it has ended, and they are the next in the program's order.
    Worker(u32),
    /// Those that a worker of the program, or one that works for it, prints before it is known whether they count.
    Ahead(u32),
}

impl PrintedBy {
    /// The number that stands for it.
    pub fn number(self) -> u32 {
        let of_worker = |worker: u32| worker.saturating_add(1).saturating_mul(2);
        match self {
            PrintedBy::Program => 0,
            PrintedBy::Worker(worker) => of_worker(worker),
            PrintedBy::Ahead(worker) => of_worker(worker).saturating_sub(1),
        }
    }

    /// What a number stands for.
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
    /// The run keeps the lines besides, for its outcome.
    pub(crate) keeps: bool,
}

impl PrintHook {
    pub(crate) fn new(hook: impl Fn(&str) + Send + Sync + 'static, keeps: bool) -> Self {
        PrintHook { hook: Arc::new(hook), keeps }
    }

    /// Shows the lines one by one. A panic of the closure leaves out the rest of them, and nothing else: the outcome
    /// has all lines.
    pub(crate) fn show(&self, lines: &[String]) {
        let _ = catch_unwind(AssertUnwindSafe(|| lines.iter().for_each(|line| (self.hook)(line))));
    }
}

impl fmt::Debug for PrintHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrintHook")
    }
}
