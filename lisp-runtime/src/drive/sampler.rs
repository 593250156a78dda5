//! Samples the position of a running machine, for a [`Profile`](crate::outcome::Profile).

use crate::terms::profile::{Cost, Profile, ProfileNode};
use lisp_core::Span;
use lisp_core::vm::{CallPosition, Machine, Step, Usage};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// After this many samples, the sampling interval doubles.
const SAMPLES: u64 = 8_192;
/// After this many samples, the driver checks the clock.
const TURN: usize = 256;

/// A position in the code; built-ins have none.
type Place = Option<(u64, Span)>;

/// A call in progress, at a position.
struct Node {
    parent: Option<u32>,
    function: Option<Box<str>>,
    place: Place,
    cost: Cost,
}

/// The key of a node: its parent, its position, its name.
type Known = (Option<u32>, Place, Option<Box<str>>);

/// The tree of sampled calls.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    known: HashMap<Known, u32>,
    samples: u64,
    cut: bool,
}

impl Tree {
    /// Returns the node of a call by its caller. If there is no room, returns the caller; for a recursive call at the
    /// same position, returns the node of the first one.
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

    /// Returns the node of a machine's current position.
    fn node_of(&mut self, machine: &mut Machine) -> Option<u32> {
        let (mut node, mut depth) = (None, 0);
        machine.see_calls(Profile::DEPTH, &mut |CallPosition { function, place }| {
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

    /// Merges another tree.
    fn merge(&mut self, other: Tree) {
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(other.nodes.len());
        for node in other.nodes {
            // Nodes come after their parents.
            let parent = node.parent.and_then(|parent| numbers.get(parent as usize).copied().flatten());
            let number = self.node(parent, node.function.as_deref(), node.place);
            self.add(number, node.cost);
            numbers.push(number);
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.cut |= other.cut;
    }
}

/// The samples of all machines of a run.
#[derive(Default)]
pub(crate) struct Profiled(Mutex<Option<Box<Tree>>>);

impl Profiled {
    /// Takes the profile of the run. `text` returns the set-up program or turn of a program.
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

/// The samples of one machine.
#[derive(Default)]
pub(crate) struct Sampler {
    tree: Tree,
    /// Units of fuel between samples; at first, every instruction is sampled.
    period: u64,
    /// The usage that was already assigned to nodes.
    seen: Usage,
    /// Whether usage before the next resume is ignored: it was that of workers.
    skips: bool,
}

impl Sampler {
    /// Resumes a machine for about `slice` units of fuel.
    pub(crate) fn resume(&mut self, machine: &mut Machine, slice: u64) -> Step {
        let started = machine.usage();
        if std::mem::take(&mut self.skips) {
            self.seen = started;
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
            // Without progress, the instruction restarts, or the heap is being compacted.
            stuck = if now.fuel > before { 0 } else { stuck + 1 };
            looks += 1;
            if !matches!(step, Step::Paused)
                || stuck > 1
                || looks >= TURN
                || now.fuel >= started.fuel.saturating_add(slice)
            {
                return step;
            }
        }
    }

    /// Notes that the workers of a parallel call are about to run.
    pub(crate) fn leaves(&mut self) {
        self.skips = true;
    }

    /// Adds the samples of a worker.
    pub(crate) fn absorb(&mut self, worker: Sampler) {
        self.tree.merge(worker.tree);
    }

    /// Adds the samples to those of the run.
    pub(crate) fn end(self, profiled: &Profiled) {
        profiled.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().merge(self.tree);
    }
}
