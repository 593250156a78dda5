//! Data sets for a guest half.

use crate::api::input::{DataSet, Source};
use crate::terms::keys::Keys;
use crate::terms::outcome::Problem;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A data set as a message to another process: its source and its key setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SentSet<'a>(Cow<'a, Source<'a>>, Keys);

impl DataSet {
    /// Returns the set as a message. `None` if this process received the set itself: its text is not kept.
    pub fn sent(&self) -> Option<SentSet<'_>> {
        self.source.as_deref().map(|source| SentSet(Cow::Borrowed(source), self.keys))
    }
}

impl SentSet<'_> {
    /// Imports the set without keeping its text. It takes the same bytes as in its origin, where its size was checked.
    ///
    /// # Errors
    /// The text is not JSON, which never happens for a set from [`DataSet::sent`].
    pub fn import(&self) -> Result<DataSet, Box<Problem>> {
        self.import_within(usize::MAX)
    }

    pub(super) fn import_within(&self, ceiling: usize) -> Result<DataSet, Box<Problem>> {
        DataSet::import(&self.0, self.1, ceiling)
    }
}

/// A data set of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum SetOfJob<'a> {
    /// The guest half already has it, at this index.
    Known(usize),
    /// It is sent with the job.
    Sent(SentSet<'a>),
}

impl<'a> SetOfJob<'a> {
    /// Returns a set as it is sent to a guest half that has those of `known`.
    pub(super) fn of(set: &'a DataSet, known: &[DataSet]) -> Option<Self> {
        match known.iter().position(|known| known.is(set)) {
            Some(at) => Some(SetOfJob::Known(at)),
            None => set.sent().map(SetOfJob::Sent),
        }
    }
}
