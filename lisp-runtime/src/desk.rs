//! Where the tool calls of a run are taken: the ledger, the cache and the count.

use crate::ledger::Ledger;
use crate::outcome::LedgerEntry;
use crate::tool::{Reply, Tool};
use lisp_core::{Error, Reason};
use std::collections::HashMap;
use std::time::Duration;

/// The most bytes of arguments and results that the cache of a run keeps; more is not kept, and called again.
const CACHE_BYTES: usize = 16 << 20;

/// What becomes of a call.
pub(crate) enum Admission {
    /// An earlier call's result answers it.
    Cached(String),
    /// The run may not make it.
    Refused(Error),
    /// It is in the ledger and to be made.
    Made(Ticket),
}

/// A call under way.
pub(crate) struct Ticket {
    /// Its place in the ledger.
    entry: Option<usize>,
    /// Its name and arguments, if the result is to be kept.
    cache_key: Option<(String, String)>,
}

/// The record of a run's tool calls and what follows from it.
#[derive(Default)]
pub(crate) struct Desk {
    ledger: Ledger,
    calls: u64,
    /// The most calls; 0 is no limit.
    limit: u64,
    /// Results of cached tools, by name and arguments.
    cache: HashMap<(String, String), String>,
    cache_bytes: usize,
}

impl Desk {
    /// A desk that lets so many calls pass; 0 is no limit.
    pub(crate) fn new(limit: u64) -> Self {
        Desk { limit, ..Desk::default() }
    }

    /// Answers a call from the cache, refuses it, or enters it into the ledger.
    pub(crate) fn admit(&mut self, tool: &Tool, arguments: &str) -> Admission {
        let cache_key = tool.cached.then(|| (tool.name.clone(), arguments.to_owned()));
        if let Some(result) = cache_key.as_ref().and_then(|key| self.cache.get(key)) {
            self.ledger.cached(&tool.name, arguments, result);
            return Admission::Cached(result.clone());
        }
        let limit = self.limit;
        if limit > 0 && self.calls >= limit {
            let error = Error::new(Reason::ToolCallLimitExceeded, format!("a run may call tools {limit} times"))
                .hint("call tools less often, for example once for all rows, or raise the limit tool_calls")
                .detail("limit", limit);
            return Admission::Refused(error);
        }
        self.calls += 1;
        Admission::Made(Ticket { entry: self.ledger.begin(&tool.name, arguments), cache_key })
    }

    /// Records how a call ended. A result that came in time is kept for the next call with the same arguments, as long
    /// as there is room.
    pub(crate) fn settle(&mut self, ticket: Ticket, reply: &Reply, spent: Duration) {
        self.ledger.end(ticket.entry, reply, spent);
        let (Some((name, arguments)), Reply::Json(json)) = (ticket.cache_key, reply) else { return };
        let bytes = arguments.len() + json.len();
        if self.cache_bytes.saturating_add(bytes) <= CACHE_BYTES {
            self.cache_bytes += bytes;
            self.cache.insert((name, arguments), json.clone());
        }
    }

    /// Calls made so far, cached ones not counted.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Takes the ledger: the calls, and how many more there were.
    pub(crate) fn take_ledger(&mut self) -> (Vec<LedgerEntry>, u64) {
        self.ledger.take()
    }
}
