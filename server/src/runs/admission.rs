//! Admission: slots, queues and rates of the service and its tenants.

use crate::config::{Config, Tenant};
use crate::store::{Room, Usage};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use lisp_runtime::{Amounts, Budget, Limits};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The error for a request that cannot run now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Busy {
    /// What is full, its size, and how to raise it.
    pub why: String,
    /// When to try again.
    pub retry_after: Duration,
}

/// The runtime state of a tenant.
#[derive(Debug)]
pub struct TenantState {
    /// The tenant's name.
    pub name: String,
    pub(crate) ceiling: Limits,
    pub(crate) budget: Option<Budget>,
    /// Whether its runs share processes.
    pub(crate) domain: bool,
    /// The names of its tools of the service whose calls need approval, as programs write them.
    pub(crate) asking: BTreeSet<String>,
    free_slots: Arc<Semaphore>,
    rate: Option<DefaultDirectRateLimiter>,
    queue: usize,
    waiting: AtomicUsize,
    /// Whether durable runs may wait for a slot of the tenant.
    is_wanted: AtomicBool,
    turn: Arc<Turn>,
    bodies: BodyBound,
    responses: BodyBound,
    /// Reads of whole runs and of lists, which may be large.
    reads: Arc<Semaphore>,
    requests: RequestBound,
    approver_requests: RequestBound,
    max: usize,
    /// What the tenant has in the store.
    pub(crate) stored: Stored,
}

/// A slot for a run, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _of_tenant: OwnedSemaphorePermit,
    _of_service: OwnedSemaphorePermit,
    /// Dropped after the permits.
    _freed: SlotFreed,
}

/// Tells the worker that a slot is free.
#[derive(Debug)]
struct SlotFreed(Arc<Notify>);

impl Drop for SlotFreed {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The turn of a tenant's durable runs in the line for its slots, so that runs whose callers wait leave them one.
#[derive(Debug, Default)]
struct Turn {
    /// Whether a task waits in the line.
    is_waiting: AtomicBool,
    /// The slot, once it is their turn.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits in the line, if nothing does yet. Tells the worker when there is a slot.
    fn wait(self: &Arc<Self>, free_slots: &Arc<Semaphore>, freed: &Arc<Notify>) {
        if self.is_waiting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (turn, free_slots, freed) = (self.clone(), free_slots.clone(), freed.clone());
        tokio::spawn(async move {
            let permit = permit(&free_slots).await;
            *turn.permit.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
            turn.is_waiting.store(false, Ordering::Release);
            freed.notify_one();
        });
    }
}

impl TenantState {
    pub(crate) fn new(config: &Config, tenant: &Tenant, asking: BTreeSet<String>) -> Self {
        let rate = tenant.runs_per_second.and_then(|rate| {
            let every = Duration::try_from_secs_f64(rate.recip()).ok()?;
            let burst = NonZeroU32::new(tenant.burst).unwrap_or(NonZeroU32::MIN);
            Some(DefaultDirectRateLimiter::direct(Quota::with_period(every)?.allow_burst(burst)))
        });
        let budget = tenant.budget.as_ref().map(|budget| Budget::new(budget.amounts));
        let max = tenant.concurrency.unwrap_or(config.service.concurrency);
        let max_requests = config.max_requests_of(tenant);
        TenantState {
            name: tenant.name.clone(),
            ceiling: config.ceiling_of(tenant),
            budget,
            domain: tenant.domain,
            asking,
            free_slots: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            rate,
            queue: tenant.queue.unwrap_or(config.service.queue),
            waiting: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            turn: Arc::default(),
            bodies: BodyBound::new(config.service.max_bodies_bytes),
            responses: BodyBound::new(config.service.max_bodies_bytes),
            reads: Arc::new(Semaphore::new(READS)),
            requests: RequestBound::new(max_requests),
            // Approvers can still decide while the tenant's own requests take all of theirs.
            approver_requests: RequestBound::new((max_requests / 4).max(1)),
            max,
            stored: Stored::default(),
        }
    }

    /// Gives back the slot that its durable runs have waited for, if they have one: they cannot use it now.
    pub(crate) fn pass_turn(&self) {
        drop(self.turn.take());
        self.is_wanted.store(false, Ordering::Relaxed);
    }

