//! Text: values, numbers and dates as text, characters as people count them, and searches in long texts.

pub(crate) mod characters;
pub(crate) mod date_pattern;
pub(crate) mod dates;
mod describe;
pub(crate) mod near;
pub(crate) mod number;
pub(crate) mod plain;
mod print;
pub(crate) mod scan;

pub use dates::is_instant_text;
pub(crate) use describe::{arguments, beginning, describe};
pub(crate) use near::distance_within;
pub use near::near_names;
pub use print::pr_str;
pub(crate) use print::{println_text, quote, separate, short_str, timed, to_str};
