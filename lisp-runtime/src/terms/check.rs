//! Whether programs are checked before they run.

use serde::{Deserialize, Serialize};

/// Whether programs are checked against their data and tools before they run.
///
/// A check knows the keys of the data, and the signatures and schemas of the tools. It finds keys that no map has while they
/// have one with a similar name, comparisons that are never true, and unknown, missing and unsuitable arguments of tools. What
/// is not sure is no finding. Its work is bounded, and it costs no fuel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// Programs are not checked.
    Off,
    /// Findings are [warnings](crate::Outcome::warnings) of the outcome. So are keys that the run reads and never finds.
    #[default]
    Warn,
    /// Findings are warnings, and a call of a tool that would fail ends the run as `check_failed` before it starts: an unknown,
    /// missing or unsuitable argument. A run that is resumed from its record is not refused.
    Refuse,
}