    /// Takes one run from the tenant's rate, or returns when to try again.
    pub(crate) fn check_rate(&self) -> Result<(), Busy> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.check().map_err(|until| Busy {
            why: "more runs a second than runs_per_second of the tenant allows; send it again after Retry-After"
                .to_owned(),
            retry_after: until.wait_time_from(DefaultClock::default().now()),
        })
    }

    /// Counts a request in progress, until the returned value is dropped. Requests of approvers are counted apart.
    ///
    /// # Errors
    /// If the tenant has `max_requests` requests in progress.
    pub(crate) fn begin_request(&self, is_approver: bool) -> Result<RequestInProgress, Busy> {
        match is_approver {
            false => self.requests.take("the tenant has"),
            true => self.approver_requests.take("the tenant's approvers have"),
        }
    }

    /// Returns whether any of its runs waits for one of its slots.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0 || self.is_wanted.load(Ordering::Relaxed)
    }

    /// The maximum number of durable runs that are running or queued.
    pub(crate) fn max_queued(&self) -> u64 {
        self.max.saturating_add(self.queue) as u64
    }

    /// The error for more durable runs than that.
    pub(crate) fn queue_is_full(&self) -> Busy {
        Busy {
            why: format!(
                "the tenant has {} running and {} queued runs; try again later, or raise queue of the tenant",
                self.max, self.queue
            ),
            retry_after: Duration::from_secs(1),
        }
    }

    pub(crate) fn refill(&self, amounts: &Amounts) {
        if let Some(budget) = &self.budget {
            budget.refill_to(amounts);
        }
    }
}

/// A bound on the bytes of request bodies, or of responses, in memory.
#[derive(Debug)]
struct BodyBound {
    max: usize,
    free: Arc<Semaphore>,
}

/// How long a body or a response waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// Bytes are counted in units, so that a semaphore can count them.
const BODY_UNIT: usize = 1_024;

/// Room for a body, until this is dropped.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    _permit: OwnedSemaphorePermit,
}

impl BodyRoom {
    /// Gives back what these bytes do not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let unneeded = self._permit.num_permits().saturating_sub(bytes.div_ceil(BODY_UNIT));
        drop(self._permit.split(unneeded));
    }
}

/// The maximum number of whole runs and lists that are read for a tenant at once: the store has more readers.
const READS: usize = 2;

impl BodyBound {
    fn new(max: usize) -> Self {
        BodyBound { max, free: Arc::new(Semaphore::new(max.div_ceil(BODY_UNIT).min(Semaphore::MAX_PERMITS))) }
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.max).div_ceil(BODY_UNIT)).unwrap_or(u32::MAX)
    }

    /// Waits for room for more bytes.
    ///
    /// # Errors
    /// If there is none for a second.
    async fn room(&self, bytes: usize, what: &str) -> Result<BodyRoom, Busy> {
        let permit = self.free.clone().acquire_many_owned(self.units(bytes));
        match tokio::time::timeout(ROOM_WAIT, permit).await {
            Ok(Ok(permit)) => Ok(BodyRoom { _permit: permit }),
            _ => Err(self.is_full(what)),
        }
    }

    fn is_full(&self, what: &str) -> Busy {
        Busy {
            why: format!(
                "{what} of the tenant take too much of {} bytes; ask for fewer at once, or raise max_bodies_bytes of the service",
                self.max
            ),
            retry_after: ROOM_WAIT,
        }
    }
}

impl TenantState {
    /// Waits for room for a request body, which has it as long as it is kept.
    ///
    /// # Errors
    /// If the tenant's bodies take too many bytes for a second.
    pub(crate) async fn body_room(&self, bytes: usize) -> Result<BodyRoom, Busy> {
        self.bodies.room(bytes, "request bodies").await
    }

    /// Takes room for more bytes of a response, if there is room now.
    pub(crate) fn response_room_now(&self, bytes: usize) -> Option<BodyRoom> {
        let permit = self.responses.free.clone().try_acquire_many_owned(self.responses.units(bytes));
        permit.ok().map(|permit| BodyRoom { _permit: permit })
    }

    /// Responses of at most this many bytes take no room.
    pub(crate) const SMALL_RESPONSE: usize = 16_384;

