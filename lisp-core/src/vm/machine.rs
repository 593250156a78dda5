//! A run as a value: its parts, its beginning, its account.

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

/// Why [`Machine::resume`] has returned.
#[derive(Debug)]
pub enum Step {
    /// The slice of fuel is used up; resume again.
    Paused,
    /// The driver is to do this and tell the machine, then resume it.
    Effect(Effect),
    /// The run is over.
    Done(Ending),
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// With the value of the last form.
    Value,
    /// By `(return v)`.
    Return,
    /// By `(fail v)`.
    Fail,
    /// With an error; the definitions are as they were.
    Error(Box<Error>),
}

/// The fuel and memory that a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Units of fuel.
    pub fuel: u64,
    /// Units of fuel that a run whose time was over had spent besides, on work that was cut off: how far that came depends on the
    /// moment. 0 for any other run.
    pub cut_off_fuel: u64,
    /// The most bytes held at once.
    pub heap_peak_bytes: usize,
    /// Bytes held now.
    pub heap_live_bytes: usize,
    /// Bytes allocated in all.
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

/// A program that was loaded.
pub(super) struct Loaded {
    /// What errors in it call it by.
    pub(super) number: u64,
    pub(super) program: Arc<Program>,
    /// About how many bytes it takes.
    pub(super) bytes: usize,
}

/// Where the work of a run stands: the number of frames, and in the last one the instruction, or the element and whether its
/// call has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) frames: usize,
    pub(super) at: usize,
    pub(super) called: bool,
}

/// A run, or a series of them over the same definitions: a pure state machine that owns all its state.
pub struct Machine {
    pub(super) store: Store<Roots>,
    pub(super) settings: Settings,
    pub(super) grants: Vec<Arc<Grant>>,
    /// Names of the definitions, in the order of the state's.
    pub(super) names: Vec<Box<str>>,
    pub(super) places: Table<Box<str>, usize>,
    pub(super) status: Status,
    pub(super) baseline: usize,
    /// The fuel that the instruction needs at which the run has paused.
    pub(super) wanted: u64,
    /// The fuel that was spent when the run was resumed last.
    pub(super) resumed_at: Option<u64>,
    /// The fuel that was spent when the time was asked for.
    pub(super) clock_asked_at: u64,
    /// Where the last expression of the program stands, and the number of the program.
    pub(super) whole: Option<(Span, u64)>,
    /// The programs that were loaded, by their numbers among the state's units; none in the place of one that is forgotten.
    pub(super) loaded: Vec<Option<Loaded>>,
    /// Places of definitions whose names nothing uses any more.
    pub(super) free_places: Vec<usize>,
    /// The budget before constants of programs needed more.
    pub(super) budget: Option<usize>,
    /// What it takes to undo turns was let go.
    pub(super) let_go: bool,
    /// The fuel at which the work began for which the heap was compacted last, and where it stands, while it has not succeeded.
    pub(super) collected_at: Option<(u64, Position)>,
    /// The epoch of its heap while that is with workers.
    pub(super) branched: Option<Arc<()>>,
    /// A compaction is under way for an instruction that needs this many bytes.
    pub(super) compacting_for: Option<usize>,
    /// Allocations until the heap is compacted without need.
    pub(super) stride: u64,
    pub(super) fuel_at_load: u64,
    /// What the work under way has spent in beginnings that were taken back, and the fuel at which it begins.
    pub(super) taken_back: (u64, u64),
    /// The fuel of work that was cut off by the end of the run, and of what its workers did behind a failure of time.
    pub(super) cut_off_fuel: u64,
    /// The machine that a worker works for, at rest.
    pub(super) parent: Option<Arc<SuspendedHeap<Roots>>>,
}

/// Regions of runs begin here; frozen arenas have region 0.
const RUN_REGION: u32 = 1;

impl Machine {
    /// A machine over what the host grants; a later grant's names win.
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

    /// An empty heap and empty roots, limited as the settings say.
    pub(super) fn store(settings: &Settings, empty: impl FnOnce(usize) -> Ctx) -> Store<Roots> {
        let context = empty(if settings.heap_bytes == 0 { usize::MAX } else { settings.heap_bytes });
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

    /// The bytes that the host has granted: the baseline, above which the budget begins.
    pub fn baseline_bytes(&self) -> usize {
        self.baseline
    }

    /// Gives the machine a flag that interrupts the run from outside: when it is set, the run pauses within a few thousand
    /// units of fuel. It stays until the next program is loaded. Without a flag a built-in that needs more fuel than a slice
    /// has begins again with the next slice; with one it goes on.
    pub fn watch(&mut self, interrupt: Arc<AtomicBool>) {
        self.store.heap().meter.watch(Some(interrupt));
    }

    /// Makes what is held now part of the baseline and gives the programs to come a budget of their own above it; 0
    /// is no limit. Returns the bytes held.
    pub fn rebaseline(&mut self, heap_bytes: usize) -> usize {
        let used = self.store.heap().account().used;
        let limit = if heap_bytes == 0 { usize::MAX } else { used.saturating_add(heap_bytes) };
        self.store.rebudget(limit);
        self.baseline = self.baseline.saturating_add(used);
        used
    }

    /// The fuel and memory that have been used so far.
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
