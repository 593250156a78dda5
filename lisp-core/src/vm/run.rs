//! Starting, resuming and looking at a run.

mod load;

use super::exec::Exit;
use super::{Effect, Grant};
use crate::Table;
use crate::builtins::{near_names, text_of};
use crate::compile::Program;
use crate::context::Ctx;
use crate::cost;
use crate::error::{CallSite, Error, Reason, Span, Trace};
use crate::heap::{Fault, Heap, Res, Store, SuspendedHeap, Value};
use crate::stack::{Call, Code, Frame, Roots, State, Unit};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a run is limited. The defaults are those of the requirements; the deadline belongs to the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes the program may hold above the baseline; 0 is no limit.
    pub heap_bytes: usize,
    /// Rounds of one loop or recursive function by `recur`; 0 is no limit.
    pub loop_iterations: u64,
    /// Units of fuel.
    pub fuel: Option<u64>,
    /// Characters of one printed line; 0 is no limit.
    pub print_chars: usize,
    /// Bytes of all printed lines; 0 is no limit.
    pub prints_bytes: usize,
    /// Does a printed line end the slice, so that the driver can send it on at once?
    pub print_pauses: bool,
    /// Is a missing `data/name` an error?
    pub strict_data: bool,
    /// For tests: every so many allocations the heap is compacted, needed or not.
    pub compact_every: Option<u64>,
    /// What the clock says, in milliseconds since 1970; without it asking for the time is an error.
    pub now_ms: Option<i64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            heap_bytes: 10_000_000,
            loop_iterations: 1_000,
            fuel: None,
            print_chars: 2_000,
            prints_bytes: 1_000_000,
            print_pauses: false,
            strict_data: false,
            compact_every: None,
            now_ms: None,
        }
    }
}

/// What a call of [`Machine::resume`] came to.
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

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Units of fuel.
    pub fuel: u64,
    /// The most bytes held at once.
    pub heap_peak_bytes: usize,
    /// Bytes held now.
    pub heap_live_bytes: usize,
    /// Bytes allocated in all.
    pub allocated_bytes: u64,
    /// How often the heap was compacted.
    pub compactions: u64,
}

pub(super) enum Status {
    Idle,
    Ready,
    Awaiting(Effect),
    Ended(Ending),
}

/// A run, or a series of them over the same definitions: a pure state machine that owns all its state.
pub struct Machine {
    pub(super) store: Store<Roots>,
    pub(super) settings: Settings,
    grants: Vec<Arc<Grant>>,
    /// Names of the definitions, in the order of the state's.
    names: Vec<Box<str>>,
    places: Table<Box<str>, usize>,
    pub(super) status: Status,
    pub(super) baseline: usize,
    /// Fuel that the instruction that paused asked for.
    wanted: u64,
    /// Fuel that was spent when the time was asked for.
    clock_asked_at: u64,
    /// Where the last expression of the program stands, and the number of the program.
    whole: Option<(Span, u64)>,
    /// The programs that were loaded: their numbers, and where the store keeps them.
    loaded: Vec<(u64, usize)>,
    /// The fuel at which the instruction began for which the heap was compacted last, if it has not got through yet.
    collected_at: Option<u64>,
    /// A compaction is under way for an instruction that needs so many bytes.
    pub(super) compacting_for: Option<usize>,
    /// Allocations until the heap is compacted without need.
    pub(super) stride: u64,
    pub(super) fuel_at_load: u64,
    /// The machine that a worker works for, at rest.
    pub(super) parent: Option<Arc<SuspendedHeap<Roots>>>,
}

/// Regions of runs begin here; frozen arenas have region 0.
const RUN_REGION: u32 = 1;

