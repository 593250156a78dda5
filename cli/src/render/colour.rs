//! Whether output has colours.

use clap::ColorChoice;
use std::sync::OnceLock;

static ASKED: OnceLock<ColorChoice> = OnceLock::new();

/// Sets the choice of `--color`. Called once, before anything is written.
pub(crate) fn ask(choice: ColorChoice) {
    // This is called once only.
    let _ = ASKED.set(choice);
}

/// Returns whether a stream gets colours. By default it does on a terminal, unless `NO_COLOR` is set.
pub(crate) fn is_wanted(is_terminal: bool) -> bool {
    match ASKED.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        _ => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
    }
}
