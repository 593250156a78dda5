//! Parallel calls. A worker is a machine over the heap of its caller: it reads existing values without copying them,
//! and has a heap of its own for new ones. The worker copies its result out once, and the caller takes it in without
//! copying.

use super::Effect;
use super::errors::{budget_error, is_limit};
use super::machine::{Ending, Machine, Status, Usage};
use super::settings::Settings;
use crate::context::{Ctx, InheritedPatterns, Prints};
use crate::error::{Detail, Error, Reason};
use crate::heap::{ExportedValue, Heap, Misses, Store, SuspendedHeap};
use crate::library::text_of;
use crate::natives;
use crate::stack::{NativeFn, ParallelFn, Roots, State, Units};
use std::sync::Arc;

/// A parallel call, which waits for the driver to run its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelCall {
    /// The function's name: `pmap` or `pcalls`.
    pub name: &'static str,
    /// The number of its calls.
    pub count: usize,
    /// The number of calls that have been joined.
    pub joined: usize,
}

/// The region of the empty heap that a machine has while workers use its own: neither a run's region nor that of frozen
/// arenas.
const RESTING_REGION: u32 = 1 << 28;

/// A suspended machine for its workers to read.
#[derive(Clone)]
pub struct Branch {
    shared: Arc<SuspendedHeap<Roots>>,
    patterns: Arc<InheritedPatterns>,
    baseline: usize,
    /// Units of fuel that the caller may still spend.
    fuel: Option<u64>,
}

/// How a worker ended.
pub struct WorkerEnd {
    result: Result<ExportedValue, Box<Error>>,
    usage: Usage,
    prints: Prints,
    misses: Misses,
}

impl WorkerEnd {
    /// Creates the end of a worker that could not start, or whose machine is lost.
    pub fn failed(error: Error) -> Self {
        let result = Err(Box::new(error));
        WorkerEnd { result, usage: Usage::default(), prints: Prints::default(), misses: Misses::default() }
    }

    /// Returns the error that the worker ended with.
    pub fn error(&self) -> Option<&Error> {
        self.result.as_ref().err().map(|error| &**error)
    }

    /// Returns the lines that the worker printed.
    pub fn lines(&self) -> &[String] {
        self.prints.lines()
    }

    /// Returns the bytes that it holds until it is joined.
    pub fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, ExportedValue::bytes) + self.prints.bytes() + std::mem::size_of::<WorkerEnd>()
    }

    /// Returns the fuel and memory that the worker used.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}

/// What a joined worker has used and left behind.
struct Joined {
    usage: Usage,
    prints: Prints,
    misses: Misses,
    /// The live bytes of its result.
    live: usize,
}

/// Why the results of workers end a run.
enum TooMuch {
    /// They do not fit the memory limit.
    Held,
    Stopped(Box<Error>),
}

impl Branch {
    /// Returns the units of fuel that the caller may still spend; all workers together may spend no more.
    pub fn fuel(&self) -> Option<u64> {
        self.fuel
    }

    /// Creates a machine for call `index`, with its own settings. Resume it to its end, then call
    /// [`Machine::end_worker`].
    ///
    /// # Errors
    /// Returns an error if the worker does not fit its memory limit.
    pub fn worker(&self, index: usize, settings: &Settings) -> Result<Machine, Error> {
        let context = |limit| Ctx::of_worker(self.shared.heap_above(limit).showing(text_of), &self.patterns);
        let mut store = Machine::store(settings, context);
        let parent = store.pin(self.shared.clone());
        let started = store.enter(|h, state, keep| {
            let Some(parent) = keep.get::<SuspendedHeap<Roots>>(parent) else { return Ok(()) };
            state.start_worker(h, parent.roots(), index)
        });
        let mut machine = Machine::over(store, Vec::new(), settings.clone(), self.baseline, Status::Ready);
        machine.parent = Some(self.shared.clone());
        match started {
            Ok(()) => Ok(machine),
            Err(fault) => Err(machine.error_of(fault)),
        }
    }
}