/// What a compaction copies between two looks at whether to go on: little with debug assertions, so that tests come to it.
const COMPACTED_AT_ONCE: usize = if cfg!(debug_assertions) { 1 << 15 } else { 1 << 19 };

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
            clock_asked_at: 0,
            whole: None,
            loaded: Vec::new(),
            collected_at: None,
            compacting_for: None,
            stride: 0,
            fuel_at_load: 0,
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
        Store::new(context, State::new(loop_limit))
    }

    /// Definitions of earlier turns become definitions of the machine. Data and history are looked up when a program
    /// that names them is loaded.
    fn adopt_grants(&mut self) {
        for (i, grant) in self.grants.clone().iter().enumerate() {
            for (j, (name, _)) in grant.entries().enumerate() {
                if !name.contains('/') && !name.starts_with('*') {
                    self.adopt(i, j, name);
                }
            }
        }
    }

    fn place_of(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.names.len();
        self.names.push(name.into());
        self.places.insert(name.into(), place);
        self.store.enter(|_, state, _| state.globals.push(Value::Unset));
        place
    }

    /// Gives a definition the value at place `entry` of grant number `grant`.
    fn adopt(&mut self, grant: usize, entry: usize, name: &str) {
        let place = self.place_of(name);
        self.store.enter(|_, state, keep| {
            if let Some(grant) = keep.get::<Grant>(grant)
                && let Some(value) = grant.value(entry)
            {
                state.globals[place] = value;
            }
        });
    }

    /// Bytes of what the host granted: the baseline that the budget stands on.
    pub fn baseline_bytes(&self) -> usize {
        self.baseline
    }

    /// Gives the machine a flag that ends the run from outside: set, the run pauses at the next look, within a few
    /// thousand units of fuel. It holds until the next program is loaded. Without a flag a built-in that needs more fuel than a slice holds is begun again with
    /// the next slice; with one it is not cut short.
    pub fn watch(&mut self, interrupt: Arc<AtomicBool>) {
        self.store.heap().meter.watch(Some(interrupt));
    }

    /// Runs until a tool is to be called, the end, or about `slice` more units of fuel.
    pub fn resume(&mut self, slice: u64) -> Step {
        match std::mem::replace(&mut self.status, Status::Idle) {
            Status::Ready => {}
            Status::Awaiting(effect) => return self.wait_for(effect),
            Status::Ended(ending) => return Step::Done(ending),
            Status::Idle => {
                return Step::Done(Ending::Error(Box::new(Error::new(Reason::HostFault, "no program is loaded"))));
            }
        }
        let heap = self.store.heap();
        let ceiling = self.fuel_ceiling();
        if heap.is_over() {
            // By what the host took out or brought in since. The program asks for nothing.
            self.compacting_for.get_or_insert(0);
        }
        heap.meter.set_slice(heap.spent().max(self.wanted).saturating_add(slice), ceiling);
        let out = loop {
            if let Some(bytes) = self.compacting_for {
                match self.compact(bytes) {
                    None => {
                        self.status = Status::Ready;
                        return Step::Paused;
                    }
                    Some(false) => break Err(Fault::Collect(bytes)),
                    Some(true) => {}
                }
            }
            match self.store.enter(|h, state, _| state.run(h)) {
                Err(Fault::Collect(bytes)) if self.may_compact() => self.compacting_for = Some(bytes),
                out => break out,
            }
        };
        self.collected_at = None;
        match out {
            // The last instructions need not have looked at the ceiling.
            Ok(_) if self.store.heap().spent() > ceiling => {
                self.store.heap().meter.set_spent(ceiling);
                let error = self.fuel_error();
                self.finish(Ending::Error(Box::new(error)))
            }
            Ok(Exit::Effect(effect)) => self.wait_for(effect),
            Ok(Exit::Done(ending)) => self.finish(ending),
            Err(Fault::Pause(wanted)) if wanted <= ceiling => {
                let mark = self.store.heap().meter.restart_fuel();
                self.store.heap().meter.set_spent(mark);
                self.wanted = wanted;
                self.status = Status::Ready;
                Step::Paused
            }
            Err(Fault::Pause(_)) => {
                let mark = self.store.heap().meter.restart_fuel();
                self.store.heap().meter.set_spent(mark.min(ceiling));
                let error = self.fuel_error();
                self.finish(Ending::Error(Box::new(error)))
            }
            Err(Fault::Clock) => {
                let mark = self.store.heap().meter.restart_fuel();
                self.clock_asked_at = self.store.heap().spent();
                self.store.heap().meter.set_spent(mark);
                self.wait_for(Effect::Clock)
            }
            Err(fault) => {
                if let Fault::Collect(_) = fault {
                    // How far an instruction came for which there is no room is not the same each time.
                    let mark = self.store.heap().meter.restart_fuel();
                    self.store.heap().meter.set_spent(mark + cost::INSTRUCTION);
                }
                let error = self.error_of(fault);
                self.finish(Ending::Error(Box::new(error)))
            }
        }
    }

    /// Stops for an effect, until its driver has told the machine what came of it.
    fn wait_for(&mut self, effect: Effect) -> Step {
        self.status = Status::Awaiting(effect);
        Step::Effect(effect)
    }

    /// Tells the time that the machine waits for, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn tell_time(&mut self, time: i64) {
        if let Status::Awaiting(Effect::Clock) = self.status {
            self.store.context().clock.tell(self.clock_asked_at, time);
            self.status = Status::Ready;
        }
    }

    /// Is the heap to be compacted for an instruction, which then runs again? Not when that did not help the same
    /// instruction before.
    fn may_compact(&mut self) -> bool {
        let mark = self.store.heap().meter.restart_fuel();
        let again = self.collected_at.replace(mark) == Some(mark);
        let heap = self.store.heap();
        if heap.trapped_early() {
            // The instruction must get through some time: each time it gets one step further, twice as far.
            let every = self.settings.compact_every.unwrap_or_default().max(1);
            self.stride = if again { self.stride.saturating_mul(2) } else { every };
            heap.trap_after(self.stride);
        } else if again {
            return false;
        }
        self.store.heap().meter.set_spent(mark);
        true
    }

    /// Goes on with the compaction for an instruction that needs `bytes`, for less than a millisecond. Answers whether
    /// that helped; `None` when it is not at its end.
    fn compact(&mut self, bytes: usize) -> Option<bool> {
        let early = self.settings.compact_every.is_some();
        if !self.store.collect_some(if early { 256 } else { COMPACTED_AT_ONCE }) {
            return None;
        }
        self.compacting_for = None;
        let heap = self.store.heap();
        // What the host left behind does not choke the program.
        Some(heap.fits(bytes) && (early || bytes == 0 || !heap.is_thrashing()))
    }

    /// A whole compaction, between two instructions, unless the run is stopped.
    pub(super) fn collect_watched(&mut self) -> Res<()> {
        while !self.store.collect_some(COMPACTED_AT_ONCE) {
            self.store.heap().poll_interrupt()?;
        }
        Ok(())
    }

    /// How far the account of fuel may go.
    pub(super) fn fuel_ceiling(&self) -> u64 {
        self.settings.fuel.map_or(u64::MAX, |fuel| self.fuel_at_load.saturating_add(fuel))
    }

    pub(super) fn fuel_error(&mut self) -> Error {
        let limit = self.settings.fuel.unwrap_or_default();
        let error = Error::new(
            Reason::FuelExhausted,
            format!("the program used up its fuel, {limit} unit{}", if limit == 1 { "" } else { "s" }),
        )
        .hint("do less work, or raise the limit fuel")
        .detail("limit", limit);
        let mut error = self.place_error(error);
        // The frames of a program that has come to its end are gone.
        if let (None, Some((span, program))) = (error.span, self.whole) {
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, calls: Vec::new() }));
        }
        error
    }

    /// The error for a fault that ends the run, with its place in the source.
    pub(super) fn error_of(&mut self, fault: Fault) -> Error {
        let error = match fault {
            Fault::Error(error) => *error,
            Fault::Pause(_) | Fault::Clock => return self.fuel_error(),
            Fault::Collect(bytes) => self.memory_error(bytes),
        };
        self.place_error(error)
    }

    fn memory_error(&self, bytes: usize) -> Error {
        let held = self.store.heap().account().used;
        self.over_budget(format!("holds {held} bytes and needs {bytes} more"))
    }

    pub(super) fn over_budget(&self, what: String) -> Error {
        budget_error(self.parent.is_some(), self.baseline, self.store.heap().account().limit, what)
    }

    /// Gives the error the span of the instruction that failed, and the reason that callers of closures give it.
    pub(super) fn place_error(&mut self, error: Error) -> Error {
        self.at_rest(|state| state.place_error(error))
    }

    /// Ends the run; the next [`Machine::resume`] says so.
    pub(super) fn end(&mut self, ending: Ending) {
        self.leave(&ending);
        self.status = Status::Ended(ending);
    }

    /// Ends the run that is resumed.
    fn finish(&mut self, ending: Ending) -> Step {
        self.leave(&ending);
        self.status = Status::Idle;
        Step::Done(ending)
    }

    /// Leaves the program: a failed one changes nothing.
    fn leave(&mut self, ending: &Ending) {
        let (failed, undone) = (matches!(ending, Ending::Error(_)), matches!(ending, Ending::Error(_) | Ending::Fail));
        // A compaction under way ends when somebody looks at the heap again, if anybody does.
        self.compacting_for = None;
        self.at_rest(|mut state| {
            state.clear_calls();
            if undone {
                state.restore_definitions();
            }
            if failed {
                state.clear_result();
            }
        });
    }

    /// The tool to be called and its arguments.
    pub fn with_call<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, &str, &[Value<'h>]) -> T) -> Option<T> {
        self.store.enter(|h, state, _| state.awaited_call().map(|(name, args)| look(h, name, args)))
    }

    /// The driver ends the run: deadline, cancelled. A run that has just ended well has failed then, and its
    /// definitions are as they were before it.
    pub fn stop(&mut self, error: Error) {
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
    }

    /// What the program came to is of no use to its host: the definitions are as they were before it.
    pub fn undo(&mut self) {
        self.at_rest(|mut state| {
            state.restore_definitions();
            state.clear_result();
        });
    }

    /// What to say of an error that a name of data which is not given may have led to: nil stands for it. The first of the
    /// program's.
    pub fn hint_of_missing_data(&mut self, program: &Program) -> Option<String> {
        let missing = program.data_names().find(|key| {
            let place = self.places.get(format!("data/{key}").as_str()).copied();
            place.is_some_and(|place| self.at_rest(|state| state.is_undefined(place)))
        })?;
        let names: Vec<&str> = self.grants.iter().flat_map(|grant| grant.data_names()).collect();
        Some(format!("data/{missing} is not given, so it is nil: {}", data_hint(missing, &names)))
    }

    /// What is held now, garbage not counted: a compaction that copies no more than about so many bytes. `None` when there
    /// is more to be copied.
    pub fn live_bytes(&mut self, most: usize) -> Option<usize> {
        let mut copied = 0;
        while !self.store.collect_some(COMPACTED_AT_ONCE) {
            copied += COMPACTED_AT_ONCE;
            if copied > most {
                return None;
            }
        }
        Some(self.store.heap().account().used)
    }

    /// Looks at the result of the run that has ended.
    pub fn with_result<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, Value<'h>) -> T) -> T {
        self.store.enter(|h, state, _| look(h, state.result))
    }

    /// Looks at the definitions, in the order in which they were first named.
    pub fn with_definitions<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, &[(&str, Value<'h>)]) -> T) -> T {
        let names = &self.names;
        self.store.enter(|h, state, _| {
            let defined: Vec<(&str, Value<'_>)> = names
                .iter()
                .map(|n| &**n)
                .zip(state.globals.iter().copied())
                .filter(|(name, value)| {
                    !matches!(value, Value::Unset) && !name.starts_with("data/") && !name.starts_with('*')
                })
                .collect();
            look(h, &defined)
        })
    }

    /// Sets what `*1`, `*2` and `*3` read in the next program: the result becomes `*1`.
    pub fn push_history(&mut self) {
        let places = ["*1", "*2", "*3"].map(|name| (name, self.place_of(name)));
        for (name, place) in places {
            self.link_granted(name, place);
        }
        let places = places.map(|(_, place)| place);
        self.store.enter(|_, state, _| {
            state.globals[places[2]] = state.globals[places[1]];
            state.globals[places[1]] = state.globals[places[0]];
            state.globals[places[0]] = state.result;
        });
    }

    /// Takes the lines printed since the last call.
    pub fn take_prints(&mut self) -> Vec<String> {
        self.store.context().prints.borrow_mut().take()
    }

    /// The lines printed and not yet taken, from the one of an index on.
    pub fn prints_from(&self, index: usize) -> Vec<String> {
        self.store.context().prints.borrow().lines().get(index..).unwrap_or_default().to_vec()
    }

    /// How many lines were printed and not yet taken.
    pub fn lines_printed(&self) -> usize {
        self.store.context().prints.borrow().lines().len()
    }

    /// How many printed lines were not kept since the last call of [`Machine::take_prints`].
    pub fn prints_dropped(&self) -> u64 {
        self.store.context().prints.borrow().dropped()
    }

    /// How many of the lines printed since the last call of [`Machine::take_prints`] are cut.
    pub fn prints_cut(&self) -> u64 {
        self.store.context().prints.borrow().cut()
    }

    /// Makes what is held now part of the baseline and gives the programs to come a budget of their own above it; 0
    /// is no limit. Answers the bytes held.
    pub fn rebaseline(&mut self, heap_bytes: usize) -> usize {
        let used = self.store.heap().account().used;
        let limit = if heap_bytes == 0 { usize::MAX } else { used.saturating_add(heap_bytes) };
        self.store.rebudget(limit);
        self.baseline = self.baseline.saturating_add(used);
        used
    }

    /// What has been used so far.
    pub fn usage(&self) -> Usage {
        let account = self.store.heap().account();
        Usage {
            fuel: self.store.heap().spent() - self.fuel_at_load,
            heap_peak_bytes: account.peak,
            heap_live_bytes: account.used,
            allocated_bytes: account.allocated,
            compactions: account.compactions,
        }
    }
}

/// The data that may have been meant by a name that is not given.
fn data_hint(name: &str, names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("data/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "the host gives no data here".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("there are {}", listed(names)),
        (count, 0) => format!("none of the {count} names of the data is like it; {} is the first", listed(&names[..1])),
    }
}

/// The error of a program, or a worker, whose data does not fit its budget.
pub(super) fn budget_error(worker: bool, baseline: usize, budget: usize, what: String) -> Error {
    let (who, limit) = if worker { ("a worker", "worker_heap_bytes") } else { ("the program", "heap_bytes") };
    Error::new(Reason::MemoryExceeded, format!("{who} {what}; its budget is {budget}"))
        .hint(format!("keep less data at once, or raise the limit {limit}"))
        .detail("phase", "eval")
        .detail("limit_bytes", baseline.saturating_add(budget))
        .detail("baseline_bytes", baseline)
        .detail("budget_bytes", budget)
}

impl<'h> State<'h> {
    /// The tool to be called and its arguments.
    pub(super) fn awaited_call(&self) -> Option<(&'h str, &[Value<'h>])> {
        let call = self.pending?;
        let Value::Tool(name) = self.stack[call.at()] else { return None };
        Some((name.text, &self.stack[call.args()]))
    }

    /// Pushes the frame of a program's main function.
    fn start(&mut self, h: &'h Ctx, unit: &'h Unit) -> Res<()> {
        let Some(main) = unit.program.protos().last() else { return Ok(()) };
        self.ensure(h, 1)?;
        self.enter(h, unit, main, None, Call::new(0, 0, 0)).map(drop)
    }

    pub(super) fn place_error(&self, mut error: Error) -> Error {
        use Reason::{ArithmeticError, DestructureError, NotCallable, RuntimeError, UnboundVar};
        let native = self.frames.iter().rposition(|f| match f.code {
            Code::Native { native, .. } => native.names_faults,
            Code::Lisp { unit, .. } => unit.prelude,
        });
        if let Some(at) = native {
            // The reference names a fault inside a function that map, reduce or update calls by the caller.
            let in_closure = self.frames[at + 1..].iter().any(|f| matches!(f.code, Code::Lisp { .. }));
            error.reason = match error.reason {
                Reason::ArityMismatch if !in_closure => RuntimeError,
                ArithmeticError
                | DestructureError
                | NotCallable
                | UnboundVar
                | RuntimeError
                | Reason::ArityError
                | Reason::ArityMismatch
                    if in_closure =>
                {
                    Reason::TypeError
                }
                ArithmeticError if !in_closure => RuntimeError,
                other => other,
            };
        }
        self.trace(&mut error);
        error
    }

    /// Gives the error its place, and the calls on the way to it. An error of a worker has a place: the call of the worker
    /// is on the way.
    fn trace(&self, error: &mut Error) {
        let top = self.frames.len().saturating_sub(1);
        // The instruction of the frame on top has not been done; that of a frame which has called another has, and so has
        // one that waits for a tool.
        let done = |i: usize| i != top || self.pending.is_some();
        let place = |(i, frame): (usize, &Frame<'h>)| match frame.code {
            Code::Lisp { unit, proto, pc, .. } if !unit.prelude => {
                let at = if done(i) { (pc as usize).saturating_sub(1) } else { pc as usize };
                Some((proto.spans.get(at).copied()?, unit.number, &proto.name))
            }
            _ => None,
        };
        let mut places = self.frames.iter().enumerate().rev().filter_map(place);
        let mut function = None;
        if error.span.is_none() {
            let Some((span, program, name)) = places.next() else { return };
            function.clone_from(name);
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, calls: Vec::new() }));
        }
        let Some(trace) = &mut error.trace else { return };
        for (span, program, name) in places.by_ref() {
            let call = CallSite { function: function.take(), span, program };
            function.clone_from(name);
            if trace.calls.len() < Trace::CALLS {
                trace.calls.push(call);
                continue;
            }
            // There are more: the last to be shown is the outermost, the first that was made.
            let Some((span, program, _)) = self.frames.iter().enumerate().find_map(place) else { break };
            trace.calls[Trace::CALLS - 1] = CallSite { function: None, span, program };
            break;
        }
    }
}

/// Does the reason say that a limit of the whole run was reached? A worker's caller must not give it another name.
pub(super) fn is_limit(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::MemoryExceeded
            | Reason::FuelExhausted
            | Reason::Timeout
            | Reason::Cancelled
            | Reason::ParallelCapacityExceeded
            | Reason::HostFault
    )
}