    /// Waits for room for more bytes of a response or a stream, however long that takes. It does not stand in line: what waits
    /// for much keeps no room from smaller responses.
    pub(crate) async fn response_room_when_free(&self, bytes: usize) -> BodyRoom {
        const LOOK_AGAIN: Duration = Duration::from_millis(50);
        loop {
            if let Some(room) = self.response_room_now(bytes) {
                return room;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits for room for more bytes of a response that is being sent.
    ///
    /// # Errors
    /// If the tenant's responses take too many bytes for a second.
    pub(crate) async fn response_room(&self, bytes: usize) -> Result<BodyRoom, Busy> {
        let room = tokio::time::timeout(ROOM_WAIT, self.response_room_when_free(bytes)).await;
        room.map_err(|_| self.responses.is_full("responses"))
    }

    /// Reads a whole run or a list when it is the tenant's turn. The turn lasts as long as the read, even if the caller
    /// no longer waits for it, and then as long as the result.
    ///
    /// # Errors
    /// If the read panics.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<InTurn<T>, tokio::task::JoinError> {
        let turn = permit(&self.reads).await;
        tokio::spawn(async move { InTurn { value: read.await, turn: Some(turn) } }).await
    }
}

/// What was read in a turn of its tenant. No caller waits while it has one: the tenant has few.
#[derive(Debug)]
pub(crate) struct InTurn<T> {
    pub(crate) value: T,
    /// `None` if no tenant has turns for it.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
}

impl<T> InTurn<T> {
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> InTurn<U> {
        InTurn { value: map(self.value), turn: self.turn }
    }
}

impl<T, E> InTurn<Result<T, E>> {
    /// Returns the value that was read, or why it was not.
    pub(crate) fn transpose(self) -> Result<InTurn<T>, E> {
        let turn = self.turn;
        self.value.map(|value| InTurn { value, turn })
    }
}

/// A bound on requests in progress.
#[derive(Debug)]
struct RequestBound {
    max: usize,
    free: Arc<Semaphore>,
}

impl RequestBound {
    fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        RequestBound { max, free: Arc::new(Semaphore::new(max)) }
    }

    fn take(&self, whose: &str) -> Result<RequestInProgress, Busy> {
        let permit = self.free.clone().try_acquire_owned();
        permit.map(|permit| RequestInProgress { _permit: permit }).map_err(|_| Busy {
            why: format!("{whose} {} requests in progress; end some, or raise max_requests of the tenant", self.max),
            retry_after: Duration::from_secs(1),
        })
    }
}

/// A request in progress, until this is dropped.
#[derive(Debug)]
pub(crate) struct RequestInProgress {
    _permit: OwnedSemaphorePermit,
}

/// What a tenant has in the store: the last count, and what was submitted since that count began.
#[derive(Debug, Default)]
pub(crate) struct Stored(Mutex<StoredCount>);

#[derive(Debug, Default)]
struct StoredCount {
    /// The count that began last.
    counted: Option<(Usage, CountStart)>,
    /// Runs, with their bytes, that were stored by this process.
    stored: (u64, u64),
    /// Runs, with their bytes, that are being stored.
    in_flight: (u64, u64),
}

/// The moment at which a count begins. It may miss what is stored from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountStart {
    at: Instant,
    /// Runs, with their bytes, that this process had stored.
    stored: (u64, u64),
}

/// A run that is being stored.
pub(crate) struct Submission<'a> {
    stored: &'a Stored,
    bytes: u64,
    is_stored: bool,
}

impl Stored {
    fn lock(&self) -> MutexGuard<'_, StoredCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a count begins now.
    pub(crate) fn begin_count(&self) -> CountStart {
        CountStart { at: Instant::now(), stored: self.lock().stored }
    }

