//! Admission: slots, queues and rates of the service and its tenants.

use crate::config::{Config, Tenant};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use lisp_runtime::{Amounts, Budget, Limits};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    places: Arc<Semaphore>,
    rate: Option<DefaultDirectRateLimiter>,
    queue: usize,
    waiting: AtomicUsize,
    /// Durable runs that wait for a slot of the tenant.
    patient: AtomicUsize,
    requests: RequestBound,
    approver_requests: RequestBound,
    /// Runs that have a slot, and durable runs that wait for one.
    claims: Arc<AtomicUsize>,
    max: usize,
    /// Runs in the store: the last count, plus runs submitted since.
    pub(crate) stored: AtomicU64,
}

/// A slot for a run, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _of_tenant: OwnedSemaphorePermit,
    _of_service: OwnedSemaphorePermit,
    /// Set for a run whose caller waits; a durable run holds its own claim.
    _claim: Option<Claim>,
}

impl TenantState {
    pub(crate) fn new(config: &Config, tenant: &Tenant) -> Self {
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
            places: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            rate,
            queue: tenant.queue.unwrap_or(config.service.queue),
            waiting: AtomicUsize::new(0),
            patient: AtomicUsize::new(0),
            requests: RequestBound::new(max_requests),
            // Approvers can still decide while the tenant's own requests take all of theirs.
            approver_requests: RequestBound::new((max_requests / 4).max(1)),
            claims: Arc::default(),
            max,
            stored: AtomicU64::new(0),
        }
    }

    /// Takes one run from the tenant's rate, or returns when to try again.
    pub(crate) fn check_rate(&self) -> Result<(), Busy> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.check().map_err(|until| Busy {
            why: "more runs a second than runs_per_second of the tenant allows".to_owned(),
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
        self.waiting.load(Ordering::Relaxed) + self.patient.load(Ordering::Relaxed) > 0
    }

    /// Claims a slot for a run that already has one, or for a resumed run. Has no limit.
    pub(crate) fn claim(&self) -> Claim {
        self.claims.fetch_add(1, Ordering::Relaxed);
        Claim(self.claims.clone())
    }

    /// Claims a slot for a new durable run.
    ///
    /// # Errors
    /// If the tenant's slots and its queue are all claimed.
    pub(crate) fn new_claim(&self) -> Result<Claim, Busy> {
        let max = self.max.saturating_add(self.queue);
        let more = |claims: usize| (claims < max).then_some(claims + 1);
        let claimed = self.claims.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        claimed.map(|_| Claim(self.claims.clone())).map_err(|_| Busy {
            why: format!(
                "the tenant has {} running and {} queued runs; try again later, or raise queue of the tenant",
                self.max, self.queue
            ),
            retry_after: Duration::from_secs(1),
        })
    }

    pub(crate) fn refill(&self, amounts: &Amounts) {
        if let Some(budget) = &self.budget {
            budget.refill_to(amounts);
        }
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

/// The claim of a run that has a slot or waits for one, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim(Arc<AtomicUsize>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The slots of the service.
#[derive(Debug)]
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    max: usize,
    queue: usize,
    waiting: AtomicUsize,
    /// Durable runs that wait for a slot; they wait without a limit.
    patient: AtomicUsize,
    patience: Duration,
}

/// A run in a queue; leaves the queue when it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn in_line(count: &'a AtomicUsize, max: usize) -> Option<Self> {
        let more = |waiting: usize| (waiting < max).then_some(waiting + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Waiting(count))
    }

    fn patiently(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
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
            places: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            max,
            queue,
            waiting: AtomicUsize::new(0),
            patient: AtomicUsize::new(0),
            patience,
        }
    }

    /// Returns whether any run waits for a slot of the service.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting() + self.patient.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of slots taken.
    pub(crate) fn taken(&self) -> usize {
        self.max.saturating_sub(self.places.available_permits())
    }

    /// Returns the number of runs that wait for a slot of the service, without durable ones.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a slot, for a run whose caller waits.
    ///
    /// # Errors
    /// If there is no slot within `queue_seconds`, or the queue of the tenant or of the service is full.
    pub(crate) async fn place(&self, tenant: &TenantState) -> Result<Place, Busy> {
        let claimed = |place: Place| Place { _claim: Some(tenant.claim()), ..place };
        if let Some(place) = self.free(tenant) {
            return Ok(claimed(place));
        }
        let full = |what: &str, queue: usize, raise: &str| Busy {
            why: format!("{queue} {what} wait for a slot already; try again later, or raise {raise}"),
            retry_after: self.patience,
        };
        // A run waits in one line at a time: first for a slot of its tenant, then for one of the service.
        let place = async {
            let of_tenant = match tenant.places.clone().try_acquire_owned() {
                Ok(free) => free,
                Err(_) => {
                    let _of_tenant = Waiting::in_line(&tenant.waiting, tenant.queue)
                        .ok_or_else(|| full("runs of the tenant", tenant.queue, "queue of the tenant"))?;
                    permit(&tenant.places).await
                }
            };
            let _of_service = Waiting::in_line(&self.waiting, self.queue)
                .ok_or_else(|| full("runs", self.queue, "queue of the service"))?;
            Ok(Place { _of_tenant: of_tenant, _of_service: permit(&self.places).await, _claim: None })
        };
        tokio::time::timeout(self.patience, place).await.unwrap_or_else(|_| {
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
        .map(claimed)
    }

    fn free(&self, tenant: &TenantState) -> Option<Place> {
        let of_tenant = tenant.places.clone().try_acquire_owned().ok()?;
        let of_service = self.places.clone().try_acquire_owned().ok()?;
        Some(Place { _of_tenant: of_tenant, _of_service: of_service, _claim: None })
    }

    /// Waits for a slot without a limit, for a durable run.
    pub(crate) async fn patient_place(&self, tenant: &TenantState) -> Place {
        let of_tenant = {
            let _waiting = Waiting::patiently(&tenant.patient);
            permit(&tenant.places).await
        };
        let _waiting = Waiting::patiently(&self.patient);
        Place { _of_tenant: of_tenant, _of_service: permit(&self.places).await, _claim: None }
    }
}

async fn permit(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    loop {
        match places.clone().acquire_owned().await {
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
        config.tenants.iter().map(|tenant| TenantState::new(&config, tenant)).collect()
    }

    fn poll<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Runs that wait for a slot of their tenant take no space in the service's queue, nor in that of another tenant.
    #[tokio::test]
    async fn a_tenant_that_waits_for_itself_is_in_nobodys_way() {
        let [one, two] = &states()[..] else { panic!() };
        let admission = Admission::new(2, 1, Duration::from_secs(600));
        let at_work = admission.place(one).await.unwrap();
        let (mut first, mut second) = (pin!(admission.place(one)), pin!(admission.place(one)));
        let (mut third, mut fourth) = (pin!(admission.place(one)), pin!(admission.place(one)));
        for waits in [&mut first, &mut second, &mut third] {
            assert!(poll(waits).is_pending());
        }
        assert_eq!((admission.taken(), admission.waiting(), admission.is_crowded()), (1, 0, false));
        let Poll::Ready(Err(busy)) = poll(&mut fourth) else { panic!("a fourth one waits") };
        assert!(busy.why.contains("3 runs of the tenant wait") && busy.why.contains("queue of the tenant"), "{busy}");

        // The other tenant gets the service's second slot at once, then its queue.
        let other = admission.place(two).await.unwrap();
        let (mut waits, mut too_many) = (pin!(admission.place(two)), pin!(admission.place(two)));
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
