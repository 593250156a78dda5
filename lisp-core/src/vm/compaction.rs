//! Compaction of the heap of a run: when it is due, and when it no longer helps.

use super::machine::Machine;
use crate::heap::Res;
use crate::sizes::COMPACTED_AT_ONCE;

impl Machine {
    /// Returns true if the heap should be compacted for an instruction, which then runs again. False if that did not
    /// help the same instruction before.
    pub(super) fn may_compact(&mut self) -> bool {
        let mark = self.store.heap().meter.restart_fuel();
        // Several steps of a native function may cost no fuel and start at the same amount.
        let position = self.at_rest(|state| state.position());
        let again = self.collected_at.replace((mark, position)) == Some((mark, position));
        let heap = self.store.heap();
        if heap.trapped_early() {
            // The instruction must succeed eventually, so it gets twice as far each time.
            let every = self.settings.compact_every.unwrap_or_default().max(1);
            self.stride = if again { self.stride.saturating_mul(2) } else { every };
            heap.trap_after(self.stride);
        } else if again {
            return false;
        }
        self.take_back(mark);
        true
    }

    /// Continues the compaction for an instruction that needs `bytes`, for less than a millisecond. Returns whether it
    /// helped; `None` if it is not finished.
    pub(super) fn compact(&mut self, bytes: usize) -> Option<bool> {
        let early = self.settings.compact_every.is_some();
        if !self.store.collect_some(if early { 256 } else { COMPACTED_AT_ONCE }) {
            return None;
        }
        self.compacting_for = None;
        let heap = self.store.heap();
        // Garbage of the host's own work must not end the program.
        let helped = heap.fits(bytes) && (early || bytes == 0 || !heap.is_thrashing());
        if !helped && self.let_turns_go() {
            self.compacting_for = Some(bytes);
            return None;
        }
        Some(helped)
    }

    /// Runs a whole compaction, between two instructions, unless the run is stopped.
    pub(super) fn collect_watched(&mut self) -> Res<()> {
        while !self.store.collect_some(COMPACTED_AT_ONCE) {
            self.store.heap().poll_interrupt()?;
        }
        Ok(())
    }

    /// Returns the bytes held now, without garbage, after a compaction that copies about `max` bytes. `None` if more
    /// remains to be copied.
    pub fn live_bytes(&mut self, max: usize) -> Option<usize> {
        let mut copied = 0;
        while !self.store.collect_some(COMPACTED_AT_ONCE) {
            copied += COMPACTED_AT_ONCE;
            if copied > max {
                return None;
            }
        }
        Some(self.store.heap().account().used)
    }
}
