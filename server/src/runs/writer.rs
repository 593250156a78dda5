//! Writes what an attempt comes to into the store. The attempt does not wait for it, except before a tool call: by then
//! the journal must have the call.

use crate::store::{Batch, Lease, Renewed, Store, StoreError, StoredCall};
use crate::tools::Sends;
use async_trait::async_trait;
use lisp_runtime::record::CallState;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio_util::sync::CancellationToken;

/// How long lines and events are gathered if no call waits for them.
const GATHER: Duration = Duration::from_millis(5);
/// The pause after a failed write; it doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The writer of one attempt.
pub(crate) struct Writer {
    store: Arc<dyn Store>,
    lease: Lease,
    /// How long a lease lasts from its renewal.
    period: Duration,
    state: Mutex<State>,
    /// Held while a batch is written.
    writing: AsyncMutex<()>,
    wake: Notify,
    hurry: Notify,
    /// The number of changes that are stored.
    written: watch::Sender<u64>,
    failure: OnceLock<StoreError>,
    /// Cancelled with the failure.
    failed: CancellationToken,
    /// Cancelled when the service shuts down.
    draining: CancellationToken,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("lease", &self.lease).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    batch: Batch,
    /// The numbers of the next line and event.
    line: u64,
    event: u64,
    /// The number of changes so far, and of those that are in a batch which is being written or is stored.
    changes: u64,
    is_closed: bool,
    /// The longest time that a call has waited to be made.
    longest_wait: Duration,
    /// Since when each of the calls waits that wait now.
    pending_since: Vec<Instant>,
    /// The number of calls that are not made because the service shuts down.
    held: usize,
    /// Calls that were dropped before they were made. Their starts may be stored.
    unmade: Vec<String>,
    /// By this process's clock; the store's decides.
    valid_until: Instant,
}

/// How much of a run is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) lines: u64,
    pub(crate) events: u64,
}

/// The writer does not write any more: its attempt has ended.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the attempt has ended")]
pub(crate) struct Closed;

