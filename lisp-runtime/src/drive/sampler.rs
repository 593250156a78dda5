//! Looks at where a machine stands while it works, for a [`Profile`](crate::Profile).

use crate::terms::profile::{Cost, Profile, ProfileNode};
use lisp_core::Span;
use lisp_core::vm::{Machine, Spot, Step, Usage};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// After so many samples the machine is stopped half as often.
const SAMPLES: u64 = 8_192;
/// After so many the driver looks at the clock.
const TURN: usize = 256;

/// A place in the code; a function of the language has none.
type Place = Option<(u64, Span)>;

/// A call in progress, at a place.
struct Node {
    parent: Option<u32>,
    function: Option<Box<str>>,
    place: Place,
    cost: Cost,
}

/// What a node is known by: its parent, its place, its name.
type Known = (Option<u32>, Place, Option<Box<str>>);

/// The tree of the calls that were seen.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    known: HashMap<Known, u32>,
    samples: u64,
    cut: bool,
}

impl Tree {
    /// The node of a call that was made by another, or that other one where there is no room for more. One that is at work at
    /// the same place already, and calls itself, is the one that was first.
    fn node(&mut self, parent: Option<u32>, function: Option<&str>, place: Place) -> Option<u32> {
        let mut above = parent;
        while let Some((number, node)) = above.and_then(|number| Some((number, self.nodes.get(number as usize)?))) {
            if (node.place, node.function.as_deref()) == (place, function) {
                return Some(number);
            }
            above = node.parent;
        }
        let key = (parent, place, function.map(Into::into));
        if let Some(&node) = self.known.get(&key) {
            return Some(node);
        }
        let number = u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < Profile::NODES);
        let Some(number) = number else {
            self.cut = true;
            return parent;
        };
        self.nodes.push(Node { parent, function: key.2.clone(), place, cost: Cost::default() });
        self.known.insert(key, number);
        Some(number)
    }

    /// The node of the place where a machine stands.
    fn node_of(&mut self, machine: &mut Machine) -> Option<u32> {
        let (mut node, mut depth) = (None, 0);
        machine.see_spots(Profile::DEPTH, &mut |Spot { function, place }| {
            depth += 1;
            node = self.node(node, function, place);
        });
        self.cut |= depth > Profile::DEPTH;
        node
    }

    fn add(&mut self, node: Option<u32>, cost: Cost) {
        let node = node.or_else(|| self.node(None, None, None));
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node as usize)) {
            node.cost.add(cost);
        }
    }

    /// Adds what another tree has.
    fn merge(&mut self, other: Tree) {
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(other.nodes.len());
        for node in other.nodes {
            // A node stands behind its parent.
            let parent = node.parent.and_then(|parent| numbers.get(parent as usize).copied().flatten());
            let number = self.node(parent, node.function.as_deref(), node.place);
            self.add(number, node.cost);
            numbers.push(number);
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.cut |= other.cut;
    }
}

/// What the machines of a run have seen.
#[derive(Default)]
pub(crate) struct Profiled(Mutex<Option<Box<Tree>>>);

impl Profiled {
    /// The profile of the run, which then is empty. `text` says which text a program is: its set-up program or turn.
    pub(crate) fn take(&self, text: impl Fn(u64) -> (Option<usize>, Option<u64>)) -> Profile {
        let tree = self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let mut profile = Profile { samples: tree.samples, cut: tree.cut, ..Profile::default() };
        profile.nodes.extend(tree.nodes.into_iter().map(|node| {
            let (setup, turn) = node.place.map_or((None, None), |(program, _)| text(program));
            let span = node.place.map(|(_, span)| (span.start, span.end));
            let function = node.function.map(Into::into);
            ProfileNode { parent: node.parent, function, span, setup, turn, cost: node.cost }
        }));
        profile
    }
}

/// One machine under the eye of a profile.
#[derive(Default)]
pub(crate) struct Sampler {
    tree: Tree,
    /// Fuel behind each instruction: at first the machine is stopped before every one.
    period: u64,
    /// What has been put to an account.
    seen: Usage,
    /// What the machine spends before it is resumed is not its own: it was spent by its workers.
    skips: bool,
}

impl Sampler {
    /// Resumes a machine for about so much fuel.
    pub(crate) fn resume(&mut self, machine: &mut Machine, slice: u64) -> Step {
        let begun = machine.usage();
        if std::mem::take(&mut self.skips) {
            self.seen = begun;
        }
        let (mut stuck, mut looks) = (0, 0);
        loop {
            let (node, before) = (self.tree.node_of(machine), machine.usage().fuel);
            let start = Instant::now();
            let step = machine.resume_closely(self.period);
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let now = machine.usage();
            let fuel = now.fuel.saturating_sub(self.seen.fuel);
            let bytes = now.allocated_bytes.saturating_sub(self.seen.allocated_bytes);
            self.tree.add(node, Cost { fuel, bytes, nanos });
            self.seen = now;
            self.tree.samples += 1;
            if self.tree.samples.is_multiple_of(SAMPLES) {
                self.period = self.period.saturating_mul(2).max(1);
            }
            // Without progress the instruction begins again, or the heap is being compacted.
            stuck = if now.fuel > before { 0 } else { stuck + 1 };
            looks += 1;
            if !matches!(step, Step::Paused)
                || stuck > 1
                || looks >= TURN
                || now.fuel >= begun.fuel.saturating_add(slice)
            {
                return step;
            }
        }
    }

    /// The workers of a parallel call are about to work.
    pub(crate) fn leaves(&mut self) {
        self.skips = true;
    }

    /// Adds what was seen of a worker.
    pub(crate) fn absorb(&mut self, worker: Sampler) {
        self.tree.merge(worker.tree);
    }

    /// Adds what was seen to the run's.
    pub(crate) fn end(self, profiled: &Profiled) {
        profiled.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().merge(self.tree);
    }
}
