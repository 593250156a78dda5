//! Compares a reply with earlier ones, to recognize one that is sent twice.

use super::open_calls::Reply;
use super::state::{Refused, Service};
use serde_json::Value;

/// How a reply relates to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierReply {
    /// There is no earlier reply.
    None,
    /// The same reply was sent before.
    Same,
    /// A different reply was sent before.
    Other,
}

impl Service {
    /// Compares a reply with the stored replies to a call of the run, or to any of its calls if `call` is `None`.
    ///
    /// # Errors
    /// If the run does not exist or the store fails.
    pub async fn earlier_reply(
        &self,
        tenant: &str,
        run_id: &str,
        call: Option<&str>,
        reply: &Reply,
    ) -> Result<EarlierReply, Refused> {
        self.0.stored(tenant, run_id).await?;
        let replies = self.0.store.replies(run_id, 0).await?;
        let mut result = EarlierReply::None;
        let wanted =
            serde_json::to_string(&reply.without_phase()).map_err(|error| Refused::Fault(error.to_string()))?;
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        for known in replies.iter().filter(|known| call.is_none_or(|call| known.call == call)) {
            // A reply that is nested too deeply for a value is compared as text only.
            let is_same = known.body == wanted || value(&known.body).is_some_and(|known| value(&wanted) == Some(known));
            match is_same {
                true => return Ok(EarlierReply::Same),
                false => result = EarlierReply::Other,
            }
        }
        Ok(result)
    }
}
