//! The ledger: the host's own report of the tool calls of a run, within limits.

use super::cache::CallDigest;
use super::tool::Reply;
use crate::terms::outcome::{CallStatus, LedgerEntry, Preview, Problem};
use lisp_core::Reason;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The maximum number of calls with an entry.
const ENTRIES: usize = 10_000;
/// The maximum bytes of recorded arguments and results.
const BYTES: usize = 8 << 20;

/// A ledger. Calls beyond its limits are only counted.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    bytes: usize,
    dropped: u64,
    /// Number of calls beyond the limits that were made.
    dropped_made: u64,
    /// The index of the last entry; `None` if there was no room for it.
    last: Option<usize>,
    /// Discarded calls of workers: a call before theirs failed.
    given_up: Vec<Entry>,
}

/// The content of a ledger.
pub(crate) struct TakenLedger {
    pub(crate) lines: Vec<LedgerEntry>,
    pub(crate) dropped: u64,
    /// Number of calls that were made.
    pub(crate) made: u64,
    pub(crate) given_up: Vec<LedgerEntry>,
    /// The tools of calls that write, and of which nobody knows whether they were done.
    in_doubt: BTreeSet<String>,
}

impl TakenLedger {
    /// The maximum number of tools that a hint names.
    const NAMES: usize = 3;

    /// Adds to the error of a run that calls which write were in progress when it ended: made again, they may happen twice.
    /// Only to an error from outside: that of the program itself does not depend on how far its workers were.
    pub(crate) fn in_doubt(&self, mut problem: Box<Problem>) -> Box<Problem> {
        let is_from_outside = matches!(problem.error.reason, Reason::Timeout | Reason::Cancelled | Reason::HostFault);
        if self.in_doubt.is_empty() || !is_from_outside {
            return problem;
        }
        let names: Vec<String> = self.in_doubt.iter().take(Self::NAMES).map(|name| format!("tool/{name}")).collect();
        let more = self.in_doubt.len() - names.len();
        let names = names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
        let (are, they) = if self.in_doubt.len() == 1 { ("was", "it was") } else { ("were", "they were") };
        let note = format!(
            "{names} {are} in progress; it is unknown whether {they} done: find out before you make the call again"
        );
        problem.error.hint = Some(match problem.error.hint.take() {
            Some(hint) => format!("{note}; {hint}"),
            None => note,
        });
        problem
    }
}

#[derive(Debug)]
struct Entry {
    line: LedgerEntry,
    /// The cache key of the result, for a cached tool.
    key: Option<CallDigest>,
    /// The number of the call; 0 if it was served from the result of an earlier one.
    number: u64,
    /// Whether making the call again may have another effect.
    writes: bool,
    /// True while the call waits for approval.
    waits: Option<WaitsForApproval>,
}

/// True while a call waits for approval: it is not made.
pub(crate) type WaitsForApproval = Arc<AtomicBool>;

impl Entry {
    /// Returns whether the tool was called.
    fn is_made(&self) -> bool {
        !self.line.refused && self.line.status != CallStatus::Cached
    }

    /// Returns whether nobody knows if the call was done, and it may have changed something.
    fn is_in_doubt(&self) -> bool {
        self.writes && self.line.status == CallStatus::Unknown
    }

    /// The line of a run that has ended.
    fn settled(mut self) -> Self {
        let waits = self.waits.take().is_some_and(|waits| waits.load(Ordering::Relaxed));
        if waits && self.line.status == CallStatus::Unknown {
            (self.line.status, self.line.refused) = (CallStatus::Error, true);
            self.line.error = Some("the call was not made: the run ended while it waited for approval".to_owned());
        }
        self
    }

    fn bytes(&self) -> usize {
        let LedgerEntry { name, arguments, result, error, worker, .. } = &self.line;
        name.len()
            + arguments.text.len()
            + result.as_ref().map_or(0, |result| result.text.len())
            + error.as_ref().map_or(0, String::len)
            + std::mem::size_of_val(&worker[..])
    }
}

