//! The domains of a sandbox: which processes they have, and which run has which.

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

/// How often it is looked which idle processes are past their life, at most.
const TENDING: Duration = Duration::from_secs(1);

/// The limits of the domains of a [`Sandbox`](crate::Sandbox).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainLimits {
    /// Processes of one domain, each of which serves one run at a time; more runs wait. The default is 4; 0 counts as 1.
    pub processes: usize,
    /// Runs after which a process is replaced: 10,000.
    pub runs: u64,
    /// Bytes by which a process may have grown, at its peak, before it is replaced: 64 MiB. It is the process that says so;
    /// one that lies is held by the address space of its runs' limits.
    pub growth_bytes: u64,
    /// The time after which a process serves no further run: 60 s. One that is idle then ends when the next run of any domain does.
    /// Beyond that and the time limit of one run it has no processor time.
    pub life: Duration,
    /// Domains with processes at once: 64. For another one, the domain that was used least recently gives up its idle processes.
    pub domains: usize,
    /// Processes without a run, in all domains together: 64. For one more, the one that was used least recently ends. Each has two or
    /// three descriptors of the host. They end, too, when a run finds no room for its process or the host has no descriptors left.
    pub idle: usize,
}

impl Default for DomainLimits {
    fn default() -> Self {
        DomainLimits {
            processes: 4,
            runs: 10_000,
            growth_bytes: 64 << 20,
            life: Duration::from_secs(60),
            domains: 64,
            idle: 64,
        }
    }
}

impl DomainLimits {
    /// The longest name of a domain, in bytes.
    pub const NAME_BYTES: usize = 128;
}

/// The domains of a sandbox that are in use, or have processes.
#[derive(Debug)]
pub(crate) struct Domains {
    limits: DomainLimits,
    table: Mutex<Table>,
    /// The idle processes that there are.
    idle: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Table {
    uses: u64,
    /// When it was last looked which idle processes are past their life.
    tended: Option<Instant>,
    by_name: BTreeMap<Box<str>, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The number of its last use.
    used: u64,
    state: Arc<DomainState>,
}

/// Checks a name of a domain, and says what is wrong with it.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let most = DomainLimits::NAME_BYTES;
    match name.len() {
        0 => Err(format!("its name is empty; 1 to {most} bytes can be")),
        bytes if bytes > most => Err(format!("its name has {bytes} bytes; 1 to {most} can be")),
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
                let most = self.limits.domains;
                let why = format!("{most} others are in use, the limit domains of Builder::domain_limits");
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
        // Its processes are killed without holding up others.
        drop(given_up);
        Ok(state)
    }

    /// Ends the idle process that was used least recently. Returns whether there was one.
    pub(crate) fn give_up_one(&self) -> bool {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let states = table.by_name.values().map(|entry| &entry.state);
        let oldest =
            states.filter_map(|state| Some((state.lock().idle.first()?.rests_since, state))).min_by_key(|it| it.0);
        let given_up = oldest.map(|(since, state)| state.give_up(|warm| warm.rests_since == since));
        drop(table);
        // It is killed without holding up others.
        given_up.is_some_and(|given_up| !given_up.is_empty())
    }

    /// Ends the idle processes that there are too many of, or that are past their life.
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
    /// The idle processes of all domains.
    all_idle: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Processes {
    /// The one that was used last at the end.
    idle: Vec<Warm>,
    /// Those at work and those to be made, besides.
    alive: usize,
    /// Runs that wait for one, the one that came first in front. Nobody overtakes them.
    queue: VecDeque<Waiter>,
    /// The number of the last run that had to wait.
    last: u64,
}

/// A run that waits.
#[derive(Debug)]
struct Waiter {
    number: u64,
    waker: Waker,
    /// Since when it could have come.
    woken: Option<Instant>,
}

impl Waiter {
    /// A future that is kept and not polled holds up nobody for longer than this.
    const PATIENCE: Duration = Duration::from_millis(20);

    fn is_away(&self) -> bool {
        self.woken.is_some_and(|since| since.elapsed() >= Waiter::PATIENCE)
    }
}

impl Processes {
    /// A run waits no more.
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

/// A run's wait for a place in a domain. It leaves the queue when it is dropped.
#[derive(Debug)]
pub(crate) struct Wait {
    domain: Arc<DomainState>,
    number: Option<u64>,
}

impl Wait {
    /// A place, if it is this run's turn and there is one; otherwise the waker is woken when that may be so.
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

/// A place in a domain, and what was there.
struct Place {
    seat: Seat,
    /// One that suits the run.
    warm: Option<Warm>,
    /// Those that are past their life, and one that does not suit and makes room.
    ended: Vec<Warm>,
}

impl Place {
    /// Looks whether the process is of use; one that is not ends. Others do not wait for that.
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

/// Counts as an idle process while it is there.
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

/// A place in a domain, and the process that is there already.
pub(crate) type Taken = (Seat, Option<Box<Running>>);

impl DomainState {
    fn lock(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it no handle but that of the table, and no run under way? Nobody can begin one while the table is locked.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// Begins to wait for a place.
    pub(crate) fn wait(self: &Arc<Self>) -> Wait {
        Wait { domain: self.clone(), number: None }
    }

    /// A place for a run, waited for until the run's deadline.
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

    /// The processes that there are.
    pub(crate) fn alive(&self) -> usize {
        self.lock().alive
    }

    /// How long a run that has found no place may go on to wait.
    ///
    /// # Errors
    /// Its time is over, or it was cancelled.
    pub(crate) fn time_to_wait(&self, host: &HostHalf) -> Result<Duration, Error> {
        verdict::time_to_wait(host, || {
            let (many, name) = (self.limits.processes.max(1), verdict::clean(&self.name, DomainLimits::NAME_BYTES));
            format!(
                "the {many} processes of the domain {name} were taken until then: raise DomainLimits::processes, or have fewer \
                 runs at once"
            )
        })
    }

    /// A place for a run, and a process that suits it, if there is one.
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

    /// Takes idle processes out, which end when they are dropped.
    fn give_up(&self, which: impl Fn(&Warm) -> bool) -> Vec<Warm> {
        let mut processes = self.lock();
        let given_up: Vec<Warm> = processes.idle.extract_if(.., |warm| which(warm)).collect();
        processes.alive -= given_up.len();
        given_up
    }

    /// Wakes the run that is next, if there is room for it: when nothing is locked, as a waker is the host's code.
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

    /// Changes what there is, for a run that waits.
    fn put(&self, change: impl FnOnce(&mut Processes)) {
        let mut processes = self.lock();
        change(&mut processes);
        self.wake_next(processes);
    }

    fn may_serve(&self, served: u64, since: Instant) -> bool {
        served < self.limits.runs.max(1) && since.elapsed() < self.limits.life
    }
}

/// A run's place in its domain. When it is dropped, its process is gone.
#[derive(Debug)]
pub(crate) struct Seat {
    domain: Arc<DomainState>,
    served: u64,
    since: Instant,
    /// The process stays.
    left: bool,
}

impl Seat {
    /// The end of a run whose process has given its report; the process is there for the next run, if it may be.
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

    /// Had its process served before?
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
