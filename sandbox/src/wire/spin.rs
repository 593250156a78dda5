//! Waiting for the other side, at first with a busy wait.
//!
//! Waking a thread whose processor has gone idle takes some 20 us, and a tool call wakes two, one after the other. Most
//! tools take less time than that. So each side polls for a moment before it goes to sleep.

use std::time::{Duration, Instant};

/// The duration of a busy wait: about that of a call whose other side has gone to sleep. It counts as processor time of
/// the process.
pub(crate) const AWAKE: Duration = Duration::from_micros(50);

/// A series of waits. After a busy wait in vain, the next waits sleep at once: one, three, seven, at most 63. So slow
/// tools cost a process almost nothing.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    vain: u32,
    asleep: u32,
}

impl Spin {
    const MAX_VAIN: u32 = 6;

    /// Returns the first result within the busy wait, if any.
    pub(crate) fn wait<T>(&mut self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        if self.asleep > 0 {
            self.asleep -= 1;
            return None;
        }
        let started = Instant::now();
        loop {
            let came = ready();
            if came.is_some() {
                self.vain = 0;
                return came;
            }
            if started.elapsed() >= AWAKE {
                self.vain = (self.vain + 1).min(Self::MAX_VAIN);
                self.asleep = (1 << self.vain) - 1;
                return None;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_awake_for_a_moment() {
        let mut spin = Spin::default();
        let (mut asked, started) = (0, Instant::now());
        assert_eq!(spin.wait(|| (asked += 1, None::<()>).1), None);
        assert!(asked > 1 && started.elapsed() >= AWAKE, "asked {asked} times");
        // A result that is available at once is returned, however long ago the wait started.
        assert_eq!(Spin::default().wait(|| Some(7)), Some(7));
    }

    #[test]
    fn vain_waits_grow_rare_until_one_is_not() {
        let mut spin = Spin::default();
        let slept = |spin: &mut Spin, comes: bool| {
            let mut asked = false;
            (0..).find(|_| {
                let _ = spin.wait(|| {
                    asked = true;
                    comes.then_some(())
                });
                asked
            })
        };
        let vain: Vec<_> = (0..8).filter_map(|_| slept(&mut spin, false)).collect();
        assert_eq!(vain, [0, 1, 3, 7, 15, 31, 63, 63]);
        assert_eq!([true, true, false, false].map(|comes| slept(&mut spin, comes)), [63, 0, 0, 1].map(Some));
    }
}