impl<'h> State<'h> {
    fn start_worker(&mut self, h: &'h Ctx, parent: &State<'h>, index: usize) -> crate::heap::Res<()> {
        let definitions = parent.globals.len();
        h.charge_external(definitions * std::mem::size_of::<crate::heap::Value<'_>>())?;
        self.globals.extend_from_slice(&parent.globals);
        self.units = parent.units.clone();
        self.worker = true;
        match parent.parallel().and_then(|(_, parallel)| (parallel.worker_call)(parent, index)) {
            Some(call) => natives::push_worker(h, self, &call),
            None => Err(Error::new(Reason::HostFault, "a worker without a call").into()),
        }
    }

    /// Returns the function of the frame on top, if workers make its calls.
    fn parallel(&self) -> Option<(&'static NativeFn, &'static ParallelFn)> {
        let native = self.native_frame()?.native;
        Some((native, native.parallel.as_ref()?))
    }
}

impl Machine {
    /// Returns the parallel call that the machine waits for.
    pub fn parallel_call(&mut self) -> Option<ParallelCall> {
        if !matches!(self.status, Status::Awaiting(Effect::Parallel)) {
            return None;
        }
        self.store.enter(|_, state, _| {
            let (count, results) = natives::waiting(state)?;
            Some(ParallelCall { name: state.parallel()?.0.name, count, joined: results.len() })
        })
    }

    /// Suspends the machine, so that workers on any thread can read its heap. Until [`Machine::rejoin`] it can do
    /// nothing else.
    pub fn branch(&mut self) -> Branch {
        let resting = Store::new(Ctx::new(Heap::new(RESTING_REGION, 0)), State::new(0, Units::new(|_| None)));
        let fuel = self.settings.fuel.map(|fuel| {
            let spent = self.store.heap().spent() - self.fuel_at_load;
            fuel.saturating_sub(spent)
        });
        let patterns = self.store.context().inherited_patterns();
        let shared = std::mem::replace(&mut self.store, resting).suspend();
        self.branched = Some(shared.epoch());
        Branch { shared, patterns, baseline: self.baseline, fuel }
    }

    /// Returns half of the memory limit, for workers that run while the machine is suspended; 0 means unlimited.
    ///
    /// # Errors
    /// Returns an error if the machine itself holds more than the other half.
    pub fn half_budget(&mut self) -> Result<usize, Error> {
        let limit = self.store.heap().account().limit;
        if limit == usize::MAX {
            return Ok(0);
        }
        // If the machine is stopped meanwhile, its workers are stopped at once too.
        let is_stopped = self.store.heap().account().used > limit / 2 && self.collect_watched().is_err();
        let held = self.store.heap().account().used;
        if is_stopped || held <= limit / 2 {
            return Ok(limit / 2);
        }
        let what =
            format!("holds {held} bytes and calls workers inside its own slot; it may hold half of its budget then");
        Err(self.over_budget(what).hint(
            "keep less data around the inner call, use map in its place, or raise the limits worker_heap_bytes or parallel_workers",
        ))
    }

    /// Resumes a suspended machine.
    ///
    /// # Errors
    /// Returns the branch if a worker or a copy of it still exists, or if it belongs to another machine.
    pub fn rejoin(&mut self, branch: Branch) -> Result<(), Branch> {
        if !self.branched.as_ref().is_some_and(|epoch| Arc::ptr_eq(epoch, &branch.shared.epoch())) {
            return Err(branch);
        }
        let Branch { shared, patterns, baseline, fuel } = branch;
        match Store::resume(shared) {
            Ok(store) => {
                self.branched = None;
                self.store = store;
                Ok(())
            }
            Err(shared) => Err(Branch { shared, patterns, baseline, fuel }),
        }
    }

    /// Ends a worker, and copies its result out of its heap.
    pub fn end_worker(self, ending: Ending) -> WorkerEnd {
        let usage = self.usage();
        let prints = self.store.context().prints.take();
        let misses = self.store.context().take_misses();
        let limit = self.store.heap().account().limit;
        let too_large = |what: &str| Box::new(budget_error(true, self.baseline, limit, what.to_owned()));
        let result = match (ending, &self.parent) {
            (Ending::Value, Some(parent)) => match self.store.export(parent, limit) {
                Ok(Some(sent)) => Ok(sent),
                Ok(None) => Err(too_large("answers more than it may hold")),
                Err(machine) => Err(Box::new(machine.into())),
            },
            (Ending::Error(error), _) => Err(error),
            (Ending::Value | Ending::Return | Ending::Fail, _) => {
                Err(Box::new(Error::new(Reason::HostFault, "a worker ended without a result")))
            }
        };
        WorkerEnd { result, usage, prints, misses }
    }

