//! Compiles patterns for the backtracking engine.

use super::class::Class;
use super::sets;
use super::tree::{At, Pattern, Tree};
use std::collections::HashMap;
use std::sync::Arc;

/// One instruction. If it does not match, the engine goes back to the last choice.
#[derive(Debug)]
pub(super) enum Insn {
    /// The pattern has matched.
    Match,
    /// Matches these characters.
    Text(Arc<str>),
    /// Matches one character of a class.
    Class(u32),
    /// Matches as many characters of a class as possible, or as few if not `greedy`.
    Many { class: u32, least: u32, max: u32, greedy: bool },
    /// Checks a condition on the position.
    At(At),
    /// Tries the first path, and the second if that fails.
    Split(u32, u32),
    /// Continues at another instruction.
    Jump(u32),
    /// Saves the position in a slot. Going back to an earlier choice restores the slot.
    Save(u32),
    /// Continues at another instruction if the position is still the one in the slot.
    IfStill(u32, u32),
    /// Matches `\R` as a whole.
    LineEnd,
    /// Matches an extended grapheme cluster.
    Cluster,
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(super) insns: Vec<Insn>,
    pub(super) classes: Vec<Class>,
    /// The number of slots: two for each group, then those of the rounds.
    pub(super) slots: usize,
    /// The number of groups, including the whole match.
    pub(crate) groups: usize,
    /// The names of groups, with their numbers.
    names: Vec<(Box<str>, usize)>,
    /// The repeats whose body can match the empty string: the slot with the start of the round, and the enclosing one.
    pub(super) rounds: Vec<(u32, Option<u32>)>,
    /// The index of the innermost of these repeats for each instruction; empty if there are none.
    pub(super) round_of: Vec<Option<u32>>,
    /// The maximum nesting of these repeats.
    pub(super) round_depth: usize,
}

/// A pattern needs more than [`Program::MAX_INSNS`] instructions.
#[derive(Debug)]
pub(super) struct TooBig;

impl Program {
    /// The maximum number of instructions.
    pub(super) const MAX_INSNS: usize = 50_000;

    /// Compiles a pattern. Fails if it needs too many instructions.
    pub(super) fn compile(pattern: &Pattern) -> Result<Program, TooBig> {
        let mut c = Compiler {
            pattern,
            insns: Vec::new(),
            classes: Vec::new(),
            known: HashMap::new(),
            slots: 2 * pattern.groups,
            rounds: Vec::new(),
            round_of: Vec::new(),
            open_rounds: Vec::new(),
            round_depth: 0,
        };
        c.tree(&pattern.tree)?;
        c.push(Insn::Match)?;
        if c.rounds.is_empty() {
            c.round_of.clear();
        }
        Ok(Program {
            insns: c.insns,
            classes: c.classes,
            slots: c.slots,
            groups: pattern.groups,
            names: pattern.names.iter().map(|(name, group)| (name.clone(), *group as usize)).collect(),
            rounds: c.rounds,
            round_of: c.round_of,
            round_depth: c.round_depth,
        })
    }

    /// Returns the number of the group with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(own, _)| &**own == name).map(|found| found.1)
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.insns.capacity() * size_of::<Insn>()
            + self.round_of.capacity() * size_of::<Option<u32>>()
            + self.rounds.capacity() * size_of::<(u32, Option<u32>)>()
            + self.classes.iter().map(Class::bytes).sum::<usize>()
    }
}

struct Compiler<'p> {
    pattern: &'p Pattern,
    insns: Vec<Insn>,
    classes: Vec<Class>,
    /// Classes already compiled, by their number in the pattern or their only character.
    known: HashMap<Known, u32>,
    slots: usize,
    rounds: Vec<(u32, Option<u32>)>,
    round_of: Vec<Option<u32>>,
    open_rounds: Vec<u32>,
    round_depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Known {
    Class(u32),
    Character(char),
    LineEnd,
}

type Done = Result<(), TooBig>;

