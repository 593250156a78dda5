//! Profiles: where a run did its work.

use serde::{Deserialize, Serialize};

/// Where a run spent its fuel, memory and time, as a tree of calls.
///
/// Each node has what was spent while its call was the innermost one. Nodes come after their parents. A recursive
/// function has one node for each call chain.
///
/// The interpreter is sampled: at first after every instruction, and less and less often in a long run. What is spent
/// until the next sample counts for the innermost call of the last one. Fuel and bytes are the same in every run. Their
/// totals are [`Usage::fuel`](crate::outcome::Usage::fuel) and [`Usage::allocated_bytes`](crate::outcome::Usage::allocated_bytes),
/// without the cost of starting and joining parallel workers. Time does not include tools, and is the sum over all
/// workers. Sampling makes short runs several times slower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// The calls: at most [`Profile::NODES`].
    pub nodes: Vec<ProfileNode>,
    /// The number of samples.
    pub samples: u64,
    /// Whether calls were left out: those beyond [`Profile::NODES`] or deeper than [`Profile::DEPTH`]. Their cost
    /// counts for their callers.
    pub cut: bool,
}

/// One node of a [`Profile`]: a call in its call chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProfileNode {
    /// The index of the caller's node.
    pub parent: Option<u32>,
    /// The name of the function; `None` for the program itself and for functions without a name.
    pub function: Option<String>,
    /// The form that was evaluated, as a byte range of its source: start and end. `None` in a built-in.
    pub span: Option<(u32, u32)>,
    /// The index of the set-up program that contains the form, from 0.
    pub setup: Option<usize>,
    /// The number of the earlier turn of a session that contains the form, from 1.
    pub turn: Option<u64>,
    /// What the call spent, without the calls that it made.
    pub cost: Cost,
}

/// An amount of fuel, memory and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// Units of fuel.
    pub fuel: u64,
    /// Allocated bytes.
    pub bytes: u64,
    /// Time in nanoseconds.
    pub nanos: u64,
}

impl Cost {
    /// Adds another cost.
    pub fn add(&mut self, other: Cost) {
        self.fuel = self.fuel.saturating_add(other.fuel);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl Profile {
    /// The maximum number of nodes.
    pub const NODES: usize = 10_000;
    /// The maximum depth of calls that have their own nodes.
    pub const DEPTH: usize = 100;

    /// Returns the total cost of each node, including the calls that it made.
    pub fn totals(&self) -> Vec<Cost> {
        let mut totals: Vec<Cost> = self.nodes.iter().map(|node| node.cost).collect();
        // Nodes come after their parents.
        for (number, node) in self.nodes.iter().enumerate().rev() {
            let cost = totals[number];
            if let Some(parent) = node.parent.and_then(|parent| totals.get_mut(parent as usize)) {
                parent.add(cost);
            }
        }
        totals
    }

    /// Returns whether a run could have produced it.
    pub(crate) fn is_sound(&self) -> bool {
        let behind =
            |(number, node): (usize, &ProfileNode)| node.parent.is_none_or(|parent| (parent as usize) < number);
        self.nodes.len() <= Profile::NODES && self.nodes.iter().enumerate().all(behind)
    }
}
