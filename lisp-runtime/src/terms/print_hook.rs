//! A closure of the host's that sees each printed line as it happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The closure of [`crate::Input::on_print`].
#[derive(Clone)]
pub(crate) struct PrintHook(Arc<dyn Fn(&str) + Send + Sync>);

impl PrintHook {
    pub(crate) fn new(hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        PrintHook(Arc::new(hook))
    }

    /// Shows the lines one by one. A panic of the closure leaves out the rest of them, and nothing else: the outcome
    /// has all lines.
    pub(crate) fn show(&self, lines: &[String]) {
        let _ = catch_unwind(AssertUnwindSafe(|| lines.iter().for_each(|line| (self.0)(line))));
    }
}

impl fmt::Debug for PrintHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrintHook")
    }
}