    /// Counts one more run, if the tenant was counted recently and the run fits.
    pub(crate) fn add(&self, bytes: u64, fits: impl FnOnce(Usage) -> bool) -> Option<Submission<'_>> {
        /// How long a count holds.
        const COUNT_AGAIN: Duration = Duration::from_millis(500);
        let count = self.lock();
        let counted = count.counted.filter(|(_, start)| start.at.elapsed() <= COUNT_AGAIN)?;
        self.add_to(count, counted, bytes, fits).ok()
    }

    /// Counts one more run on a count that was just made, however long that took.
    ///
    /// # Errors
    /// If the run does not fit: what the tenant would have with it.
    pub(crate) fn add_after(
        &self,
        made: (Usage, CountStart),
        bytes: u64,
        fits: impl FnOnce(Usage) -> bool,
    ) -> Result<Submission<'_>, Usage> {
        let mut count = self.lock();
        // Another count may have begun later and be here already.
        let counted = count.counted.filter(|(_, start)| start.at > made.1.at).unwrap_or(made);
        count.counted = Some(counted);
        self.add_to(count, counted, bytes, fits)
    }

    fn add_to(
        &self,
        mut count: MutexGuard<'_, StoredCount>,
        (usage, start): (Usage, CountStart),
        bytes: u64,
        fits: impl FnOnce(Usage) -> bool,
    ) -> Result<Submission<'_>, Usage> {
        let since = (count.stored.0 - start.stored.0, count.stored.1 - start.stored.1);
        let more = (since.0 + count.in_flight.0 + 1, since.1 + count.in_flight.1 + bytes);
        let with = Usage { runs: usage.runs + more.0, queued: usage.queued + more.0, bytes: usage.bytes + more.1 };
        if !fits(with) {
            return Err(with);
        }
        count.in_flight = (count.in_flight.0 + 1, count.in_flight.1 + bytes);
        Ok(Submission { stored: self, bytes, is_stored: false })
    }
}

impl Submission<'_> {
    /// Notes that the run is stored.
    pub(crate) fn stored(mut self) {
        self.is_stored = true;
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        let mut count = self.stored.lock();
        count.in_flight = (count.in_flight.0 - 1, count.in_flight.1 - self.bytes);
        if self.is_stored {
            count.stored = (count.stored.0 + 1, count.stored.1 + self.bytes);
        }
    }
}

/// The slots of the service.
#[derive(Debug)]
pub(crate) struct Admission {
    free_slots: Arc<Semaphore>,
    max: usize,
    queue: usize,
    waiting: AtomicUsize,
    /// Whether durable runs may wait for a slot.
    is_wanted: AtomicBool,
    /// Notified when a slot is freed.
    freed: Arc<Notify>,
    patience: Duration,
}