impl Ledger {
    /// Adds a call before it is made, so that the ledger has it whatever happens then. Returns its index.
    pub(crate) fn begin(
        &mut self,
        tool: &str,
        arguments: &str,
        worker: Vec<u32>,
        key: Option<CallDigest>,
        number: u64,
    ) -> Option<usize> {
        let line = LedgerEntry {
            name: tool.to_owned(),
            arguments: Preview::of(arguments),
            status: CallStatus::Unknown,
            refused: false,
            result: None,
            error: None,
            duration_us: 0,
            worker,
        };
        self.push(Entry { line, key, number, writes: false, waits: None })
    }

    fn push(&mut self, entry: Entry) -> Option<usize> {
        if self.entries.len() >= ENTRIES || self.bytes >= BYTES {
            self.dropped += 1;
            self.dropped_made += u64::from(entry.is_made());
            self.last = None;
            return None;
        }
        self.bytes += entry.bytes();
        self.entries.push(entry);
        self.last = Some(self.entries.len() - 1);
        self.last
    }

    /// Adds a call that was served from the result of an earlier one.
    pub(crate) fn cached(&mut self, tool: &str, arguments: &str, result: &str, worker: Vec<u32>, key: CallDigest) {
        let place = self.begin(tool, arguments, worker, Some(key), 0);
        if let Some(Entry { line, .. }) = place.and_then(|place| self.entries.get_mut(place)) {
            let result = Preview::of(result);
            self.bytes += result.text.len();
            (line.status, line.result) = (CallStatus::Cached, Some(result));
        }
    }

