//! The domains of a sandbox, their processes, and the assignment of runs to processes.

use super::running::Running;
use super::verdict;
use crate::guest::layers::SetupError;
use crate::wire::messages::Order;
use lisp_runtime::remote::{HostHalf, Report};
use lisp_runtime::{Error, Outcome, Verdict};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The minimum interval between checks for idle processes past their maximum age.
const TENDING: Duration = Duration::from_secs(1);

/// The limits of the domains of a [`Sandbox`](crate::Sandbox).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainLimits {
    /// The maximum number of processes of one domain; the default is 4, and 0 counts as 1. Each serves one run at a
    /// time, and further runs wait.
    pub processes: usize,
    /// The number of runs after which a process is replaced; the default is 10,000.
    pub runs: u64,
    /// The growth in bytes, measured at the peak, after which a process is replaced; the default is 64 MiB. The process
    /// itself reports it. One that lies is still bounded by the address space of its runs' limits.
    pub growth_bytes: u64,
    /// The time after which a process serves no further runs; the default is 60 s. A process idle by then ends
    /// after the next run of any domain. Its processor time is limited to `max_age` plus the time limit of one run.
    pub max_age: Duration,
    /// The maximum number of domains with processes; the default is 64. For another one, the least recently used domain
    /// gives up its idle processes.
    pub domains: usize,
    /// The maximum number of idle processes of all domains together; the default is 64. Beyond that the least recently
    /// used one ends. Each takes two or three descriptors of the host. Idle processes also end when a run finds no room
    /// for its process, or the host has no descriptors left.
    pub idle: usize,
}

impl Default for DomainLimits {
    fn default() -> Self {
        DomainLimits {
            processes: 4,
            runs: 10_000,
            growth_bytes: 64 << 20,
            max_age: Duration::from_secs(60),
            domains: 64,
            idle: 64,
        }
    }
}

impl DomainLimits {
    /// The maximum length of a domain's name, in bytes.
    pub const NAME_BYTES: usize = 128;
}

/// The domains of a sandbox that are in use or have processes.
#[derive(Debug)]
pub(crate) struct Domains {
    limits: DomainLimits,
    table: Mutex<Table>,
    /// The number of idle processes.
    idle: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Table {
    uses: u64,
    /// When idle processes were last checked for their age.
    tended: Option<Instant>,
    by_name: BTreeMap<Box<str>, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// A sequence number of its last use.
    used: u64,
    state: Arc<DomainState>,
}

/// Checks the name of a domain.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let max = DomainLimits::NAME_BYTES;
    match name.len() {
        0 => Err(format!("its name is empty; it must have 1 to {max} bytes")),
        bytes if bytes > max => Err(format!("its name has {bytes} bytes; it must have 1 to {max}")),
        _ => Ok(()),
    }
}