    /// Joins the next workers, in the order of their calls: the prints and the usage of all, and the results of those
    /// that have one. After the last result the machine can be resumed.
    ///
    /// # Errors
    /// The run has ended because the results do not fit the memory limit, or the workers used up its fuel. Returns the
    /// number of workers joined, including the one that exceeded the limit.
    pub fn join(&mut self, ends: Vec<WorkerEnd>) -> Result<(), usize> {
        let mut arrived = Vec::with_capacity(ends.len());
        let mut joined = Vec::with_capacity(ends.len());
        for WorkerEnd { result, usage, prints, misses } in ends {
            let live = result.as_ref().map_or(0, ExportedValue::live_bytes);
            joined.push(Joined { usage, prints, misses, live });
            arrived.extend(result);
        }
        let ended = self.take_results(arrived).err();
        let (kept, held) = match &ended {
            Some(TooMuch::Held) => self.first_beyond(&joined),
            _ => (joined.len(), 0),
        };
        let heap = self.store.context();
        for Joined { usage, prints, misses, .. } in joined.into_iter().take(kept) {
            heap.meter.add_spent(usage.fuel);
            self.cut_off_fuel = self.cut_off_fuel.saturating_add(usage.cut_off_fuel);
            heap.add_work(usage.allocated_bytes, usage.compactions);
            heap.prints.borrow_mut().absorb(prints);
            heap.absorb_misses(misses);
        }
        let ceiling = self.fuel_ceiling();
        let error = if self.store.heap().spent() > ceiling {
            self.store.heap().meter.set_spent(ceiling);
            self.fuel_error()
        } else {
            match ended {
                None => {
                    if self.parallel_call().is_some_and(|call| call.joined == call.count) {
                        self.status = Status::Ready;
                    }
                    return Ok(());
                }
                Some(TooMuch::Held) => self.over_budget(format!("holds {held} bytes with what its workers answered")),
                Some(TooMuch::Stopped(error)) => *error,
            }
        };
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
        Err(kept)
    }

    /// Takes in the results of workers.
    fn take_results(&mut self, arrived: Vec<ExportedValue>) -> Result<(), TooMuch> {
        let taken = self.store.import(arrived, |h, state, value| {
            if let Some((_, results)) = natives::waiting(state) {
                // Room for every result was allocated when the call started.
                let pushed = results.push(h, value);
                debug_assert!(pushed.is_ok());
            }
        });
        if !taken {
            let error = Error::new(Reason::HostFault, "results of another machine's workers");
            return Err(TooMuch::Stopped(Box::new(error)));
        }
        if self.store.heap().is_over() {
            if let Err(stopped) = self.collect_watched() {
                return Err(TooMuch::Stopped(Box::new(self.error_of(stopped))));
            }
            if !self.store.heap().fits(0) {
                return Err(TooMuch::Held);
            }
        }
        Ok(())
    }

    /// For results that do not fit after a compaction: returns the number of workers up to the first one that exceeds
    /// the limit, and the bytes held with it.
    fn first_beyond(&self, joined: &[Joined]) -> (usize, usize) {
        let account = self.store.heap().account();
        let (mut kept, mut held) = (joined.len(), account.used);
        while let Some(Joined { live, .. }) = kept.checked_sub(1).and_then(|last| joined.get(last))
            && held.saturating_sub(*live) > account.limit
        {
            held -= live;
            kept -= 1;
        }
        (kept, held)
    }

    /// Keeps the prints and the usage of workers whose results are no longer needed, because the time of the run is
    /// over.
    pub fn keep_work(&mut self, ends: Vec<WorkerEnd>) {
        let heap = self.store.context();
        for WorkerEnd { usage, prints, misses, .. } in ends {
            self.cut_off_fuel = self.cut_off_fuel.saturating_add(usage.fuel).saturating_add(usage.cut_off_fuel);
            heap.add_work(usage.allocated_bytes, usage.compactions);
            heap.prints.borrow_mut().absorb(prints);
            heap.absorb_misses(misses);
        }
    }

    /// Fails the parallel call with the error of a worker. The error gets the reason of the call, unless it is the
    /// error of a limit or `as_it_is` is set. Returns true if the program catches it and continues; otherwise the run
    /// has ended.
    pub fn fail_parallel(&mut self, mut error: Error, as_it_is: bool) -> bool {
        let reason = self.store.enter(|_, state, _| state.parallel().map(|(_, parallel)| parallel.reason));
        if let Some(reason) = reason
            && !is_limit(error.reason)
            && !as_it_is
        {
            let cause = error.reason;
            error = error.caused_by(cause);
            // A thrown value stays in the worker; its text is passed on.
            if let Some(Detail::Text(data)) = error.named_detail("data") {
                error.hint = Some(format!(
                    "its data is {data}; catch it inside the function that the workers call, where ex-data gives the data"
                ));
            }
            error.reason = reason;
            error.class = None;
        }
        self.raise(error)
    }
}
