//! Progress of long work, on a terminal that does not show the output.

#[cfg(feature = "progress")]
pub(crate) use shown::Progress;

/// Does nothing: this build is without the feature `progress`.
#[cfg(not(feature = "progress"))]
pub(crate) struct Progress;

#[cfg(not(feature = "progress"))]
impl Progress {
    pub(crate) fn new(_: &str) -> Self {
        Progress
    }

    pub(crate) fn add(&self, _: u64) {}

    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        write()
    }
}

#[cfg(feature = "progress")]
mod shown {
    use indicatif::{ProgressBar, ProgressStyle};
    use std::io::{self, IsTerminal};
    use std::time::Duration;

    /// A counter on standard error. Does nothing if that is not a terminal, or if a terminal is also the input or
    /// output.
    pub(crate) struct Progress(Option<ProgressBar>);

    impl Progress {
        pub(crate) fn new(what: &str) -> Self {
            let is_shown = io::stderr().is_terminal() && !io::stdout().is_terminal() && !io::stdin().is_terminal();
            Progress(is_shown.then(|| {
                let bar = ProgressBar::new_spinner();
                if let Ok(style) =
                    ProgressStyle::with_template(&format!("{{spinner}} {{human_pos}} {what}, {{elapsed}}, {{per_sec}}"))
                {
                    bar.set_style(style);
                }
                bar.enable_steady_tick(Duration::from_millis(200));
                bar
            }))
        }

        /// Adds to the count.
        pub(crate) fn add(&self, count: u64) {
            if let Some(bar) = &self.0 {
                bar.inc(count);
            }
        }

        /// Writes something else to the terminal.
        pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
            match &self.0 {
                Some(bar) => bar.suspend(write),
                None => write(),
            }
        }
    }

    impl Drop for Progress {
        fn drop(&mut self) {
            if let Some(bar) = &self.0 {
                bar.finish_and_clear();
            }
        }
    }
}