    /// Adds a call that was not made, and why.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Preview, error: &str, reason: Reason, worker: Vec<u32>) {
        let line = LedgerEntry {
            name: tool.to_owned(),
            arguments,
            status: CallStatus::Error,
            refused: true,
            result: None,
            error: Some(Preview::of(error).text),
            duration_us: 0,
            worker,
        };
        let number = if reason == Reason::ResultLimitExceeded { LedgerEntry::TOO_LONG } else { LedgerEntry::REFUSED };
        self.push(Entry { line, key: None, number, writes: false, waits: None });
    }

    /// Notes whether making a call again may have another effect, and what is true while it waits for approval.
    pub(crate) fn note(&mut self, place: Option<usize>, writes: bool, waits: Option<WaitsForApproval>) {
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            (entry.writes, entry.waits) = (writes, waits);
        }
    }

    /// Moves the last entry to an index.
    pub(crate) fn move_last(&mut self, place: usize) {
        if let Some(last) = self.entries.pop() {
            self.entries.insert(place.min(self.entries.len()), last);
        }
    }

    /// Counts calls that have no entry.
    pub(crate) fn count(&mut self, more: u64) {
        self.dropped = self.dropped.saturating_add(more);
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Notes how a call ended.
    pub(crate) fn end(&mut self, place: Option<usize>, reply: &Reply, duration: Duration) {
        let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) else { return };
        let before = self.bytes - entry.bytes();
        let line = &mut entry.line;
        line.refused = matches!(reply, Reply::NotMade { .. } | Reply::Refused(_));
        line.duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        match reply {
            Reply::Json(json) => (line.status, line.result) = (CallStatus::Ok, Some(Preview::of(json))),
            Reply::Echo => (line.status, line.result) = (CallStatus::Ok, Some(line.arguments.clone())),
            Reply::Error(error) => {
                (line.status, line.error) = (reply.status(), Some(Preview::of(&error.message).text));
            }
            Reply::NotMade { .. } => (line.status, line.error) = (CallStatus::Error, reply.why_not_made()),
            Reply::Refused(error) => {
                (line.status, line.error) = (CallStatus::Error, Some(Preview::of(&error.message).text));
            }
            Reply::LeftOut(_) | Reply::Late => {}
        }
        self.bytes = before + entry.bytes();
    }

    /// Notes that a call was made with other arguments than the program passed.
    pub(crate) fn rewrite(&mut self, place: Option<usize>, arguments: Preview) {
        let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) else { return };
        let before = self.bytes - entry.bytes();
        entry.line.arguments = arguments;
        self.bytes = before + entry.bytes();
    }

    /// Adds the ledger of a worker.
    pub(crate) fn absorb(&mut self, other: Ledger) {
        for entry in other.entries {
            self.push(entry);
        }
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.dropped_made = self.dropped_made.saturating_add(other.dropped_made);
        self.keep_given_up(other.given_up);
    }

    /// Adds the ledger of a worker whose calls were discarded.
    pub(crate) fn give_up(&mut self, other: Ledger) {
        self.keep_given_up(other.entries);
        self.keep_given_up(other.given_up);
    }

    /// Returns whether it has no calls, not even dropped ones.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.dropped == 0
    }

    fn keep_given_up(&mut self, entries: Vec<Entry>) {
        let room = ENTRIES.saturating_sub(self.given_up.len());
        self.given_up.extend(entries.into_iter().take(room));
    }

    /// Moves the calls with these numbers to the discarded ones.
    pub(crate) fn part(&mut self, given_up: &[u64]) {
        let given_up: HashSet<u64> = given_up.iter().copied().collect();
        let (parted, kept) =
            std::mem::take(&mut self.entries).into_iter().partition(|it| given_up.contains(&it.number));
        self.entries = kept;
        self.bytes = self.entries.iter().map(Entry::bytes).sum();
        self.keep_given_up(parted);
    }

    /// Returns the numbers of the discarded calls.
    pub(crate) fn numbers_given_up(&self) -> Vec<u64> {
        self.given_up.iter().map(|entry| entry.number).filter(|&number| number < LedgerEntry::TOO_LONG).collect()
    }

    /// Returns the bytes of the entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the number of the last entry.
    pub(crate) fn number_last(&mut self, number: u64) {
        if let Some(entry) = self.last.and_then(|last| self.entries.get_mut(last)) {
            entry.number = number;
        }
    }

    /// Returns the numbers of the calls, in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.number).collect()
    }

    /// Sorts the calls in the order of these numbers; others come last.
    pub(crate) fn sort_by_numbers(&mut self, numbers: &[u64]) {
        let places: HashMap<u64, usize> = numbers.iter().enumerate().map(|(place, &number)| (number, place)).collect();
        self.entries.sort_by_key(|entry| places.get(&entry.number).copied().unwrap_or(usize::MAX));
    }

    /// Takes the content. Among equal calls of a cached tool, the first in program order is shown as the one that was
    /// made, whichever worker made it.
    pub(crate) fn take(&mut self) -> TakenLedger {
        let taken = std::mem::take(self);
        let mut first: HashMap<CallDigest, usize> = HashMap::new();
        let mut lines: Vec<LedgerEntry> = Vec::with_capacity(taken.entries.len());
        let entries: Vec<Entry> = taken.entries.into_iter().map(Entry::settled).collect();
        let given_up: Vec<Entry> = taken.given_up.into_iter().map(Entry::settled).collect();
        let in_doubt = entries.iter().chain(&given_up).filter(|entry| entry.is_in_doubt());
        let in_doubt = in_doubt.map(|entry| entry.line.name.clone()).collect();
        for (i, Entry { line, key, .. }) in entries.into_iter().enumerate() {
            lines.push(line);
            let Some(key) = key else { continue };
            match (lines[i].status, first.get(&key)) {
                (CallStatus::Cached | CallStatus::Ok, None) => {
                    // The call was made by a worker whose calls were discarded, or in an earlier attempt of the run.
                    lines[i].status = CallStatus::Ok;
                    first.insert(key, i);
                }
                (CallStatus::Ok, Some(&earlier)) => {
                    let duration = std::mem::take(&mut lines[i].duration_us);
                    lines[i].status = CallStatus::Cached;
                    lines[earlier].duration_us = lines[earlier].duration_us.max(duration);
                }
                _ => {}
            }
        }
        let made = lines.iter().filter(|line| !line.refused && line.status != CallStatus::Cached).count() as u64;
        TakenLedger {
            lines,
            dropped: taken.dropped,
            made: made.saturating_add(taken.dropped_made),
            given_up: given_up.into_iter().map(|entry| entry.line).collect(),
            in_doubt,
        }
    }
}
