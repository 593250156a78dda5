//! Data sets for a guest half.

use crate::api::input::{DataSet, Source};
use crate::terms::keys::Keys;
use crate::terms::outcome::Problem;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A data set on its way to another process, as data: what it is made of, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SentSet<'a>(Cow<'a, Source<'a>>, Keys);

impl DataSet {
    /// What another process makes the same set of. Nothing, when this one was made so itself: its text has not been kept.
    pub fn sent(&self) -> Option<SentSet<'_>> {
        self.source.as_deref().map(|source| SentSet(Cow::Borrowed(source), self.keys))
    }
}

impl SentSet<'_> {
    /// Makes the set, which takes the same bytes as where it came from, without its text. That it is not too large was seen
    /// there.
    ///
    /// # Errors
    /// It comes from nowhere: its text is not JSON.
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
    /// The guest half has it already, at this place
    Known(usize),
    /// It goes with the job
    Sent(SentSet<'a>),
}

impl<'a> SetOfJob<'a> {
    /// A set as it goes to a guest half that has those of `known`.
    pub(super) fn of(set: &'a DataSet, known: &[DataSet]) -> Option<Self> {
        match known.iter().position(|known| known.is(set)) {
            Some(at) => Some(SetOfJob::Known(at)),
            None => set.sent().map(SetOfJob::Sent),
        }
    }
}