impl Writer {
    /// Creates the writer of an attempt. `valid_until` is when its lease ends.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        lease: Lease,
        stored: Stored,
        (period, valid_until): (Duration, Instant),
        draining: CancellationToken,
    ) -> Arc<Self> {
        let Stored { lines, events } = stored;
        let state = State {
            batch: Batch::default(),
            line: lines + 1,
            event: events + 1,
            changes: 0,
            is_closed: false,
            longest_wait: Duration::ZERO,
            pending_since: Vec::new(),
            held: 0,
            unmade: Vec::new(),
            valid_until,
        };
        Arc::new(Writer {
            store,
            lease,
            period,
            state: Mutex::new(state),
            writing: AsyncMutex::default(),
            wake: Notify::new(),
            hurry: Notify::new(),
            written: watch::Sender::new(0),
            failure: OnceLock::new(),
            failed: CancellationToken::new(),
            draining,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), Closed> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Closed);
        }
        if state.batch.is_empty() {
            (state.batch.first_line, state.batch.first_event) = (state.line, state.event);
        }
        change(&mut state);
        state.changes += 1;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Adds a line of the journal.
    pub(crate) fn line(&self, line: &str) -> Result<(), Closed> {
        self.change(|state| {
            state.batch.lines.push(line.to_owned());
            state.line += 1;
        })
    }

    /// Adds an event. One after the end of the attempt is dropped.
    pub(crate) fn event(&self, kind: &'static str, data: Arc<str>) {
        let _ = self.change(|state| {
            state.batch.events.push((kind, data));
            state.event += 1;
        });
    }

    /// Opens a call.
    pub(crate) fn open(&self, call: StoredCall) {
        let _ = self.change(|state| state.batch.opened.push(call));
    }

    /// Closes a call.
    pub(crate) fn close_call(&self, call: &str, phase: &str) {
        let _ = self.change(|state| {
            let is_it = |open: &StoredCall| open.call == call && open.phase == phase;
            match state.batch.opened.iter().position(is_it) {
                // It was opened in the same batch.
                Some(at) => drop(state.batch.opened.remove(at)),
                None => state.batch.closed.push((call.to_owned(), phase.to_owned())),
            }
        });
    }

    /// Notes that the lease was renewed at a moment.
    pub(crate) fn renewed(&self, at: Instant) {
        let mut state = self.lock();
        state.valid_until = state.valid_until.max(at + self.period);
    }

    /// Writes batches until writing fails for good.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            self.wake.notified().await;
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                () = self.hurry.notified() => {}
            }
            let _writing = self.writing.lock().await;
            let (batch, changes) = {
                let mut state = self.lock();
                if state.is_closed {
                    return;
                }
                (std::mem::take(&mut state.batch), state.changes)
            };
            if batch.is_empty() {
                self.written.send_replace(changes);
                continue;
            }
            match patiently(|| self.store.write(&self.lease, batch.clone())).await {
                Ok(()) => drop(self.written.send_replace(changes)),
                Err(error) => return self.fail(error),
            }
        }
    }

    fn fail(&self, error: StoreError) {
        let _ = self.failure.set(error);
        self.failed.cancel();
    }

    /// Returns when writing has failed for good, with the reason.
    pub(crate) async fn failed(&self) -> StoreError {
        self.failed.cancelled().await;
        self.failure.get().cloned().unwrap_or(StoreError::LeaseLost)
    }

    /// Returns when everything so far is stored and the lease is valid for at least a third of its period. While the
    /// service shuts down, it does not return: the call is not made in this attempt.
    ///
    /// # Errors
    /// If writing has failed for good.
    pub(crate) async fn ready_to_call(&self, call: String) -> Result<(), StoreError> {
        let mut pending = PendingStart::new(self, call);
        tokio::select! {
            biased;
            () = self.draining.cancelled() => match pending.hold().await {},
            stored = self.wait_until_stored() => stored?,
        }
        pending.call = None;
        Ok(())
    }

    /// Returns the number of calls that have started and are not made, because the service shuts down.
    pub(crate) fn held(&self) -> usize {
        self.lock().held
    }

    async fn wait_until_stored(&self) -> Result<(), StoreError> {
        let changes = self.lock().changes;
        self.hurry.notify_one();
        let mut written = self.written.subscribe();
        while *written.borrow_and_update() < changes {
            tokio::select! {
                // The sender lives as long as this.
                _ = written.changed() => {}
                error = self.failed() => return Err(error),
            }
        }
        let margin = self.period / 3;
        if self.lock().valid_until.saturating_duration_since(Instant::now()) >= margin {
            return Ok(());
        }
        let at = Instant::now();
        match patiently(|| self.store.renew(std::slice::from_ref(&self.lease), self.period)).await?.first() {
            Some(Renewed::Held { .. }) => {
                self.renewed(at);
                Ok(())
            }
            _ => {
                self.fail(StoreError::LeaseLost);
                Err(StoreError::LeaseLost)
            }
        }
    }

    /// Returns the longest time that a call has waited to be made, for the store. Calls that have ended with their run may
    /// still wait.
    pub(crate) fn longest_wait(&self) -> Duration {
        let state = self.lock();
        let pending = state.pending_since.iter().min().map(Instant::elapsed);
        pending.unwrap_or_default().max(state.longest_wait)
    }

    /// Writes down which calls were not made though their starts may be stored, so that they are not asked about.
    pub(crate) fn note_unmade(&self) {
        let unmade = std::mem::take(&mut self.lock().unmade);
        for call in unmade {
            let line = serde_json::json!({ "call": call, "state": CallState::Asked });
            // Open: the attempt has just ended.
            let _ = self.line(&format!("{line}\n"));
        }
    }

    /// Ends the writing. Returns what is not written yet, and how much of the run is stored once it is.
    pub(crate) async fn close(&self) -> (Batch, Stored) {
        self.lock().is_closed = true;
        // Wakes the task that writes, so that it ends.
        self.wake.notify_one();
        self.hurry.notify_one();
        let _writing = self.writing.lock().await;
        let mut state = self.lock();
        let stored = Stored { lines: state.line - 1, events: state.event - 1 };
        (std::mem::take(&mut state.batch), stored)
    }
}

/// A call that waits until its start is stored, or until it is dropped.
struct PendingStart<'a> {
    writer: &'a Writer,
    since: Instant,
    /// The call; `None` once it may be made.
    call: Option<String>,
    is_held: bool,
}

impl<'a> PendingStart<'a> {
    fn new(writer: &'a Writer, call: String) -> Self {
        let since = Instant::now();
        writer.lock().pending_since.push(since);
        PendingStart { writer, since, call: Some(call), is_held: false }
    }

    /// Holds the call until it is dropped.
    async fn hold(&mut self) -> Infallible {
        self.is_held = true;
        self.writer.lock().held += 1;
        std::future::pending().await
    }
}

impl Drop for PendingStart<'_> {
    fn drop(&mut self) {
        let mut state = self.writer.lock();
        state.held -= usize::from(self.is_held);
        state.unmade.extend(self.call.take());
        if let Some(at) = state.pending_since.iter().position(|since| *since == self.since) {
            state.pending_since.swap_remove(at);
        }
        state.longest_wait = state.longest_wait.max(self.since.elapsed());
    }
}

#[async_trait]
impl Sends for Writer {
    async fn end(&self) {
        self.draining.cancelled().await;
    }

    async fn hold(&self, call: String) -> Infallible {
        PendingStart::new(self, call).hold().await
    }
}

/// Tries an operation of the store until it succeeds or fails for good.
pub(crate) async fn patiently<T, F>(mut operation: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        match operation().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the store is not available; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
            done => return done,
        }
    }
}
