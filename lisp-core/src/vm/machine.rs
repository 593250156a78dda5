//! A run as a value: its parts, its start, its account.

use super::prelude;
use super::settings::Settings;
use super::{Effect, Grant};
use crate::Table;
use crate::compile::Program;
use crate::context::Ctx;
use crate::error::{Error, Span};
use crate::heap::{Heap, Store, SuspendedHeap};
use crate::library::text_of;
use crate::stack::{Roots, State, Units};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why [`Machine::resume`] returned.
#[derive(Debug)]
pub enum Step {
    /// The slice of fuel is used up; resume again.
    Paused,
    /// The driver must perform this effect, inform the machine, and resume it.
    Effect(Effect),
    /// The run has ended.
    Done(Ending),
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// With the value of the last form.
    Value,
    /// With `(return v)`.
    Return,
    /// With `(fail v)`.
    Fail,
    /// With an error; the definitions are as before the run.
    Error(Box<Error>),
}

/// The fuel and memory that a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Units of fuel.
    pub fuel: u64,
    /// Additional units of fuel that a run past its deadline spent on work that was interrupted. How far that work came
    /// varies. 0 for any other run.
    pub cut_off_fuel: u64,
    /// The maximum number of bytes held at once.
    pub heap_peak_bytes: usize,
    /// Bytes held now.
    pub heap_live_bytes: usize,
    /// Total bytes allocated.
    pub allocated_bytes: u64,
    /// The number of compactions of the heap.
    pub compactions: u64,
}

pub(super) enum Status {
    Idle,
    Ready,
    Awaiting(Effect),
    Ended(Ending),
}

/// A loaded program.
pub(super) struct Loaded {
    /// The number by which errors refer to it.
    pub(super) number: u64,
    pub(super) program: Arc<Program>,
    /// Its approximate size in bytes.
    pub(super) bytes: usize,
}

/// The position of a run: the number of frames, and in the last one the instruction, or the element and whether its
/// call has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) frames: usize,
    pub(super) at: usize,
    pub(super) called: bool,
}

/// A run, or a series of runs with the same definitions: a pure state machine that owns all its state.
pub struct Machine {
    pub(super) store: Store<Roots>,
    pub(super) settings: Settings,
    pub(super) grants: Vec<Arc<Grant>>,
    /// Names of the definitions, in the order of the state's.
    pub(super) names: Vec<Box<str>>,
    pub(super) places: Table<Box<str>, usize>,
    pub(super) status: Status,
    pub(super) baseline: usize,
    /// The fuel spent that the instruction needs at which the run has paused.
    pub(super) wanted: u64,
    /// The fuel spent when the run was last resumed.
    pub(super) resumed_at: Option<u64>,
    /// The fuel spent when the time was requested.
    pub(super) clock_asked_at: u64,
    /// The position of the last expression of the program, and the number of the program.
    pub(super) whole: Option<(Span, u64)>,
    /// The loaded programs, by their index among the state's units; `None` for a forgotten one.
    pub(super) loaded: Vec<Option<Loaded>>,
    /// Slots of definitions whose names are no longer used.
    pub(super) free_places: Vec<usize>,
    /// The memory limit before constants of programs needed more.
    pub(super) budget: Option<usize>,
    /// The state for undoing turns was dropped.
    pub(super) let_go: bool,
    /// For the last compaction: the fuel spent at which its instruction started, and the position; until the
    /// instruction succeeds.
    pub(super) collected_at: Option<(u64, Position)>,
    /// The epoch of its heap while workers use it.
    pub(super) branched: Option<Arc<()>>,
    /// A compaction is in progress for an instruction that needs this many bytes.
    pub(super) compacting_for: Option<usize>,
    /// The number of allocations until the next forced compaction.
    pub(super) stride: u64,
    pub(super) fuel_at_load: u64,
    /// What earlier attempts of the current work spent before they were taken back, and the fuel at which the work
    /// starts.
    pub(super) taken_back: (u64, u64),
    /// The fuel of work interrupted by the end of the run, and of what its workers did after a timeout.
    pub(super) cut_off_fuel: u64,
    /// For a worker: the suspended machine that it works for.
    pub(super) parent: Option<Arc<SuspendedHeap<Roots>>>,
}

