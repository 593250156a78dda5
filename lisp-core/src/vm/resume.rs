//! Resuming a run until it ends, or its driver must perform an effect.

use super::Effect;
use super::exec::Exit;
use super::machine::{Ending, Machine, Status, Step};
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res};

impl Machine {
    /// Runs until the end, an effect, or about `slice` more units of fuel.
    pub fn resume(&mut self, slice: u64) -> Step {
        self.resume_by(slice, false)
    }

    /// Like [`Machine::resume`], but goes at most one slice beyond an instruction that needs more than a slice. For
    /// samplers of the run's position.
    pub fn resume_closely(&mut self, slice: u64) -> Step {
        self.resume_by(slice, true)
    }

    fn resume_by(&mut self, slice: u64, closely: bool) -> Step {
        match std::mem::replace(&mut self.status, Status::Idle) {
            Status::Ready => {}
            Status::Awaiting(effect) => return self.wait_for(effect),
            Status::Ended(ending) => return Step::Done(ending),
            Status::Idle => {
                return Step::Done(Ending::Error(Box::new(Error::new(Reason::HostFault, "no program is loaded"))));
            }
        }
        match self.compute(slice, closely) {
            Some(out) => self.conclude(out),
            None => {
                self.status = Status::Ready;
                Step::Paused
            }
        }
    }

    /// Runs the dispatch loop, and compacts the heap for it. `None` if a compaction takes longer than one step.
    fn compute(&mut self, slice: u64, closely: bool) -> Option<Res<Exit>> {
        let heap = self.store.heap();
        if heap.is_over() {
            // The host's own work since then filled the heap; the program asks for nothing.
            self.compacting_for.get_or_insert(0);
        }
        // An instruction that starts over gets twice the fuel it needed. So all its attempts together do at most twice
        // its work, however many pieces it pays for. For a sampler, its first attempt gets exactly what it needed.
        let is_first = closely && self.resumed_at != Some(heap.spent());
        let needed = if is_first { 0 } else { self.wanted.saturating_sub(heap.spent()) };
        self.resumed_at = Some(heap.spent());
        heap.meter.set_slice(heap.spent().max(self.wanted).saturating_add(slice.max(needed)), self.fuel_ceiling());
        heap.note_misses(true);
        let out = loop {
            if let Some(bytes) = self.compacting_for
                && !self.compact(bytes)?
            {
                break Err(Fault::Collect(bytes));
            }
            self.store.heap().restart_misses();
            match self.store.enter(|h, state, _| state.run_and_catch(h)) {
                Err(Fault::Collect(bytes)) if self.may_compact() => self.compacting_for = Some(bytes),
                Err(Fault::Place) => self.place_miss(),
                out => break out,
            }
        };
        self.store.heap().note_misses(false);
        self.collected_at = None;
        Some(out)
    }

    /// Returns what to report to the driver after the dispatch loop was left. A fault resets the fuel to where its
    /// instruction started.
    fn conclude(&mut self, out: Res<Exit>) -> Step {
        let ceiling = self.fuel_ceiling();
        if let Err(Fault::Collect(_)) = out {
            // How far an instruction came before the memory ran out varies.
            let mark = self.store.heap().meter.restart_fuel();
            self.store.heap().meter.set_spent(mark + cost::INSTRUCTION);
        }
        let is_bug = matches!(&out, Err(Fault::Error(error)) if error.reason == Reason::HostFault);
        match out {
            // Neither the last instructions nor one that failed need have checked the ceiling.
            Ok(_) | Err(Fault::Error(_) | Fault::Collect(_)) if self.store.heap().spent() > ceiling && !is_bug => {
                self.store.heap().meter.set_spent(ceiling);
                let error = self.fuel_error();
                self.finish(Ending::Error(Box::new(error)))
            }
            Ok(Exit::Effect(effect)) => self.wait_for(effect),
            Ok(Exit::Done(ending)) => self.finish(ending),
            Err(Fault::Pause(wanted)) if wanted <= ceiling => {
                self.take_back(self.store.heap().meter.restart_fuel());
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
                let error = self.error_of(fault);
                self.finish(Ending::Error(Box::new(error)))
            }
        }
    }

    /// Resets the fuel to where the current work started, which will be done again. Notes what the attempt spent, for a
    /// run that ends before the work does.
    pub(super) fn take_back(&mut self, began: u64) {
        let undone = self.store.heap().meter.take_back(began);
        self.taken_back = match self.taken_back {
            (before, at) if at == began => (before.saturating_add(undone), at),
            _ => (undone, began),
        };
    }

    /// Waits until the driver has performed an effect.
    fn wait_for(&mut self, effect: Effect) -> Step {
        self.status = Status::Awaiting(effect);
        Step::Effect(effect)
    }

    /// Supplies the time that the machine waits for, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn tell_time(&mut self, time: i64) {
        if let Status::Awaiting(Effect::Clock) = self.status {
            self.store.context().clock.tell(self.clock_asked_at, time);
            self.status = Status::Ready;
        }
    }

    /// Returns the fuel spent at which the limit is reached.
    pub(super) fn fuel_ceiling(&self) -> u64 {
        self.settings.fuel.map_or(u64::MAX, |fuel| self.fuel_at_load.saturating_add(fuel))
    }

    /// Ends the run; the next [`Machine::resume`] returns that.
    pub(super) fn end(&mut self, ending: Ending) {
        self.leave(&ending);
        self.status = Status::Ended(ending);
    }

    /// Ends the run that is being resumed.
    fn finish(&mut self, ending: Ending) -> Step {
        self.leave(&ending);
        self.status = Status::Idle;
        Step::Done(ending)
    }

    /// Leaves the program: a failed one changes nothing.
    fn leave(&mut self, ending: &Ending) {
        let is_of_time = |error: &Error| matches!(error.reason, Reason::Timeout | Reason::Cancelled);
        if let Ending::Error(error) = ending
            && is_of_time(error)
            && self.taken_back.1 == self.store.heap().spent()
        {
            self.cut_off_fuel = self.cut_off_fuel.saturating_add(std::mem::take(&mut self.taken_back.0));
        }
        let (failed, undone) = (matches!(ending, Ending::Error(_)), matches!(ending, Ending::Error(_) | Ending::Fail));
        // A compaction in progress is finished when the heap is next used.
        self.compacting_for = None;
        let freed = self.at_rest(|mut state| {
            let freed = state.clear_calls();
            if undone {
                state.restore_definitions();
            }
            if failed {
                state.clear_result();
            }
            freed
        });
        self.store.heap().release_external(freed);
    }

    /// Ends the run with an error of its driver, such as a timeout. This also applies to a run that has just succeeded:
    /// it fails, and its definitions are as before the run.
    pub fn stop(&mut self, error: Error) {
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
    }

    /// Undoes a program that has ended: the definitions are as before it.
    pub fn undo(&mut self) {
        self.at_rest(|mut state| {
            state.restore_definitions();
            state.clear_result();
        });
    }
}