impl Compiler<'_> {
    fn push(&mut self, insn: Insn) -> Result<usize, TooBig> {
        if self.insns.len() >= Program::MAX_INSNS {
            return Err(TooBig);
        }
        self.insns.push(insn);
        self.round_of.push(self.open_rounds.last().copied());
        Ok(self.insns.len() - 1)
    }

    fn here(&self) -> Result<u32, TooBig> {
        number(self.insns.len())
    }

    /// Reserves two slots. Returns the first.
    fn slot(&mut self) -> Result<u32, TooBig> {
        self.slots += 2;
        number(self.slots - 2)
    }

    fn class(&mut self, known: Known) -> Result<u32, TooBig> {
        if let Some(&class) = self.known.get(&known) {
            return Ok(class);
        }
        let class = match known {
            Known::Class(class) => Class::new(self.pattern.classes.get(class as usize).map_or(&[], |set| set.ranges())),
            Known::Character(c) => Class::new(sets::of_ranges(&[(c, c)]).ranges()),
            Known::LineEnd => Class::new(sets::of_letter('v', false).as_ref().map_or(&[], |set| set.ranges())),
        };
        self.classes.push(class);
        let class = number(self.classes.len() - 1)?;
        self.known.insert(known, class);
        Ok(class)
    }

    /// Returns the class of a tree that matches exactly one character of a class.
    fn single(&mut self, tree: &Tree) -> Result<Option<u32>, TooBig> {
        match tree {
            Tree::Class(class) => self.class(Known::Class(*class)).map(Some),
            Tree::Text(text) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(only), None) => self.class(Known::Character(only)).map(Some),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn tree(&mut self, tree: &Tree) -> Done {
        match tree {
            Tree::Empty => Ok(()),
            Tree::Class(class) => {
                let class = self.class(Known::Class(*class))?;
                self.push(Insn::Class(class)).map(drop)
            }
            Tree::Text(text) => self.push(Insn::Text(text.clone())).map(drop),
            Tree::At(at) => self.push(Insn::At(*at)).map(drop),
            Tree::Concat(parts) => parts.iter().try_for_each(|part| self.tree(part)),
            Tree::Any(ways) => self.ways(ways),
            Tree::Group(group, inside) => self.group(*group, inside),
            Tree::Repeat { tree, least, max, greedy } => self.repeat(tree, *least, *max, *greedy),
            Tree::LineEnd { whole: true } => self.push(Insn::LineEnd).map(drop),
            Tree::LineEnd { whole: false } => {
                let split = self.push(Insn::Split(self.here()? + 1, self.here()? + 3))?;
                self.push(Insn::Text("\r\n".into()))?;
                self.push(Insn::Jump(number(split + 4)?))?;
                let class = self.class(Known::LineEnd)?;
                self.push(Insn::Class(class)).map(drop)
            }
            Tree::Cluster => self.push(Insn::Cluster).map(drop),
        }
    }

    /// Compiles alternatives; the first one that matches is used.
    fn ways(&mut self, ways: &[Tree]) -> Done {
        let mut ends = Vec::new();
        for (i, way) in ways.iter().enumerate() {
            if i + 1 == ways.len() {
                self.tree(way)?;
                break;
            }
            let split = self.push(Insn::Split(self.here()? + 1, 0))?;
            self.tree(way)?;
            ends.push(self.push(Insn::Jump(0))?);
            self.insns[split] = Insn::Split(number(split)? + 1, self.here()?);
        }
        for end in ends {
            self.insns[end] = Insn::Jump(self.here()?);
        }
        Ok(())
    }

    fn group(&mut self, group: u32, inside: &Tree) -> Done {
        self.push(Insn::Save(2 * group))?;
        self.tree(inside)?;
        self.push(Insn::Save(2 * group + 1)).map(drop)
    }

    fn repeat(&mut self, inside: &Tree, least: u32, max: Option<u32>, greedy: bool) -> Done {
        if let Some(class) = self.single(inside)? {
            // `u32::MAX` means no maximum.
            return self.push(Insn::Many { class, least, max: max.unwrap_or(u32::MAX), greedy }).map(drop);
        }
        // A body that only matches the empty string has the same effect once as any number of times.
        let is_empty = inside.width().1 == Some(0);
        let is_idle = is_empty && max != Some(1) && matches!(inside, Tree::Group(..)) && inside.is_single_way();
        let (least, max) = match max {
            // As in Java, such a group takes no part in optional rounds.
            _ if is_idle => (least.min(1), Some(least.min(1))),
            _ if is_empty => (least.min(1), Some(max.map_or(1, |n| n.min(1)))),
            max => (least, max),
        };
        // A round that matches the empty string ends the repeat.
        let may_be_empty = inside.may_be_empty() && max != Some(1);
        let mut ends = Vec::new();
        for _ in 0..least {
            ends.extend(self.round(inside, may_be_empty)?);
        }
        let mut splits = Vec::new();
        match max {
            None => {
                let split = self.push(Insn::Split(0, 0))?;
                ends.extend(self.round(inside, may_be_empty)?);
                self.push(Insn::Jump(number(split)?))?;
                splits.push(split);
            }
            Some(max) => {
                for _ in least..max {
                    splits.push(self.push(Insn::Split(0, 0))?);
                    ends.extend(self.round(inside, may_be_empty)?);
                }
            }
        }
        for split in splits {
            self.insns[split] = choice(number(split)? + 1, self.here()?, greedy);
        }
        for (end, slot) in ends {
            self.insns[end] = Insn::IfStill(slot, self.here()?);
        }
        Ok(())
    }

    /// Compiles one round of a repeat. If the body can match the empty string, returns the instruction that checks
    /// whether it did, and its slot.
    fn round(&mut self, inside: &Tree, may_be_empty: bool) -> Result<Option<(usize, u32)>, TooBig> {
        if !may_be_empty {
            self.tree(inside)?;
            return Ok(None);
        }
        let slot = self.slot()?;
        self.push(Insn::Save(slot))?;
        self.rounds.push((slot, self.open_rounds.last().copied()));
        self.open_rounds.push(number(self.rounds.len() - 1)?);
        self.round_depth = self.round_depth.max(self.open_rounds.len());
        self.tree(inside)?;
        self.open_rounds.pop();
        Ok(Some((self.push(Insn::IfStill(slot, 0))?, slot)))
    }
}

/// Converts an index or number to the type used in instructions.
fn number(n: usize) -> Result<u32, TooBig> {
    u32::try_from(n).map_err(|_| TooBig)
}

fn choice(on: u32, out: u32, greedy: bool) -> Insn {
    if greedy { Insn::Split(on, out) } else { Insn::Split(out, on) }
}
