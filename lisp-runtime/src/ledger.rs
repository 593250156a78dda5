//! The host's own record of the tool calls of a run, within limits of its own.

use crate::outcome::{CallStatus, LedgerEntry, Preview};
use crate::tool::Reply;
use std::time::Duration;

/// The most calls that are recorded one by one.
const ENTRIES: usize = 10_000;
/// The most bytes of arguments and results that are recorded.
const BYTES: usize = 8 << 20;

/// The record. Calls beyond its limits are counted.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<LedgerEntry>,
    bytes: usize,
    dropped: u64,
}

impl Ledger {
    /// Records a call before it is made: whatever happens then, the record knows of it. Answers its place.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &str) -> Option<usize> {
        if self.entries.len() >= ENTRIES || self.bytes >= BYTES {
            self.dropped += 1;
            return None;
        }
        let arguments = Preview::of(arguments);
        self.bytes += tool.len() + arguments.text.len();
        self.entries.push(LedgerEntry {
            name: tool.to_owned(),
            arguments,
            status: CallStatus::Unknown,
            result: None,
            error: None,
            duration_us: 0,
            worker: Vec::new(),
        });
        Some(self.entries.len() - 1)
    }

    /// Records a call that was answered from an earlier one's result.
    pub(crate) fn cached(&mut self, tool: &str, arguments: &str, result: &str) {
        if let Some(entry) = self.begin(tool, arguments).and_then(|place| self.entries.get_mut(place)) {
            let result = Preview::of(result);
            self.bytes += result.text.len();
            (entry.status, entry.result) = (CallStatus::Cached, Some(result));
        }
    }

    /// Records how a call ended.
    pub(crate) fn end(&mut self, place: Option<usize>, reply: &Reply, duration: Duration) {
        let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) else { return };
        entry.duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        match reply {
            Reply::Json(json) => (entry.status, entry.result) = (CallStatus::Ok, Some(Preview::of(json))),
            Reply::Echo => (entry.status, entry.result) = (CallStatus::Ok, Some(entry.arguments.clone())),
            Reply::Error(error) => {
                (entry.status, entry.error) = (CallStatus::Error, Some(Preview::of(&error.message).text));
            }
            Reply::Refused(_) | Reply::Late => {}
        }
        self.bytes += entry.result.as_ref().map_or(0, |result| result.text.len());
        self.bytes += entry.error.as_ref().map_or(0, String::len);
    }

    /// Takes the record: the calls, and how many more there were.
    pub(crate) fn take(&mut self) -> (Vec<LedgerEntry>, u64) {
        let taken = std::mem::take(self);
        (taken.entries, taken.dropped)
    }
}
