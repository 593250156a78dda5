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
    heap: u64,
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
        let or_max = |limit: u64| if limit == 0 { Self::ADDRESSES } else { limit };
        let (heap, set_up) = (or_max(limits.heap_bytes), or_max(limits.setup_heap_bytes));
        let workers = RunShared::slots(limits);
        MaxFigures {
            work,
            fuel: if limits.fuel == 0 { work } else { limits.fuel },
            baseline: set_up,
            heap: heap.max(set_up),
            compute_us: elapsed_us.saturating_mul(workers.saturating_add(1)),
            workers,
        }
    }

    /// Bounds a count of what a program did, such as lines that it printed.
    pub(super) fn count(&self, reported: u64) -> u64 {
        reported.min(self.work)
    }

    /// Bounds the figures of a run that has ended. The host fills in those that it counts itself.
    pub(super) fn usage(&self, reported: Usage) -> Usage {
        let figures = self.figures(Figures {
            fuel: reported.fuel,
            baseline_bytes: reported.baseline_bytes.unwrap_or_default(),
            heap_peak_bytes: reported.heap_peak_bytes,
            allocated_bytes: reported.allocated_bytes,
            compactions: reported.compactions,
        });
        Usage {
            fuel: figures.fuel,
            compute_us: reported.compute_us.min(self.compute_us),
            baseline_bytes: reported.baseline_bytes.map(|_| figures.baseline_bytes),
            heap_peak_bytes: figures.heap_peak_bytes,
            heap_live_bytes: reported.heap_live_bytes.map(|bytes| bytes.min(self.heap)),
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
            workers_peak: reported.workers_peak.min(self.workers),
            ..Usage::default()
        }
    }

    /// Bounds the figures of a run in progress.
    pub(super) fn figures(&self, reported: Figures) -> Figures {
        Figures {
            fuel: reported.fuel.min(self.fuel),
            baseline_bytes: reported.baseline_bytes.min(self.baseline),
            heap_peak_bytes: reported.heap_peak_bytes.min(self.heap),
            allocated_bytes: reported.allocated_bytes.min(self.work),
            compactions: reported.compactions.min(self.work),
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
