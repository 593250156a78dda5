//! Calls whose replies a process has not read yet.

use crate::wire::violation::Violation;
use lisp_runtime::outcome::Place;

/// The open calls of a run.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    /// Calls that the program or a worker waits for.
    waiting: Vec<(u32, Place)>,
    /// Calls of workers that were given up because an earlier call failed. Their tools are still running.
    given_up: Vec<u32>,
}

impl OpenCalls {
    /// The maximum number of open calls that were given up. Without it, a process that keeps giving up calls before
    /// their tools return would make the host hold any number of them.
    pub(super) const GIVEN_UP: usize = 4_096;

    /// Adds a call.
    ///
    /// # Errors
    /// Returns a violation if `max` calls are waited for already, or too many were given up.
    pub(super) fn add(&mut self, number: u32, place: Place, given_up: &[Place], max: usize) -> Result<(), Violation> {
        for from in given_up {
            let gone = self.waiting.extract_if(.., |(_, place)| place.is_given_up_by(from));
            self.given_up.extend(gone.map(|(number, _)| number));
        }
        if self.waiting.len() >= max {
            return Err(Violation::Calls);
        }
        if self.given_up.len() > Self::GIVEN_UP {
            return Err(Violation::GivenUpCalls);
        }
        self.waiting.push((number, place));
        Ok(())
    }

    /// Removes a call whose reply was sent.
    pub(super) fn answered(&mut self, number: u32) {
        if let Some(at) = self.waiting.iter().position(|(open, _)| *open == number) {
            self.waiting.swap_remove(at);
        } else if let Some(at) = self.given_up.iter().position(|open| *open == number) {
            self.given_up.swap_remove(at);
        }
    }

    /// Keeps only these calls, of a turn that has ended.
    pub(super) fn keep(&mut self, numbers: impl Iterator<Item = u32>) {
        *self = OpenCalls { waiting: numbers.map(|number| (number, Place::default())).collect(), given_up: Vec::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::{OpenCalls, Violation};
    use lisp_runtime::outcome::Place;

    fn place(text: &str) -> Place {
        text.parse().expect("a place")
    }

    #[test]
    fn calls_that_were_given_up_take_no_room_from_others() {
        let mut open = OpenCalls::default();
        (0..3).for_each(|i| open.add(i, place(&format!("1:{i}/1")), &[], 3).expect("room"));
        assert_eq!(open.add(3, place("2:0/1"), &[place("1:1/1")], 3), Ok(()), "1:1 and 1:2 were given up");
        assert_eq!(open.add(4, place("2:1/1"), &[], 3), Ok(()));
        assert_eq!(open.add(5, place("2:2/1"), &[], 3), Err(Violation::Calls), "1:0, 2:0 and 2:1 are waited for");
        (0..6).for_each(|number| open.answered(number));
        assert!(open.waiting.is_empty() && open.given_up.is_empty());
    }

    #[test]
    fn calls_that_were_given_up_have_a_ceiling() {
        let mut open = OpenCalls::default();
        let mut add = |i| open.add(i, place(&format!("{}:1/1", i + 1)), &[place(&format!("{i}:1/1"))], 9);
        let last = u32::try_from(OpenCalls::GIVEN_UP).expect("a small number") + 1;
        assert_eq!((0..last).map(&mut add).find(Result::is_err), None);
        assert_eq!(add(last), Err(Violation::GivenUpCalls));
    }
}
