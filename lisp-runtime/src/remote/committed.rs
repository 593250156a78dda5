//! What the host keeps of a session whose machine is elsewhere.

use super::report::{KeptChanges, Report};
use crate::api::saved::{SavedText, text_of};
use lisp_core::Error;
use std::sync::Arc;

/// The definitions of a session and the results of its last turns, as last reported by its guest half. Saving the
/// session writes them. Clones share the texts.
#[derive(Clone, Debug, Default)]
pub struct CommittedSession {
    definitions: Option<Result<Arc<str>, Error>>,
    history: Option<Result<Arc<str>, Error>>,
    set_ups: usize,
}

impl CommittedSession {
    /// Takes the changes from a report.
    pub fn take(&mut self, report: &mut Report) {
        let Some(KeptChanges { definitions, history, set_ups }) = report.kept.take() else { return };
        for (part, changed) in [(&mut self.definitions, definitions), (&mut self.history, history)] {
            if let Some(changed) = changed {
                *part = Some(changed.map(Into::into).map_err(Error::from));
            }
        }
        self.set_ups = usize::try_from(set_ups).unwrap_or(usize::MAX);
    }

    /// Returns the text of the saved session after `turns` turns, for
    /// [`Engine::load_session`](crate::Engine::load_session). `None` if nothing was reported yet.
    ///
    /// # Errors
    /// Why the guest half could not write it.
    pub fn text(&self, turns: u64) -> Option<Result<String, Error>> {
        let (definitions, history) = (self.definitions.as_ref()?, self.history.as_ref()?);
        Some(match (definitions, history) {
            (Ok(definitions), Ok(history)) => Ok(text_of(turns, self.set_ups, definitions, history)),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        })
    }

    /// Returns the number of turns of a saved session, or 0 if the text is not one.
    pub fn turns_of(text: &str) -> u64 {
        SavedText::parse(text, usize::MAX).map_or(0, |saved| saved.turns)
    }

    /// Returns whether nothing was reported yet.
    pub fn is_empty(&self) -> bool {
        self.definitions.is_none()
    }

    /// Returns the bytes of its texts, without those shared with another.
    pub fn bytes_beside(&self, other: &CommittedSession) -> usize {
        let part = |a: &Option<Result<Arc<str>, Error>>, b: &Option<Result<Arc<str>, Error>>| match (a, b) {
            (Some(Ok(a)), Some(Ok(b))) if Arc::ptr_eq(a, b) => 0,
            (Some(Ok(a)), _) => a.len(),
            _ => 0,
        };
        part(&self.definitions, &other.definitions).saturating_add(part(&self.history, &other.history))
    }
}