/// The first region number of runs; frozen arenas have region 0.
const RUN_REGION: u32 = 1;

impl Machine {
    /// Creates a machine with what the host grants; names of later grants take precedence.
    pub fn new(grants: Vec<Arc<Grant>>, settings: Settings) -> Machine {
        let mut store = Machine::store(&settings, |limit| Ctx::new(Heap::new(RUN_REGION, limit).showing(text_of)));
        for grant in &grants {
            store.pin(grant.clone());
        }
        let baseline = grants.iter().map(|g| g.bytes()).sum();
        let mut machine = Machine::over(store, grants, settings, baseline, Status::Idle);
        machine.adopt_grants();
        machine
    }

    pub(super) fn over(
        store: Store<Roots>,
        grants: Vec<Arc<Grant>>,
        settings: Settings,
        baseline: usize,
        status: Status,
    ) -> Machine {
        Machine {
            store,
            settings,
            grants,
            names: Vec::new(),
            places: Table::default(),
            status,
            baseline,
            wanted: 0,
            resumed_at: None,
            clock_asked_at: 0,
            whole: None,
            loaded: Vec::new(),
            free_places: Vec::new(),
            budget: None,
            let_go: false,
            collected_at: None,
            branched: None,
            compacting_for: None,
            stride: 0,
            fuel_at_load: 0,
            taken_back: (0, 0),
            cut_off_fuel: 0,
            parent: None,
        }
    }

    /// Creates an empty heap and empty roots, with the limits of the settings.
    pub(super) fn store(settings: &Settings, empty: impl FnOnce(usize) -> Ctx) -> Store<Roots> {
        let mut context = empty(if settings.heap_bytes == 0 { usize::MAX } else { settings.heap_bytes });
        if settings.notes {
            context.watch_misses(crate::check::similar);
        }
        {
            let mut prints = context.prints.borrow_mut();
            prints.line_chars = settings.print_chars;
            prints.total_bytes = settings.prints_bytes;
            prints.pauses = settings.print_pauses;
        }
        context.clock.fix(settings.now_ms);
        if let Some(every) = settings.compact_every {
            context.trap_after(every.max(1));
        }
        let loop_limit = if settings.loop_iterations == 0 { u64::MAX } else { settings.loop_iterations };
        Store::new(context, State::new(loop_limit, Units::new(prelude::unit)))
    }

    /// Returns the size of what the host has granted: the baseline, on top of which the memory limit applies.
    pub fn baseline_bytes(&self) -> usize {
        self.baseline
    }

    /// Sets a flag that interrupts the run from outside. When it is set, the run pauses within a few thousand units of
    /// fuel. The flag is kept until the next program is loaded. A built-in that needs more fuel than a slice continues
    /// if there is a flag. Without one, it starts over in the next slice.
    pub fn watch(&mut self, interrupt: Arc<AtomicBool>) {
        self.store.heap().meter.watch(Some(interrupt));
    }

    /// Removes the flag that ends the run from outside.
    pub fn unwatch(&mut self) {
        self.store.heap().meter.watch(None);
    }

    /// Makes everything held now part of the baseline, and gives later programs a memory limit on top of it; 0 means
    /// unlimited. Returns the bytes held.
    pub fn rebaseline(&mut self, heap_bytes: usize) -> usize {
        let used = self.store.heap().account().used;
        let limit = if heap_bytes == 0 { usize::MAX } else { used.saturating_add(heap_bytes) };
        self.store.rebudget(limit);
        self.baseline = self.baseline.saturating_add(used);
        used
    }

    /// Returns the fuel and memory used so far.
    pub fn usage(&self) -> Usage {
        let account = self.store.heap().account();
        Usage {
            fuel: self.store.heap().spent() - self.fuel_at_load,
            cut_off_fuel: self.cut_off_fuel,
            heap_peak_bytes: account.peak,
            heap_live_bytes: account.used,
            allocated_bytes: account.allocated,
            compactions: account.compactions,
        }
    }
}
