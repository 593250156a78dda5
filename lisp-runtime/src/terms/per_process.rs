//! Values that have threads. Threads do not survive a fork, so a forked process makes its own.

use std::sync::OnceLock;

/// How many processes in a line of forks have values.
const GENERATIONS: usize = 8;

/// A value that each process makes on first use.
pub(crate) struct PerProcess<T>([OnceLock<(u32, T)>; GENERATIONS]);

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess([const { OnceLock::new() }; GENERATIONS])
    }

    /// Returns the value of this process; `None` after too many forks.
    pub(crate) fn get_or_init(&self, make: impl Fn() -> T) -> Option<&T> {
        let own = std::process::id();
        let values = self.0.iter().map(|value| value.get_or_init(|| (own, make())));
        values.into_iter().find(|(process, _)| *process == own).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_makes_one_value_and_skips_those_of_others() {
        let value = PerProcess::new();
        assert!(value.0[0].set((std::process::id() + 1, 5)).is_ok());
        assert_eq!(value.get_or_init(|| 6), Some(&6));
        assert_eq!(value.get_or_init(|| 7), Some(&6));
        let full = PerProcess::new();
        assert!(full.0.iter().all(|value| value.set((0, 5)).is_ok()));
        assert_eq!(full.get_or_init(|| 6), None);
    }
}
