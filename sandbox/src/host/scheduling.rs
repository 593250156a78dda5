//! Assigns runs to templates.

use crate::kernel::sys::Processors;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Templates take turns. With one for each processor, each stays on its own: what the kernel sets up for a process
/// there, and takes down at its end, does not move between processors. A busy pool then gives a run to the template of
/// the processor that it comes from.
#[derive(Debug)]
pub(crate) struct Scheduler {
    templates: usize,
    /// The processors, if each has a template.
    processors: Vec<usize>,
    next: AtomicUsize,
    in_progress: AtomicUsize,
}

impl Scheduler {
    pub(crate) fn of(templates: usize) -> Scheduler {
        Scheduler::on(templates, Processors::allowed().map_or_else(|_| Vec::new(), |allowed| allowed.numbers()))
    }

    fn on(templates: usize, mut processors: Vec<usize>) -> Scheduler {
        if processors.len() > templates || processors.len() < 2 {
            processors.clear();
        }
        Scheduler { templates, processors, next: AtomicUsize::new(0), in_progress: AtomicUsize::new(0) }
    }

    /// Returns the processor that a template stays on.
    pub(crate) fn processor_of(&self, template: usize) -> Option<usize> {
        let at = template.checked_rem(self.processors.len())?;
        self.processors.get(at).copied()
    }

    /// Returns the template for a run that starts.
    pub(crate) fn begin(&self) -> usize {
        let others = self.in_progress.fetch_add(1, Ordering::Relaxed);
        // With only a few runs, other processors are idle.
        self.choose(if 2 * others >= self.templates { Processors::current() } else { None })
    }

    /// Ends a run.
    pub(crate) fn end(&self) {
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
    }

    fn choose(&self, processor: Option<usize>) -> usize {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        match self.processors.iter().position(|&here| Some(here) == processor) {
            Some(at) => {
                let many = self.processors.len();
                let its = (self.templates - at).div_ceil(many);
                at + many * (turn % its)
            }
            None => turn % self.templates,
        }
    }
}

/// The number of runs of this process whose programs are running.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Counts a run whose program is running, until it is dropped.
#[derive(Debug)]
pub(crate) struct AtWork(());

impl AtWork {
    pub(crate) fn begin() -> AtWork {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        AtWork(())
    }

    /// Returns true if there are two processors for each running program, one for the process and one for the host's
    /// busy wait. Otherwise a busy wait would take time from other runs, or from the process that it waits for.
    pub(crate) fn leaves_room() -> bool {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, Into::into));
        AT_WORK.load(Ordering::Relaxed).saturating_mul(2) <= *processors
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_a_processor_take_turns() {
        let turns = Scheduler::on(5, vec![3, 7]);
        assert_eq!((0..5).map(|template| turns.processor_of(template)).collect::<Vec<_>>(), [3, 7, 3, 7, 3].map(Some));
        let all = |processor| (0..6).map(|_| turns.choose(processor)).collect::<Vec<_>>();
        assert_eq!(all(Some(3)), [0, 2, 4, 0, 2, 4]);
        assert_eq!(all(Some(7)), [1, 3, 1, 3, 1, 3]);
        // The host has moved meanwhile.
        assert_eq!(all(Some(4)), [2, 3, 4, 0, 1, 2]);
        assert_eq!(all(None), [3, 4, 0, 1, 2, 3]);
    }

    #[test]
    fn fewer_templates_than_processors_stay_nowhere() {
        for processors in [vec![], vec![0], vec![0, 1, 2]] {
            let turns = Scheduler::on(2, processors);
            assert_eq!((turns.processor_of(0), turns.processor_of(1)), (None, None));
            assert_eq!([Some(0), Some(0), None].map(|processor| turns.choose(processor)), [0, 1, 0]);
        }
    }

    #[test]
    fn nobody_waits_awake_beside_many() {
        let many = 1 + std::thread::available_parallelism().unwrap().get() / 2;
        let runs: Vec<AtWork> = (0..many).map(|_| AtWork::begin()).collect();
        assert!(!AtWork::leaves_room());
        drop(runs);
    }

    #[test]
    fn a_busy_pool_stays_on_the_processor() {
        let turns = Scheduler::on(2, vec![Processors::current().unwrap(), usize::MAX]);
        assert_eq!(turns.begin(), 0);
        Processors::only(turns.processors[0]).stay().unwrap();
        assert_eq!([turns.begin(), turns.begin()], [0, 0]);
        (0..3).for_each(|_| turns.end());
        assert_eq!(turns.begin(), 1);
    }
}
