//! Bounds the figures that the other half reports.

use crate::drive::shared::RunShared;
use crate::terms::limits::Limits;
use crate::terms::outcome::{Figures, Usage};
use crate::terms::profile::{Cost, Profile};

/// The maximum plausible figures. Figures reach the host's metrics, budgets and bills, so a process that lies is held
/// to these.
pub(super) struct MaxFigures {
    /// The maximum for figures without a limit of their own: more than any machine does in the time of the run.
    work: u64,
    fuel: u64,
    baseline: u64,
    held: u64,
    compute_us: u64,
    workers: u64,
}

impl MaxFigures {
    /// Units of fuel, or bytes, that no machine processes in a microsecond, on any number of cores.
    const IN_A_MICROSECOND: u64 = 1_000_000;
    /// Bytes that no process can hold.
    const ADDRESSES: u64 = 1 << 46;

    /// Returns the maximum for a run under these limits after this time.
    pub(super) fn of(limits: &Limits, elapsed_us: u64) -> Self {
        let work = elapsed_us.saturating_add(1).saturating_mul(Self::IN_A_MICROSECOND);
        let held = |limit: u64| if limit == 0 { Self::ADDRESSES } else { limit };
        let (heap, set_up) = (held(limits.heap_bytes), held(limits.setup_heap_bytes));
        let workers = RunShared::slots(limits);
        MaxFigures {
            work,
            fuel: if limits.fuel == 0 { work } else { limits.fuel },
            baseline: set_up,
            held: heap.max(set_up),
            compute_us: elapsed_us.saturating_mul(workers.saturating_add(1)),
            workers,
        }
    }

    /// Bounds a count of what a program did, such as lines that it printed.
    pub(super) fn count(&self, told: u64) -> u64 {
        told.min(self.work)
    }

    /// Bounds the figures of a run that has ended. The host fills in those that it counts itself.
    pub(super) fn usage(&self, told: Usage) -> Usage {
        let figures = self.figures(Figures {
            fuel: told.fuel,
            baseline_bytes: told.baseline_bytes.unwrap_or_default(),
            heap_peak_bytes: told.heap_peak_bytes,
            allocated_bytes: told.allocated_bytes,
            compactions: told.compactions,
        });
        Usage {
            fuel: figures.fuel,
            compute_us: told.compute_us.min(self.compute_us),
            baseline_bytes: told.baseline_bytes.map(|_| figures.baseline_bytes),
            heap_peak_bytes: figures.heap_peak_bytes,
            heap_live_bytes: told.heap_live_bytes.map(|bytes| bytes.min(self.held)),
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
            workers_peak: told.workers_peak.min(self.workers),
            ..Usage::default()
        }
    }

    /// Bounds the figures of a run in progress.
    pub(super) fn figures(&self, told: Figures) -> Figures {
        Figures {
            fuel: told.fuel.min(self.fuel),
            baseline_bytes: told.baseline_bytes.min(self.baseline),
            heap_peak_bytes: told.heap_peak_bytes.min(self.held),
            allocated_bytes: told.allocated_bytes.min(self.work),
            compactions: told.compactions.min(self.work),
        }
    }

    /// Bounds a profile.
    pub(super) fn profile(&self, profile: &mut Profile) {
        for Cost { fuel, bytes, nanos } in profile.nodes.iter_mut().map(|node| &mut node.cost) {
            *fuel = (*fuel).min(self.fuel);
            *bytes = (*bytes).min(self.work);
            *nanos = (*nanos).min(self.compute_us.saturating_mul(1_000));
        }
    }
}