impl Domains {
    pub(crate) fn new(limits: DomainLimits) -> Domains {
        Domains { limits, table: Mutex::default(), idle: Arc::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<DomainState>, SetupError> {
        check_name(name).map_err(|why| SetupError::new("domain", why))?;
        let mut guard = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Table { uses, by_name, .. } = &mut *guard;
        *uses += 1;
        if let Some(entry) = by_name.get_mut(name) {
            entry.used = *uses;
            return Ok(entry.state.clone());
        }
        let mut given_up = None;
        if by_name.len() >= self.limits.domains.max(1) {
            let idle = by_name.iter().filter(|(_, entry)| entry.state.is_idle());
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else {
                let max = self.limits.domains;
                let why = format!("{max} others are in use, the limit domains of Builder::domain_limits");
                return Err(SetupError::new("domain", why));
            };
            given_up = by_name.remove(&oldest);
        }
        let state = Arc::new(DomainState {
            name: name.into(),
            limits: self.limits,
            processes: Mutex::default(),
            all_idle: self.idle.clone(),
        });
        by_name.insert(name.into(), Entry { used: *uses, state: state.clone() });
        drop(guard);
        // Killing its processes must not block others, so the lock is released first.
        drop(given_up);
        Ok(state)
    }

    /// Ends the least recently used idle process. Returns true if there was one.
    pub(crate) fn give_up_one(&self) -> bool {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let states = table.by_name.values().map(|entry| &entry.state);
        let oldest =
            states.filter_map(|state| Some((state.lock().idle.first()?.rests_since, state))).min_by_key(|it| it.0);
        let given_up = oldest.map(|(since, state)| state.give_up(|warm| warm.rests_since == since));
        drop(table);
        // It is killed after the lock is released.
        given_up.is_some_and(|given_up| !given_up.is_empty())
    }

    /// Ends idle processes beyond the limit and those past their maximum age.
    pub(crate) fn tend(&self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut past = Vec::new();
        if table.tended.is_none_or(|at| now.saturating_duration_since(at) >= TENDING) {
            table.tended = Some(now);
            for entry in table.by_name.values() {
                past.extend(entry.state.give_up(|warm| !entry.state.may_serve(warm.served, warm.since)));
            }
        }
        drop(table);
        drop(past);
        while self.idle.load(Ordering::Relaxed) > self.limits.idle && self.give_up_one() {}
    }
}

/// One domain.
#[derive(Debug)]
pub(crate) struct DomainState {
    pub(crate) name: Box<str>,
    pub(crate) limits: DomainLimits,
    processes: Mutex<Processes>,
    /// The number of idle processes of all domains.
    all_idle: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Processes {
    /// Ordered by last use, the most recent one last.
    idle: Vec<Warm>,
    /// The number of its processes: idle, at work, or being started.
    alive: usize,
    /// Waiting runs, the first one in front. They are served in this order.
    queue: VecDeque<Waiter>,
    /// The number of the last run that had to wait.
    last: u64,
}

/// A run that waits.
#[derive(Debug)]
struct Waiter {
    number: u64,
    waker: Waker,
    /// When it was woken.
    woken: Option<Instant>,
}

impl Waiter {
    /// A future that is not polled blocks others for at most this time.
    const PATIENCE: Duration = Duration::from_millis(20);

    fn is_away(&self) -> bool {
        self.woken.is_some_and(|since| since.elapsed() >= Waiter::PATIENCE)
    }
}

impl Processes {
    /// Removes a run from the queue.
    fn leave(&mut self, number: u64) {
        self.queue.retain(|waiter| waiter.number != number);
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A run's wait for a slot in a domain. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Wait {
    domain: Arc<DomainState>,
    number: Option<u64>,
}

impl Wait {
    /// Returns a slot if it is this run's turn and one is free. Otherwise the waker is called when that may be the
    /// case.
    pub(crate) fn try_take(&mut self, order: &Order, waker: &Waker) -> Option<Taken> {
        let mut processes = self.domain.lock();
        let mut before = processes.queue.iter().take_while(|waiter| Some(waiter.number) != self.number);
        let is_next = before.all(Waiter::is_away);
        match is_next.then(|| self.domain.place_of(&mut processes, order)).flatten() {
            Some(place) => {
                if let Some(number) = self.number.take() {
                    processes.leave(number);
                }
                // There may be room for another one.
                self.domain.wake_next(processes);
                Some(place.taken())
            }
            None => {
                let number = *self.number.get_or_insert_with(|| {
                    processes.last += 1;
                    processes.last
                });
                let waiter = Waiter { number, waker: waker.clone(), woken: None };
                match processes.queue.iter_mut().find(|waiter| waiter.number == number) {
                    Some(known) => *known = waiter,
                    None => processes.queue.push_back(waiter),
                }
                None
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let mut processes = self.domain.lock();
            processes.leave(number);
            self.domain.wake_next(processes);
        }
    }
}

/// A process between two runs.
#[derive(Debug)]
struct Warm {
    running: Box<Running>,
    served: u64,
    since: Instant,
    rests_since: Instant,
    _counted: Counted,
}

/// A slot in a domain, and its process.
struct Place {
    seat: Seat,
    /// A process that suits the run.
    warm: Option<Warm>,
    /// Processes past their maximum age, and one that does not suit and makes room.
    ended: Vec<Warm>,
}

impl Place {
    /// Checks that the process can be used and ends it if not. The lock is not held meanwhile.
    fn taken(self) -> Taken {
        let Place { mut seat, warm, ended } = self;
        drop(ended);
        let running = warm.and_then(|mut warm| {
            let is_of_use = warm.running.is_at_rest();
            is_of_use.then(|| {
                (seat.served, seat.since) = (warm.served, warm.since);
                warm.running
            })
        });
        (seat, running)
    }
}

/// Counts as an idle process while it exists.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn among(all: &Arc<AtomicUsize>) -> Counted {
        all.fetch_add(1, Ordering::Relaxed);
        Counted(all.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A slot in a domain, and the process that it already has.
pub(crate) type Taken = (Seat, Option<Box<Running>>);

impl DomainState {
    fn lock(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if only the table has a handle to it and no run is in progress. No run can start while the table is
    /// locked.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// Starts waiting for a slot.
    pub(crate) fn wait(self: &Arc<Self>) -> Wait {
        Wait { domain: self.clone(), number: None }
    }

    /// Waits for a slot until the run's deadline.
    pub(crate) fn take(self: &Arc<Self>, order: &Order, host: &HostHalf) -> Result<Taken, Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut wait = self.wait();
        loop {
            if let Some(taken) = wait.try_take(order, &waker) {
                return Ok(taken);
            }
            std::thread::park_timeout(self.time_to_wait(host)?.min(Waiter::PATIENCE));
        }
    }

    /// Returns the number of its processes.
    pub(crate) fn alive(&self) -> usize {
        self.lock().alive
    }

    /// Returns how long a run without a slot may continue to wait.
    ///
    /// # Errors
    /// Returns an error if its time is over or it was cancelled.
    pub(crate) fn time_to_wait(&self, host: &HostHalf) -> Result<Duration, Error> {
        verdict::time_to_wait(host, || {
            let (many, name) = (self.limits.processes.max(1), verdict::clean(&self.name, DomainLimits::NAME_BYTES));
            format!(
                "the {many} processes of the domain {name} were in use until then: raise DomainLimits::processes, or have fewer \
                 runs at once"
            )
        })
    }

    /// Returns a slot for a run, with an idle process that suits it if there is one.
    fn place_of(self: &Arc<Self>, processes: &mut Processes, order: &Order) -> Option<Place> {
        let suits = |warm: &Warm| {
            let ordered = warm.running.ordered();
            let covers = |has: u64, wanted: u64| has == 0 || wanted > 0 && has >= wanted;
            let may_thread = ordered.threads || !order.threads;
            may_thread && covers(ordered.memory, order.memory) && covers(ordered.cpu_s, order.cpu_s)
        };
        let past = |warm: &mut Warm| !self.may_serve(warm.served, warm.since);
        let mut ended: Vec<Warm> = processes.idle.extract_if(.., past).collect();
        processes.alive -= ended.len();
        let mut warm = None;
        if let Some(at) = processes.idle.iter().rposition(suits) {
            warm = Some(processes.idle.remove(at));
        } else if processes.alive < self.limits.processes.max(1) {
            processes.alive += 1;
        } else if !processes.idle.is_empty() {
            ended.push(processes.idle.remove(0));
        } else {
            return None;
        }
        let seat = Seat { domain: self.clone(), served: 0, since: Instant::now(), left: false };
        Some(Place { seat, warm, ended })
    }

    /// Removes idle processes, which end when they are dropped.
    fn give_up(&self, which: impl Fn(&Warm) -> bool) -> Vec<Warm> {
        let mut processes = self.lock();
        let given_up: Vec<Warm> = processes.idle.extract_if(.., |warm| which(warm)).collect();
        processes.alive -= given_up.len();
        given_up
    }

    /// Wakes the next run if there is room for it. The lock is released before: a waker is the host's code.
    fn wake_next(&self, mut processes: MutexGuard<'_, Processes>) {
        if processes.idle.is_empty() && processes.alive >= self.limits.processes.max(1) {
            return;
        }
        let next = processes.queue.iter_mut().find(|waiter| !waiter.is_away()).map(|waiter| {
            waiter.woken.get_or_insert_with(Instant::now);
            waiter.waker.clone()
        });
        drop(processes);
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Changes the state and wakes a waiting run.
    fn put(&self, change: impl FnOnce(&mut Processes)) {
        let mut processes = self.lock();
        change(&mut processes);
        self.wake_next(processes);
    }

    fn may_serve(&self, served: u64, since: Instant) -> bool {
        served < self.limits.runs.max(1) && since.elapsed() < self.limits.max_age
    }
}

/// A run's slot in its domain. Dropping it ends its process.
#[derive(Debug)]
pub(crate) struct Seat {
    domain: Arc<DomainState>,
    served: u64,
    since: Instant,
    /// The process stays alive.
    left: bool,
}

impl Seat {
    /// Ends a run whose process has sent its report. The process is kept for the next run if its limits allow it.
    pub(crate) fn end(
        mut self,
        mut running: Box<Running>,
        report: Report,
        host: &mut HostHalf,
        domains: &Domains,
    ) -> Outcome {
        running.end_run(host);
        let outcome = host.finish(report);
        self.served += 1;
        let in_order = outcome.verdict() != Verdict::HostFault;
        if in_order
            && running.growth_bytes() <= self.domain.limits.growth_bytes
            && self.domain.may_serve(self.served, self.since)
            && running.is_at_rest()
        {
            self.left = true;
            let warm = Warm {
                running,
                served: self.served,
                since: self.since,
                rests_since: Instant::now(),
                _counted: Counted::among(&self.domain.all_idle),
            };
            self.domain.put(|processes| processes.idle.push(warm));
        }
        domains.tend();
        outcome
    }

    /// Returns true if its process has served a run before.
    pub(crate) fn is_warm(&self) -> bool {
        self.served > 0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.left {
            self.domain.put(|processes| processes.alive -= 1);
        }
    }
}