/// A run in a queue; leaves the queue when it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn in_line(count: &'a AtomicUsize, max: usize) -> Option<Self> {
        let more = |waiting: usize| (waiting < max).then_some(waiting + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Waiting(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(max: usize, queue: usize, patience: Duration) -> Self {
        Admission {
            free_slots: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            max,
            queue,
            waiting: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            freed: Arc::default(),
            patience,
        }
    }

    /// Returns whether any run waits for a slot of the service.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting() > 0 || self.is_wanted.load(Ordering::Relaxed)
    }

    /// Returns the number of slots taken.
    pub(crate) fn taken(&self) -> usize {
        self.max.saturating_sub(self.free_slots.available_permits())
    }

    /// Returns the number of runs that wait for a slot of the service, without durable ones.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a slot, for a run whose caller waits.
    ///
    /// # Errors
    /// If there is no slot within `queue_seconds`, or the queue of the tenant or of the service is full.
    pub(crate) async fn slot(&self, tenant: &TenantState) -> Result<Slot, Busy> {
        if let Some(slot) = self.free(tenant) {
            return Ok(slot);
        }
        let full = |what: &str, queue: usize, raise: &str| Busy {
            why: format!("{queue} {what} wait for a slot already; try again later, or raise {raise}"),
            retry_after: self.patience,
        };
        // A run waits in one line at a time: first for a slot of its tenant, then for one of the service.
        let slot = async {
            let of_tenant = match tenant.free_slots.clone().try_acquire_owned() {
                Ok(free) => free,
                Err(_) => {
                    let _of_tenant = Waiting::in_line(&tenant.waiting, tenant.queue)
                        .ok_or_else(|| full("runs of the tenant", tenant.queue, "queue of the tenant"))?;
                    permit(&tenant.free_slots).await
                }
            };
            let _of_service = Waiting::in_line(&self.waiting, self.queue)
                .ok_or_else(|| full("runs", self.queue, "queue of the service"))?;
            Ok(self.slot_of(of_tenant, permit(&self.free_slots).await))
        };
        tokio::time::timeout(self.patience, slot).await.unwrap_or_else(|_| {
            Err(Busy {
                why: format!(
                    "no slot within {} s: {} runs of the tenant, or {} of the service, are in progress; try again later, or raise \
                     concurrency",
                    self.patience.as_secs(),
                    tenant.max,
                    self.max
                ),
                retry_after: self.patience,
            })
        })
    }

    fn free(&self, tenant: &TenantState) -> Option<Slot> {
        let of_tenant = tenant.free_slots.clone().try_acquire_owned().ok()?;
        let of_service = self.free_slots.clone().try_acquire_owned().ok()?;
        Some(self.slot_of(of_tenant, of_service))
    }

    fn slot_of(&self, of_tenant: OwnedSemaphorePermit, of_service: OwnedSemaphorePermit) -> Slot {
        Slot { _of_tenant: of_tenant, _of_service: of_service, _freed: SlotFreed(self.freed.clone()) }
    }

    /// Returns when a slot was freed since the last time.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Waits for slots of the service for durable runs, and takes those of tenants that are free with them: at most as many as
    /// are wanted, and `max`. Returns `None` if none is wanted.
    ///
    /// Durable runs are claimed from the store for slots that are there already. A tenant whose slots are all taken is
    /// left out, and waits in the line for its next slot. It, or the service, counts as crowded while its durable runs
    /// wait in the store.
    pub(crate) async fn slots(&self, wanted: &[(Arc<TenantState>, usize)], max: usize) -> Option<Slots> {
        for (tenant, _) in wanted.iter().filter(|(_, wanted)| *wanted == 0) {
            // Its turn came after the last of them had left.
            tenant.pass_turn();
        }
        let max = wanted.iter().fold(0_usize, |sum, (_, wanted)| sum.saturating_add(*wanted)).min(max);
        if max == 0 {
            self.is_wanted.store(false, Ordering::Relaxed);
            return None;
        }
        self.is_wanted.store(self.free_slots.available_permits() == 0, Ordering::Relaxed);
        let mut of_service = vec![permit(&self.free_slots).await];
        self.is_wanted.store(false, Ordering::Relaxed);
        while of_service.len() < max
            && let Ok(more) = self.free_slots.clone().try_acquire_owned()
        {
            of_service.push(more);
        }
        let mut of_tenants = Vec::new();
        for (tenant, wanted) in wanted.iter().filter(|(_, wanted)| *wanted > 0) {
            let mut permits: Vec<_> = tenant.turn.take().into_iter().collect();
            while permits.len() < of_service.len().min(*wanted)
                && let Ok(more) = tenant.free_slots.clone().try_acquire_owned()
            {
                permits.push(more);
            }
            tenant.is_wanted.store(permits.is_empty(), Ordering::Relaxed);
            match permits.is_empty() {
                true => tenant.turn.wait(&tenant.free_slots, &self.freed),
                false => of_tenants.push((tenant.clone(), permits)),
            }
        }
        // Tenants may have fewer slots than runs.
        of_service.truncate(of_tenants.iter().map(|(_, permits)| permits.len()).sum());
        Some(Slots { of_service, of_tenants, freed: self.freed.clone() })
    }

    /// Waits for a slot for a durable run that was claimed without one.
    pub(crate) async fn late_slot(&self, tenant: &TenantState) -> Slot {
        let of_tenant = permit(&tenant.free_slots).await;
        self.slot_of(of_tenant, permit(&self.free_slots).await)
    }
}

/// Slots that are taken for durable runs.
pub(crate) struct Slots {
    of_service: Vec<OwnedSemaphorePermit>,
    of_tenants: Vec<(Arc<TenantState>, Vec<OwnedSemaphorePermit>)>,
    freed: Arc<Notify>,
}

impl Slots {
    /// Returns how many runs can be claimed.
    pub(crate) fn room(&self) -> Room {
        let of_tenant = |(tenant, permits): &(Arc<TenantState>, Vec<_>)| (tenant.name.clone(), permits.len());
        Room { slots: self.of_service.len(), tenants: self.of_tenants.iter().map(of_tenant).collect() }
    }

    /// Takes a slot for a run of a tenant.
    pub(crate) fn take(&mut self, tenant: &str) -> Option<(Arc<TenantState>, Slot)> {
        let (tenant, permits) = self.of_tenants.iter_mut().find(|(its, _)| its.name == tenant)?;
        let (of_tenant, of_service) = (permits.pop()?, self.of_service.pop()?);
        let slot = Slot { _of_tenant: of_tenant, _of_service: of_service, _freed: SlotFreed(self.freed.clone()) };
        Some((tenant.clone(), slot))
    }
}

