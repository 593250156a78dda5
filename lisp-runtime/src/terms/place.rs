//! Names of the effects of a run: its tool calls, parallel calls and clock readings.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a tool call, a parallel call or a clock reading in its run; these are called effects here.
///
/// It consists of the path to the worker and the index of the effect in that worker, from 1. It does not depend on the
/// number of parallel workers, and is the same in every replay. As text, `3` is the program's third effect. `3:17/2` is
/// the second effect of worker 17 of the parallel call that is the program's third effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// For each enclosing parallel call, its index among the effects of its caller, and the index of the worker.
    workers: Vec<(u32, u32)>,
    effect: u32,
}

impl Place {
    pub(crate) fn new(workers: Vec<(u32, u32)>, effect: u32) -> Place {
        Place { workers, effect }
    }

    /// Returns the path of worker indexes; empty for the program itself.
    pub fn worker(&self) -> Vec<u32> {
        self.workers.iter().map(|&(_, index)| index).collect()
    }

    /// Returns whether it is an effect of the program itself, not of a worker.
    pub fn is_of_program(&self) -> bool {
        self.workers.is_empty()
    }

    /// Returns the index of the effect in its worker.
    pub(crate) fn effect(&self) -> u32 {
        self.effect
    }

    /// Returns whether it belongs to a worker of a parallel call that had ended when an enclosing worker had its next
    /// effect. `last` returns the last effect of a worker. Such an effect without an end was discarded, because an
    /// earlier call had failed.
    pub(crate) fn is_behind(&self, last: impl Fn(&[(u32, u32)]) -> Option<u32>) -> bool {
        (0..self.workers.len())
            .any(|depth| last(&self.workers[..depth]).is_some_and(|last| last > self.workers[depth].0))
    }

    /// Returns the range of all workers' effects in the parallel calls that its worker made before.
    pub(crate) fn calls_before(&self) -> std::ops::Range<Place> {
        let with = |effect: u32| Place { workers: [&self.workers[..], &[(effect, 0)]].concat(), effect: 0 };
        with(0)..with(self.effect)
    }

    /// Returns the parallel call of the program that its worker belongs to.
    pub(crate) fn outermost(&self) -> Option<u32> {
        self.workers.first().map(|&(effect, _)| effect)
    }

    /// Returns a key that sorts effects in program order, as if workers ran one after another.
    pub(crate) fn in_order(&self) -> Vec<u32> {
        self.workers.iter().flat_map(|&(effect, index)| [effect, index]).chain([self.effect]).collect()
    }

    /// Returns the key range of its worker and the later workers of the same parallel call.
    pub(crate) fn siblings_from(&self) -> (Vec<u32>, Vec<u32>) {
        let first: Vec<u32> = self.workers.iter().flat_map(|&(effect, index)| [effect, index]).collect();
        let mut end = first.clone();
        end.pop();
        if let Some(effect) = end.last_mut() {
            *effect = effect.saturating_add(1);
        }
        (first, end)
    }

    /// Returns whether this effect belongs to the worker of `from`, or to a later worker of the same parallel call.
    pub fn is_given_up_by(&self, from: &Place) -> bool {
        let ((first, end), place) = (from.siblings_from(), self.in_order());
        first <= place && place < end
    }

    /// Returns the path to its worker.
    pub(crate) fn way(&self) -> &[(u32, u32)] {
        &self.workers
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (effect, index) in &self.workers {
            write!(f, "{effect}:{index}/")?;
        }
        write!(f, "{}", self.effect)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        /// The maximum nesting depth: a path is no longer than the maximum number of workers.
        const DEEPEST: usize = 1_024;
        let mut parts = text.split('/').rev();
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u32>().map_err(drop),
            false => Err(()),
        };
        let effect = number(parts.next().unwrap_or_default())?;
        let mut workers = Vec::new();
        for part in parts {
            let (effect, index) = part.split_once(':').ok_or(())?;
            workers.push((number(effect)?, number(index)?));
            if workers.len() > DEEPEST {
                return Err(());
            }
        }
        workers.reverse();
        Ok(Place { workers, effect })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_text_is_read_back() {
        for text in ["1", "4294967295", "3:17/2", "3:0/1:5/9"] {
            assert_eq!(text.parse::<Place>().map(|place| place.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "+1", "x", "1/2", "1:/2", "4294967296", "1:2/", &"1:1/".repeat(2_000)] {
            assert_eq!(text.parse::<Place>(), Err(()), "{text}");
        }
        let place: Place = "3:17/1:4/2".parse().expect("a place");
        assert_eq!((place.worker(), place.effect()), (vec![17, 4], 2));
    }
}
