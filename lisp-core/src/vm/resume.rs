//! Going on with a run, until its end or something that its driver must do.

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

    /// [`Machine::resume`] that goes on no further than the slice behind an instruction that needs more than it: for those who look at
    /// where the run stands.
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

    /// Runs the dispatch loop, and compacts the heap for it. `None` when a compaction takes longer than one step.
    fn compute(&mut self, slice: u64, closely: bool) -> Option<Res<Exit>> {
        let heap = self.store.heap();
        if heap.is_over() {
            // By what the host took out or brought in since. The program asks for nothing.
            self.compacting_for.get_or_insert(0);
        }
        // An instruction that has begun again gets twice what it needed, so that all its beginnings together do no more than
        // twice its work, however many pieces it pays for.
        // Where somebody looks closely, its first beginning gets what it needed.
        let is_first = closely && self.resumed_at != Some(heap.spent());
        let needed = if is_first { 0 } else { self.wanted.saturating_sub(heap.spent()) };
        self.resumed_at = Some(heap.spent());
        heap.meter.set_slice(heap.spent().max(self.wanted).saturating_add(slice.max(needed)), self.fuel_ceiling());
        let out = loop {
            if let Some(bytes) = self.compacting_for
                && !self.compact(bytes)?
            {
                break Err(Fault::Collect(bytes));
            }
            match self.store.enter(|h, state, _| state.run_and_catch(h)) {
                Err(Fault::Collect(bytes)) if self.may_compact() => self.compacting_for = Some(bytes),
                out => break out,
            }
        };
        self.collected_at = None;
        Some(out)
    }

    /// What the driver is told of how the dispatch loop was left. A fault takes the fuel back to where its instruction
    /// began.
    fn conclude(&mut self, out: Res<Exit>) -> Step {
        let ceiling = self.fuel_ceiling();
        if let Err(Fault::Collect(_)) = out {
            // How far an instruction came for which there is no room is not the same each time.
            let mark = self.store.heap().meter.restart_fuel();
            self.store.heap().meter.set_spent(mark + cost::INSTRUCTION);
        }
        let is_bug = matches!(&out, Err(Fault::Error(error)) if error.reason == Reason::HostFault);
        match out {
            // The last instructions need not have looked at the ceiling, the one that failed neither.
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

    /// Takes the fuel back to where the work under way began, which is to be done again. What its beginnings spent is noted, for a
    /// run that ends before the work does.
    pub(super) fn take_back(&mut self, began: u64) {
        let undone = self.store.heap().meter.take_back(began);
        self.taken_back = match self.taken_back {
            (before, at) if at == began => (before.saturating_add(undone), at),
            _ => (undone, began),
        };
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

    /// The fuel, as the account counts it, at which the limit is reached.
    pub(super) fn fuel_ceiling(&self) -> u64 {
        self.settings.fuel.map_or(u64::MAX, |fuel| self.fuel_at_load.saturating_add(fuel))
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
        let is_of_time = |error: &Error| matches!(error.reason, Reason::Timeout | Reason::Cancelled);
        if let Ending::Error(error) = ending
            && is_of_time(error)
            && self.taken_back.1 == self.store.heap().spent()
        {
            self.cut_off_fuel = self.cut_off_fuel.saturating_add(std::mem::take(&mut self.taken_back.0));
        }
        let (failed, undone) = (matches!(ending, Ending::Error(_)), matches!(ending, Ending::Error(_) | Ending::Fail));
        // A compaction under way ends when somebody looks at the heap again, if anybody does.
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

    /// Ends the run with an error of its driver, such as a deadline. A run that has just ended well has failed then, and its
    /// definitions are as they were before it.
    pub fn stop(&mut self, error: Error) {
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
    }

    /// Takes back a program that has ended: the definitions are as they were before it.
    pub fn undo(&mut self) {
        self.at_rest(|mut state| {
            state.restore_definitions();
            state.clear_result();
        });
    }
}
