//! Colours: where, and whether.

use clap::ColorChoice;
use std::sync::OnceLock;

static ASKED: OnceLock<ColorChoice> = OnceLock::new();

/// What `--color` says; once, before anything is written.
pub(crate) fn ask(choice: ColorChoice) {
    // It is asked for once.
    let _ = ASKED.set(choice);
}

/// Are there to be colours in a stream? Without a word on it: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn is_wanted(is_terminal: bool) -> bool {
    match ASKED.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        _ => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
    }
}
