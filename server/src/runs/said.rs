//! What was said of a call before: a reply that comes again.

use super::desk::Reply;
use super::state::{Refused, Service};
use serde_json::Value;

/// What was said of a call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// The same.
    Same,
    /// Something else.
    Other,
}

impl Service {
    /// Compares a reply with those that the run has: to the call of this name, or to any.
    ///
    /// # Errors
    /// There is no such run, or the store fails.
    pub fn said(&self, tenant: &str, run_id: &str, call: Option<&str>, reply: &Reply) -> Result<Said, Refused> {
        self.0.stored(tenant, run_id)?;
        let replies = self.0.store.replies(run_id)?;
        let mut said = Said::Nothing;
        let wanted = serde_json::to_value(reply).unwrap_or_default();
        for known in replies.iter().filter(|known| call.is_none_or(|call| known.call == call)) {
            match serde_json::from_str::<Value>(&known.body).is_ok_and(|known| known == wanted) {
                true => return Ok(Said::Same),
                false => said = Said::Other,
            }
        }
        Ok(said)
    }
}
