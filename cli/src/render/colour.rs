//! Whether output has colours.

use clap::ColorChoice;
use std::sync::OnceLock;

/// The colours of text: those of the terminal's theme that can be read on dark and on light.
pub(crate) const STRING: &str = "32";
/// Keywords, and keys of maps.
pub(crate) const KEYWORD: &str = "36";
/// Numbers, and other plain values.
pub(crate) const NUMBER: &str = "35";
/// Comments, nil and hints.
pub(crate) const FAINT: &str = "2";
/// Names that are known.
pub(crate) const KNOWN: &str = "1";

/// Returns text in a colour.
pub(crate) fn in_colour(text: &str, colour: &str) -> String {
    if colour.is_empty() { text.to_owned() } else { format!("\u{1b}[{colour}m{text}\u{1b}[0m") }
}

static ASKED: OnceLock<ColorChoice> = OnceLock::new();

/// Sets the choice of `--color`. Called once, before anything is written.
pub(crate) fn ask(choice: ColorChoice) {
    // This is called once only.
    let _ = ASKED.set(choice);
}

/// Returns whether a stream gets colours. By default it does on a terminal, unless `NO_COLOR` is set or the terminal has none
/// (`TERM=dumb`).
pub(crate) fn is_wanted(is_terminal: bool) -> bool {
    match ASKED.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        _ => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
            is_terminal && !is_dumb && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        }
    }
}
