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
        let wanted = serde_json::to_string(reply).map_err(|error| Refused::Fault(error.to_string()))?;
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        for known in replies.iter().filter(|known| call.is_none_or(|call| known.call == call)) {
            // One that is nested deeply is no value; as text it is the same, or may be.
            let is_same = known.body == wanted || value(&known.body).is_some_and(|known| value(&wanted) == Some(known));
            match is_same {
                true => return Ok(Said::Same),
                false => said = Said::Other,
            }
        }
        Ok(said)
    }
}
