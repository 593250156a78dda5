//! Where a run did its work.

use serde::{Deserialize, Serialize};

/// Where a run spent its fuel, its memory and its time: the tree of the calls that it made. Each node has what was spent while
/// it was the innermost call in progress; a node stands behind its parent. What calls itself, directly or by way of others, has one node on
/// each way.
///
/// The machine is stopped now and then, at first behind every instruction and less and less often in a long run, and what it has
/// spent since is put to the account of the place where it stood. Fuel and bytes are the same each time; together they come to
/// [`Usage::fuel`](crate::Usage::fuel) and [`Usage::allocated_bytes`](crate::Usage::allocated_bytes), but for what starting and joining
/// the workers of parallel calls takes. Time is that of this machine, without tools, and of all workers together; looking makes
/// short runs some times slower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// The calls: at most [`Profile::NODES`].
    pub nodes: Vec<ProfileNode>,
    /// How often the machine was stopped.
    pub samples: u64,
    /// Calls beyond [`Profile::NODES`], or deeper than [`Profile::DEPTH`], are in the accounts of those they were made by.
    pub cut: bool,
}

/// A call in a [`Profile`], at one place of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProfileNode {
    /// The number of the node that it was called by.
    pub parent: Option<u32>,
    /// The function that was at work; none for the program itself, or a function without a name.
    pub function: Option<String>,
    /// The form that was being evaluated, as bytes of its text: the first and one past the last. None in a function of the
    /// language.
    pub span: Option<(u32, u32)>,
    /// The set-up program that the form is in, counted from 0.
    pub setup: Option<usize>,
    /// The earlier turn of a session that the form is in, counted from 1.
    pub turn: Option<u64>,
    /// What was spent there.
    pub cost: Cost,
}

/// What was spent at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// Units of fuel.
    pub fuel: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// Nanoseconds.
    pub nanos: u64,
}

impl Cost {
    /// Adds another one.
    pub fn add(&mut self, other: Cost) {
        self.fuel = self.fuel.saturating_add(other.fuel);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl Profile {
    /// The most nodes.
    pub const NODES: usize = 10_000;
    /// The most calls in calls that are told apart.
    pub const DEPTH: usize = 100;

    /// What each node and all below it spent.
    pub fn totals(&self) -> Vec<Cost> {
        let mut totals: Vec<Cost> = self.nodes.iter().map(|node| node.cost).collect();
        // Nodes stand behind their parents.
        for (number, node) in self.nodes.iter().enumerate().rev() {
            let cost = totals[number];
            if let Some(parent) = node.parent.and_then(|parent| totals.get_mut(parent as usize)) {
                parent.add(cost);
            }
        }
        totals
    }

    /// Can it be what a run made?
    pub(crate) fn is_sound(&self) -> bool {
        let behind =
            |(number, node): (usize, &ProfileNode)| node.parent.is_none_or(|parent| (parent as usize) < number);
        self.nodes.len() <= Profile::NODES && self.nodes.iter().enumerate().all(behind)
    }
}
