//! The worker: claims durable runs for free slots, renews their leases, and passes the news of the store on.

use super::admission::{Slot, Slots, TenantState};
use super::state::{ActiveRun, Inner, Service};
use super::writer::patiently;
use crate::store::{Claim, News, Query, Renewed, RunStatus, StoreError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;

/// How often the worker looks for runs without news: news may be lost, and leases of other workers expire.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The maximum number of runs that are claimed at once.
const AT_ONCE: usize = 64;

impl Service {
    /// Starts the tasks that watch the store, and those of the worker if this process is one. They end when the service
    /// shuts down or is dropped.
    pub(super) fn start(&self, is_worker: bool) {
        tokio::spawn(news(Arc::downgrade(&self.0)));
        if is_worker {
            tokio::spawn(claims(Arc::downgrade(&self.0)));
            tokio::spawn(leases(Arc::downgrade(&self.0)));
            tokio::spawn(retries(Arc::downgrade(&self.0)));
            self.0.queued.notify_one();
        }
    }
}

/// Passes news on until the service is dropped.
async fn news(inner: Weak<Inner>) {
    let Some(mut news) = inner.upgrade().map(|inner| inner.store.news()) else { return };
    loop {
        let one = news.recv().await;
        let Some(inner) = inner.upgrade() else { return };
        match one {
            Ok(News::Queued) => inner.queued.notify_one(),
            Ok(News::Changed(run_id)) => inner.watchers.wake(&run_id),
            Ok(News::Replied(run_id)) => {
                if let Some(active) = inner.active(&run_id) {
                    fetch_replies(&inner, active);
                }
            }
            Err(RecvError::Lagged(_)) => {
                inner.watchers.wake_all();
                inner.queued.notify_one();
                let active: Vec<Arc<ActiveRun>> = inner.active_runs().values().cloned().collect();
                active.into_iter().for_each(|active| fetch_replies(&inner, active));
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn fetch_replies(inner: &Arc<Inner>, active: Arc<ActiveRun>) {
    let inner = inner.clone();
    tokio::spawn(async move {
        // A reply that is not fetched now is fetched when leases are renewed, or when the run is to be suspended.
        if let Err(error) = active.fetch_replies(&*inner.store, inner.lease_period()).await {
            tracing::warn!(run_id = &*active.lease.run_id, %error, "replies cannot be read");
        }
    });
}

/// Claims runs until the service shuts down or is dropped.
async fn claims(weak: Weak<Inner>) {
    loop {
        let Some(inner) = weak.upgrade() else { return };
        tokio::select! {
            () = inner.queued.notified() => {}
            () = inner.admission.freed() => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = inner.draining.cancelled() => return,
        }
        // Slots are taken for runs that are there: whoever else wants one does not wait for the store.
        let wanted = tokio::select! {
            wanted = in_time(wanted(&inner), || inner.tenants.iter().for_each(|tenant| tenant.pass_turn())) => wanted,
            () = inner.draining.cancelled() => return,
        };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(error) => {
                inner.tenants.iter().for_each(|tenant| tenant.pass_turn());
                drop(inner);
                pause(&error).await;
                continue;
            }
        };
        let slots = tokio::select! {
            slots = inner.admission.slots(&wanted, AT_ONCE) => slots,
            () = inner.draining.cancelled() => return,
        };
        let Some(slots) = slots else { continue };
        // Not dropped at shutdown: a claim whose answer is lost holds its run until the lease expires.
        let claiming = inner.claiming.lock().await;
        let claimed = claim(&inner, slots).await;
        drop(claiming);
        match claimed {
            // There may be more.
            Ok(true) => inner.queued.notify_one(),
            Ok(false) => {}
            Err(error) => {
                drop(inner);
                pause(&error).await;
            }
        }
    }
}

/// Waits for the store. If it takes long, `late` gives back what others could use meanwhile.
async fn in_time<T>(store: impl Future<Output = T>, late: impl FnOnce()) -> T {
    const LONG: Duration = Duration::from_millis(100);
    let mut store = std::pin::pin!(store);
    if let Ok(done) = tokio::time::timeout(LONG, &mut store).await {
        return done;
    }
    late();
    store.await
}

/// Waits after the store has failed.
async fn pause(error: &StoreError) {
    tracing::warn!(%error, "runs cannot be claimed");
    tokio::time::sleep(LOOK_AGAIN).await;
}

/// Returns the tenants with the number of their runs that can be claimed.
async fn wanted(inner: &Inner) -> Result<Vec<(Arc<TenantState>, usize)>, StoreError> {
    let names: Vec<String> = inner.tenants.iter().map(|tenant| tenant.name.clone()).collect();
    let numbers = inner.store.claimable(&names, AT_ONCE).await?;
    Ok(inner.tenants.iter().cloned().zip(numbers).collect())
}

/// Claims runs for the free slots, and starts them. Returns whether there may be more.
async fn claim(inner: &Arc<Inner>, slots: Slots) -> Result<bool, StoreError> {
    let (mut room, period) = (slots.room(), inner.lease_period());
    if room.tenants.is_empty() {
        return Ok(false);
    }
    // Another tenant is first each time.
    let first = inner.next_tenant() % room.tenants.len();
    room.tenants.rotate_left(first);
    let at = Instant::now();
    let mut slots = Some(slots);
    let claimed = in_time(inner.store.claim(&inner.worker, period, &room), || drop(slots.take())).await?;
    let is_some = !claimed.is_empty();
    for claim in claimed {
        let slot = slots.as_mut().and_then(|slots| slots.take(&claim.run.summary.tenant)).map(|(_, slot)| slot);
        start(inner, claim, slot, at + period);
    }
    Ok(is_some)
}

/// Starts a run that was claimed, once it has a slot.
fn start(inner: &Arc<Inner>, claim: Claim, slot: Option<Slot>, valid_until: Instant) {
    let (run_id, tenant, epoch, faults) =
        (&*claim.lease.run_id, &*claim.run.summary.tenant, claim.lease.epoch, claim.faults);
    let lease_seconds = inner.lease_period().as_secs();
    match faults {
        0 => tracing::info!(run_id, tenant, epoch, lease_seconds, "a run was claimed"),
        _ => tracing::info!(
            run_id,
            tenant,
            epoch,
            lease_seconds,
            faults,
            "a run was taken over: its last attempt was lost"
        ),
    }
    let active = Arc::new(ActiveRun::new(claim.lease.clone()));
    if let Some(former) = inner.active_runs().insert(claim.lease.run_id.clone(), active.clone()) {
        // Its lease has expired.
        former.lost.cancel();
    }
    let inner = inner.clone();
    tokio::spawn(async move {
        let slot = match (slot, inner.tenant(&claim.run.summary.tenant)) {
            (None, Some(tenant)) => tokio::select! {
                slot = inner.admission.late_slot(&tenant) => Some(slot),
                () = active.lost.cancelled() => None,
                () = inner.draining.cancelled() => None,
            },
            (slot, _) => slot,
        };
        match slot {
            Some(slot) => super::attempt::drive(&inner, claim, &active, slot, valid_until).await,
            None => super::attempt::give_back(&inner, &active).await,
        }
        let mut active_runs = inner.active_runs();
        if active_runs.get(&active.lease.run_id).is_some_and(|run| run.lease == active.lease) {
            active_runs.remove(&active.lease.run_id);
        }
    });
}

/// Renews the leases of the active runs.
async fn leases(inner: Weak<Inner>) {
    loop {
        let Some(period) = inner.upgrade().map(|inner| inner.lease_period()) else { return };
        tokio::time::sleep(period / 3).await;
        let Some(inner) = inner.upgrade() else { return };
        let active: Vec<Arc<ActiveRun>> = inner.active_runs().values().cloned().collect();
        let leases: Vec<_> = active.iter().map(|active| active.lease.clone()).collect();
        if leases.is_empty() {
            continue;
        }
        let at = Instant::now();
        match inner.store.renew(&leases, period).await {
            Ok(states) => {
                for (active, state) in active.iter().zip(states) {
                    match state {
                        Renewed::Lost => active.lost.cancel(),
                        Renewed::Held { cancelled, replies } => {
                            active.renewed(at);
                            if cancelled {
                                active.cancel();
                            }
                            if active.may_have_missed(replies) {
                                fetch_replies(&inner, active.clone());
                            }
                        }
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "leases cannot be renewed"),
        }
    }
}

/// Queues the runs that were stuck with the configuration before.
async fn retries(inner: Weak<Inner>) {
    /// The number of runs that are read at once.
    const PAGE: usize = 100;
    let Some(tenants) = inner.upgrade().map(|inner| inner.tenants.clone()) else { return };
    for tenant in tenants {
        let mut query =
            Query { tenant: Some(tenant.name.clone()), status: Some(RunStatus::Stuck), after: None, max: PAGE };
        loop {
            let Some(inner) = inner.upgrade().filter(|inner| !inner.draining.is_cancelled()) else { return };
            let page = match patiently(|| inner.store.list(&query)).await {
                Ok(page) => page,
                Err(error) => return tracing::warn!(%error, "stuck runs cannot be listed"),
            };
            for run in &page.runs {
                if let Err(error) = patiently(|| inner.store.retry(&run.run_id)).await {
                    tracing::warn!(run_id = run.run_id, %error, "a stuck run cannot be queued");
                }
            }
            match page.runs.last().filter(|_| page.has_more) {
                Some(last) => query.after = Some((last.created_ms, last.run_id.clone())),
                None => break,
            }
        }
    }
}
