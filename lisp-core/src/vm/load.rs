//! Loading programs: linking their names with definitions and grants.

use super::definitions::data_hint;
use super::machine::{Ending, Loaded, Machine, Status};
use crate::compile::Program;
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Res, Value};
use crate::regex::Extent;
use crate::stack::{Call, State, Unit};
use std::sync::Arc;

impl Machine {
    /// Loads a program; [`Machine::resume`] runs it. After it has ended, another program can be loaded, which sees its
    /// definitions.
    ///
    /// # Errors
    /// Returns `unbound_var` if the program uses an undefined name.
    pub fn load(&mut self, program: Arc<Program>) -> Result<(), Error> {
        self.load_unless(program, 0, &|| false)
    }

    /// Like [`Machine::load`], but stops when `stop` returns true.
    ///
    /// It is called while names are looked up, and while the program is compiled again because definitions have names
    /// of built-ins. Errors in functions of this program carry `number` (`Trace::program`), in later programs too.
    ///
    /// # Errors
    /// Returns the errors of [`Machine::load`], and `timeout`.
    pub fn load_unless(&mut self, program: Arc<Program>, number: u64, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let program = self.shadow(program, stop)?;
        let defined = self.names.len();
        let links: Box<[usize]> = program.code().globals.iter().map(|name| self.place_of(name)).collect();
        for (i, name) in program.code().globals.iter().enumerate() {
            if i % 64 == 63 && stop() {
                self.forget(defined);
                return Err(not_linked());
            }
            if name.starts_with("data/") || name.starts_with('*') {
                self.link_granted(name, links[i]);
            }
        }
        if let Err(error) = self.check_names(&program, &links) {
            self.forget(defined);
            return Err(error);
        }
        if !self.charge_patterns(&program, stop) {
            self.forget(defined);
            return Err(not_linked());
        }
        self.whole =
            program.code().protos.last().and_then(|main| main.spans.last().copied()).map(|span| (span, number));
        let unit = self.pin_unit(program, number, links);
        (self.wanted, self.resumed_at) = (0, None);
        let started = self.store.enter(|h, state, keep| {
            state.saved_globals.clone_from(&state.globals);
            state.frames.clear();
            state.pending = None;
            state.caught = None;
            match keep.get::<Unit>(unit) {
                Some(unit) => {
                    state.units.add(unit);
                    state.start(h, unit)
                }
                None => Ok(()),
            }
        });
        self.status = Status::Ready;
        if let Err(fault) = started {
            let error = self.error_of(fault);
            self.end(Ending::Error(Box::new(error)));
        }
        Ok(())
    }

    /// Returns the program that was last loaded with this number.
    pub fn program(&self, number: u64) -> Option<Arc<Program>> {
        self.loaded.iter().rev().flatten().find(|loaded| loaded.number == number).map(|loaded| loaded.program.clone())
    }

    /// Keeps a program for its functions. Returns the index of its unit.
    pub(super) fn pin_unit(&mut self, program: Arc<Program>, number: u64, links: Box<[usize]>) -> usize {
        let id = self.store.enter(|_, state, _| state.units.next());
        let pinned = self.store.next_place();
        let unit = Unit { code: program.code().clone(), id, number, links, pinned, prelude: false };
        let bytes = program.bytes();
        self.note_loaded(id, Loaded { number, program, bytes });
        self.store.pin(Arc::new(unit))
    }

    /// Returns the program, compiled again if definitions shadow built-ins that it uses.
    fn shadow(&mut self, program: Arc<Program>, stop: &dyn Fn() -> bool) -> Result<Arc<Program>, Error> {
        let is_builtin = |name: &str| crate::code::BuiltinId::by_name(name).is_some();
        let names = &self.names;
        // A name whose definition was undone refers to the built-in again.
        let shadowed: Vec<Box<str>> = self.store.enter(|_, state, _| {
            let defined = names.iter().zip(&state.globals).filter(|(_, value)| !matches!(value, Value::Unset));
            defined.map(|(name, _)| name).filter(|name| is_builtin(name)).cloned().collect()
        });
        if shadowed.is_empty() { Ok(program) } else { program.shadowed_by(&shadowed, stop).map(Arc::new) }
    }

    /// Charges a program in advance for compiling its regular expressions when they are first used, so that the cost
    /// does not depend on which worker does that. Returns false if `stop` ended it.
    fn charge_patterns(&mut self, program: &Program, stop: &dyn Fn() -> bool) -> bool {
        let heap = self.store.context();
        heap.meter.watch(None);
        heap.meter.set_slice(u64::MAX, u64::MAX);
        self.fuel_at_load = heap.spent();
        (self.taken_back, self.cut_off_fuel) = ((0, 0), 0);
        for (i, pattern) in program.patterns().iter().enumerate() {
            if i % 64 == 63 && stop() {
                return false;
            }
            // If it does not fit into the heap it is charged when it is used.
            let _ = heap.charge_pattern(pattern, Extent::Part);
        }
        heap.meter.set_restart();
        heap.forget_misses();
        true
    }

    fn check_names(&mut self, program: &Program, links: &[usize]) -> Result<(), Error> {
        let unset = self.unset(links);
        let unknown = || program.free().iter().filter(|free| unset[free.global as usize]);
        let mut is_known: Vec<bool> = self.names.iter().map(|name| !name.is_empty()).collect();
        unknown().for_each(|free| is_known[links[free.global as usize]] = false);
        let errors = unknown().map(|free| {
            let known = self.names.iter().zip(&is_known).filter(|(_, known)| **known).map(|(name, _)| &**name);
            crate::library::unknown_name(&program.code().globals[free.global as usize], known).at(free.span)
        });
        match Error::of_several(errors) {
            Some(error) => Err(error),
            None => self.check_data(program, links),
        }
    }

    /// Returns which of these definitions have no value.
    fn unset(&mut self, links: &[usize]) -> Vec<bool> {
        self.store.enter(|_, state, _| links.iter().map(|&l| matches!(state.globals[l], Value::Unset)).collect())
    }

    /// With strict data, fails if data that the program names is not granted.
    pub(super) fn check_data(&mut self, program: &Program, links: &[usize]) -> Result<(), Error> {
        if self.settings.strict_data {
            let unset = self.unset(links);
            for (i, name) in program.code().globals.iter().enumerate() {
                if let Some(key) = name.strip_prefix("data/")
                    && unset[i]
                {
                    let names: Vec<&str> = self.grants.iter().flat_map(|grant| grant.data_names()).collect();
                    let error = Error::new(Reason::RuntimeError, format!("data/{key} is not given"))
                        .hint(data_hint(key, &names));
                    return Err(match program.place_of_data(i) {
                        Some(span) => error.at(span),
                        None => error,
                    });
                }
            }
        }
        Ok(())
    }

    /// Removes the names of a program that could not be loaded: those after the first `count`.
    fn forget(&mut self, count: usize) {
        for name in self.names.drain(count..) {
            self.places.remove(&name);
        }
        // Slots below that were free are reclaimed when programs are forgotten.
        self.store.enter(|_, state, _| state.globals.truncate(count));
    }
}

impl<'h> State<'h> {
    /// Pushes the frame of a program's main function.
    fn start(&mut self, h: &'h Ctx, unit: &'h Unit) -> Res<()> {
        let Some(main) = unit.code.protos.last() else { return Ok(()) };
        self.ensure(h, 1)?;
        self.enter(h, unit, main, None, Call::new(0, 0, 0)).map(drop)
    }
}

fn not_linked() -> Error {
    Error::new(Reason::Timeout, "timed out while linking the program")
}
