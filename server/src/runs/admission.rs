//! Who may run now: places, queues, rates and budgets of the service and of its tenants.

use crate::config::{Config, Tenant};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use lisp_runtime::{Amounts, Budget, Limits};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why nothing runs now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Busy {
    /// What is full, how much of it there is, and how to have more.
    pub why: String,
    /// When to try again.
    pub retry_after: Duration,
}

/// A tenant at work.
#[derive(Debug)]
pub struct TenantState {
    /// Its name.
    pub name: String,
    pub(crate) ceiling: Limits,
    pub(crate) budget: Option<Budget>,
    /// Its runs share processes.
    pub(crate) domain: bool,
    places: Arc<Semaphore>,
    rate: Option<DefaultDirectRateLimiter>,
    queue: usize,
    waiting: AtomicUsize,
    /// Its runs that have a place, and its durable runs that wait for one.
    claims: Arc<AtomicUsize>,
    most: usize,
    /// Its runs in the store, as far as they have been counted.
    pub(crate) stored: AtomicU64,
}

/// A place to run; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _of_tenant: OwnedSemaphorePermit,
    _of_service: OwnedSemaphorePermit,
    /// Of a run that somebody waits for: a durable one has its own.
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
        let most = tenant.concurrency.unwrap_or(config.service.concurrency);
        TenantState {
            name: tenant.name.clone(),
            ceiling: config.ceiling_of(tenant),
            budget,
            domain: tenant.domain,
            places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            rate,
            queue: tenant.queue.unwrap_or(config.service.queue),
            waiting: AtomicUsize::new(0),
            claims: Arc::default(),
            most,
            stored: AtomicU64::new(0),
        }
    }

    /// Has one more run come too soon?
    pub(crate) fn check_rate(&self) -> Result<(), Busy> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.check().map_err(|until| Busy {
            why: "more runs a second than runs_per_second of the tenant allows".to_owned(),
            retry_after: until.wait_time_from(DefaultClock::default().now()),
        })
    }

    /// A claim to a place, for a run that has one, or was taken before and goes on.
    pub(crate) fn claim(&self) -> Claim {
        self.claims.fetch_add(1, Ordering::Relaxed);
        Claim(self.claims.clone())
    }

    /// A claim to a place for a new durable run. There are as many as places of the tenant, and its queue besides.
    ///
    /// # Errors
    /// All are taken.
    pub(crate) fn new_claim(&self) -> Result<Claim, Busy> {
        let most = self.most.saturating_add(self.queue);
        let more = |claims: usize| (claims < most).then_some(claims + 1);
        let claimed = self.claims.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        claimed.map(|_| Claim(self.claims.clone())).map_err(|_| Busy {
            why: format!(
                "the tenant has {} running and {} queued runs; try again later, or raise queue of the tenant",
                self.most, self.queue
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

/// A run that has a place or is to have one; it does no longer when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(Arc<AtomicUsize>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The places of the service.
#[derive(Debug)]
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    most: usize,
    queue: usize,
    waiting: AtomicUsize,
    /// Those that wait as long as it takes.
    patient: AtomicUsize,
    patience: Duration,
}

/// Counts those that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn in_line(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |waiting: usize| (waiting < most).then_some(waiting + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Waiting(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(most: usize, queue: usize, patience: Duration) -> Self {
        Admission {
            places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            most,
            queue,
            waiting: AtomicUsize::new(0),
            patient: AtomicUsize::new(0),
            patience,
        }
    }

    /// Does a run wait for a place of the service?
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting() + self.patient.load(Ordering::Relaxed) > 0
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.most.saturating_sub(self.places.available_permits())
    }

    /// How many wait for a place of the service.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A place for a run whose caller waits for it.
    ///
    /// # Errors
    /// There is none for so long, or too many wait already.
    pub(crate) async fn place(&self, tenant: &TenantState) -> Result<Place, Busy> {
        let claimed = |place: Place| Place { _claim: Some(tenant.claim()), ..place };
        if let Some(place) = self.free(tenant) {
            return Ok(claimed(place));
        }
        let full = |what: &str, queue: usize, raise: &str| Busy {
            why: format!("{queue} {what} wait for a place already; try again later, or raise {raise}"),
            retry_after: self.patience,
        };
        let _of_tenant = Waiting::in_line(&tenant.waiting, tenant.queue)
            .ok_or_else(|| full("runs of the tenant", tenant.queue, "queue of the tenant"))?;
        // Who waits for a place of its tenant takes none of the service's line.
        let place = async {
            let of_tenant = permit(&tenant.places).await;
            let _of_service = Waiting::in_line(&self.waiting, self.queue)
                .ok_or_else(|| full("runs", self.queue, "queue of the service"))?;
            Ok(Place { _of_tenant: of_tenant, _of_service: permit(&self.places).await, _claim: None })
        };
        tokio::time::timeout(self.patience, place).await.unwrap_or_else(|_| {
            Err(Busy {
                why: format!(
                    "no place within {} s: {} runs of the tenant, or {} of the service, go on; try again later, or raise \
                     concurrency",
                    self.patience.as_secs(),
                    tenant.most,
                    self.most
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

    /// A place for a run that has time.
    pub(crate) async fn patient_place(&self, tenant: &TenantState) -> Place {
        let of_tenant = permit(&tenant.places).await;
        self.patient.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.patient);
        Place { _of_tenant: of_tenant, _of_service: permit(&self.places).await, _claim: None }
    }
}

async fn permit(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    loop {
        match places.clone().acquire_owned().await {
            Ok(permit) => return permit,
            // Nobody closes them.
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

    /// Runs that wait for a place of their tenant take none of the service's line, nor does a tenant's line of another's.
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

        // The other tenant has the service's second place at once, then its line.
        let other = admission.place(two).await.unwrap();
        let (mut waits, mut too_many) = (pin!(admission.place(two)), pin!(admission.place(two)));
        assert!(poll(&mut waits).is_pending());
        assert_eq!((admission.taken(), admission.waiting(), admission.is_crowded()), (2, 1, true));
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