async fn permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    loop {
        match semaphore.clone().acquire_owned().await {
            Ok(permit) => return permit,
            // The semaphores are never closed.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn states() -> Vec<TenantState> {
        let tenant = |name: &str, digit: &str, concurrency: usize| {
            let digest = digit.repeat(64);
            format!(
                "[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{digest}\"\nconcurrency = {concurrency}\nqueue = 3\n"
            )
        };
        let text = tenant("one", "a", 1) + &tenant("two", "b", 4);
        let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
        config.tenants.iter().map(|tenant| TenantState::new(&config, tenant, BTreeSet::new())).collect()
    }

    fn poll<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A client that leaves does not end the read that it has begun, so its turn is taken until then.
    #[tokio::test]
    async fn reads_have_their_turn_until_they_end() {
        let [one, two] = &states()[..] else { panic!() };
        let (end, ended) = tokio::sync::watch::channel(false);
        let read = || {
            let mut ended = ended.clone();
            async move { ended.wait_for(|ended| *ended).await.map(|_| 42).unwrap_or_default() }
        };
        for _ in 0..READS {
            let mut left = Box::pin(one.read(read()));
            assert!(poll(&mut left.as_mut()).is_pending());
        }
        assert_eq!(one.reads.available_permits(), 0);
        let mut waits = pin!(one.read(read()));
        assert!(poll(&mut waits).is_pending());
        assert_eq!(two.read(async { 7 }).await.unwrap().value, 7);
        assert_eq!(one.reads.available_permits(), 0);
        end.send(true).unwrap();
        let read = waits.await.unwrap();
        assert_eq!((read.value, one.reads.available_permits()), (42, READS - 1));
        drop(read);
        assert_eq!(one.reads.available_permits(), READS);
    }

    /// A run that is stored while a tenant is counted may be missing in the count, and counts all the same.
    #[test]
    fn runs_that_are_stored_during_a_count_count() {
        let stored = Stored::default();
        let fits = |usage: Usage| usage.runs <= 2 && usage.bytes <= 20;
        // Three requests come at once, and count before one of them is stored.
        let starts = [(); 3].map(|()| stored.begin_count());
        for (n, start) in starts.into_iter().enumerate() {
            match stored.add_after((Usage::default(), start), 10, fits) {
                Ok(submission) => submission.stored(),
                Err(with) => {
                    assert_eq!((n, with.runs, with.queued, with.bytes), (2, 3, 3, 30));
                    return;
                }
            }
        }
        panic!("three were accepted");
    }

    /// Runs that wait for a slot of their tenant take no space in the service's queue, nor in that of another tenant.
    #[tokio::test]
    async fn a_tenant_that_waits_for_itself_is_in_nobodys_way() {
        let [one, two] = &states()[..] else { panic!() };
        let admission = Admission::new(2, 1, Duration::from_secs(600));
        let at_work = admission.slot(one).await.unwrap();
        let (mut first, mut second) = (pin!(admission.slot(one)), pin!(admission.slot(one)));
        let (mut third, mut fourth) = (pin!(admission.slot(one)), pin!(admission.slot(one)));
        for waits in [&mut first, &mut second, &mut third] {
            assert!(poll(waits).is_pending());
        }
        assert_eq!((admission.taken(), admission.waiting(), admission.is_crowded()), (1, 0, false));
        let Poll::Ready(Err(busy)) = poll(&mut fourth) else { panic!("a fourth one waits") };
        assert!(busy.why.contains("3 runs of the tenant wait") && busy.why.contains("queue of the tenant"), "{busy}");

        // The other tenant gets the service's second slot at once, then its queue.
        let other = admission.slot(two).await.unwrap();
        let (mut waits, mut too_many) = (pin!(admission.slot(two)), pin!(admission.slot(two)));
        assert!(poll(&mut waits).is_pending());
        assert_eq!((admission.taken(), admission.waiting(), admission.is_crowded()), (2, 1, true));
        assert_eq!(two.waiting.load(Ordering::Relaxed), 0, "it waits for the service only");
        let Poll::Ready(Err(busy)) = poll(&mut too_many) else { panic!("two wait for the service") };
        assert!(busy.why.contains("1 runs wait") && busy.why.contains("queue of the service"), "{busy}");
        drop(other);
        let second_of_two = waits.await.unwrap();
        drop(at_work);
        assert!(poll(&mut first).is_ready());
        drop(second_of_two);
        assert_eq!((admission.taken(), admission.waiting(), admission.is_crowded()), (0, 0, false));
    }
}
