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
    /// Compares a reply with the stored replies to those calls of the run that it may be for. `may_be_for` is asked with the
    /// name of a call and what it waited for.
    ///
    /// # Errors
    /// If the run does not exist or the store fails.
    pub async fn earlier_reply(
        &self,
        tenant: &str,
        run_id: &str,
        may_be_for: impl Fn(&str, &str) -> bool,
        reply: &Reply,
    ) -> Result<EarlierReply, Refused> {
        drop(self.0.stored(tenant, run_id).await?);
        let (store, id) = (self.0.store.clone(), run_id.to_owned());
        let replies = self.0.read(tenant, async move { store.replies(&id, 0).await }).await?;
        let mut result = EarlierReply::None;
        let wanted =
            serde_json::to_string(&reply.without_phase()).map_err(|error| Refused::Fault(error.to_string()))?;
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        for known in replies.value.iter().filter(|known| may_be_for(&known.call, &known.phase)) {
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
