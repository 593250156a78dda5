//! Rules that are the same for every store.

use super::{End, RunStatus, StoreError, StoredCall};

/// The kind of the events that are printed lines.
pub(super) const PRINT: &str = "print";
/// How the questions about calls start that may have been made after the backup that the store came from.
pub(crate) const RESTORED: &str = "The store was restored from a backup, and this may have been done since";

/// Returns the status that clients see.
pub(super) fn shown(status: RunStatus, open_calls: u64) -> RunStatus {
    match status {
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting if open_calls > 0 => RunStatus::Waiting,
        status => status,
    }
}

/// Returns the name of an end, which tells whether an attempt has ended this way before.
pub(super) fn end_name(end: &End) -> &'static str {
    match end {
        End::Done(_) => "done",
        End::Suspended(_) => "suspended",
        End::Requeued { .. } => "requeued",
        End::Stuck(_) => "stuck",
    }
}

/// Returns whether an attempt that would end goes on instead: there is something that it has not seen. A run that was
/// cancelled neither waits nor sticks, so no cancellation is lost.
pub(super) fn has_news(end: &End, cancelled: bool, replies: u64) -> bool {
    match end {
        End::Suspended(seen) => cancelled || replies > *seen,
        End::Stuck(_) => cancelled,
        End::Done(_) | End::Requeued { .. } => false,
    }
}

/// Returns how many things of a batch are stored already, or `None` if they do not follow those that are stored.
///
/// `first` is the number of the first one, from 1.
pub(super) fn known(stored: u64, first: u64, written: usize) -> Option<usize> {
    let written = u64::try_from(written).ok()?;
    if written == 0 {
        return Some(0);
    }
    let known = stored.checked_add(1)?.checked_sub(first)?.min(written);
    if first == 0 { None } else { usize::try_from(known).ok() }
}

/// Returns the digest that is stored with a line of a journal: FNV-1a, to find damage.
pub(super) fn digest(line: &str) -> i64 {
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    line.bytes().fold(0xcbf2_9ce4_8422_2325, fold).cast_signed()
}

/// Returns the bytes of an open call in a page of runs.
pub(super) fn call_bytes(call: &StoredCall) -> usize {
    let StoredCall { call, phase, number: _, tool, arguments, question } = call;
    call.len() + phase.len() + tool.len() + arguments.len() + question.as_ref().map_or(0, String::len)
}

/// The run that was to be stored exists.
pub(super) fn exists(what: &str, id: &str) -> StoreError {
    StoreError::Failed(format!("the {what} {id} exists already: use a new ID"))
}

/// The events of a batch do not follow those that are stored.
pub(super) fn events_out_of_order(run_id: &str, stored: u64, written: u64) -> StoreError {
    StoreError::Failed(format!("the run {run_id} has {stored} events, and event {written} was written next"))
}

/// The store was closed.
pub(super) fn closed() -> StoreError {
    StoreError::Failed("the store is closed: open it again".to_owned())
}
