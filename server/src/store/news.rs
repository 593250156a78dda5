//! News of a store: hints for those who wait. A lost one costs a moment, not a run: everyone who waits looks again from
//! time to time.

use std::sync::Arc;
use tokio::sync::broadcast;

/// How many news a slow subscriber may be behind.
const BACKLOG: usize = 4_096;

/// Something has changed in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A run can be claimed.
    Queued,
    /// A run has a reply or was cancelled: its attempt should look.
    Replied(Arc<str>),
    /// A run has events, open calls, another status or an answer.
    Changed(Arc<str>),
}

/// Creates the channel of news.
pub(super) fn channel() -> broadcast::Sender<News> {
    broadcast::Sender::new(BACKLOG)
}
