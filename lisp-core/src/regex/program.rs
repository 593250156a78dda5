//! Patterns with look-around and back-references, and long matches of others: compiled for the backtracking machine.

use super::class::Class;
use fancy_regex::{Assertion, Expr, LookAround};
use regex_automata::util::look::Look;
use std::collections::HashMap;

/// One instruction. What does not match goes back to the last choice.
#[derive(Debug)]
pub(super) enum Insn {
    /// The pattern has matched.
    Match,
    /// These characters.
    Text(Box<str>),
    /// One character of a class.
    Class(u32),
    /// As many characters of a class as there are, or as few as will do.
    Many { class: u32, least: u32, most: u32, greedy: bool },
    /// What stands around the place, without going on.
    Look(Look),
    /// The end of the text, or what stands before the line's end there.
    BeforeLastLineEnd,
    /// Where the search began.
    Origin,
    /// The first way, and if it fails the second.
    Split(u32, u32),
    /// Goes on elsewhere.
    Jump(u32),
    /// Keeps the place in a slot; undone when a choice before it is taken back.
    Save(u32),
    /// Goes on elsewhere when the place is still the one in the slot.
    IfStill(u32, u32),
    /// The text of a group again.
    Again { group: u32, any_case: bool },
    /// Goes on elsewhere unless the group has matched.
    Unless(u32, u32),
    /// Keeps the height of the stack of choices and the place in two slots.
    Open(u32),
    /// Forgets the choices since `Open`.
    Commit(u32),
    /// As the one before, and goes back to the place it had.
    CommitAndReturn(u32),
    /// Keeps the height, and goes on elsewhere when what follows fails.
    Not(u32, u32),
    /// What followed `Not` has matched: that is a failure.
    Refuse(u32),
    /// This number of characters back.
    Back(u32),
    /// The place is the one in the slot.
    At(u32),
    /// The place is no more bytes than this before the one in the slot.
    Within(u32, u32),
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) insns: Vec<Insn>,
    pub(super) classes: Vec<Class>,
    /// Slots of the groups, two each, and those behind them.
    pub(super) slots: usize,
    /// Groups, the whole match included.
    pub(crate) groups: usize,
    /// The names of groups, and their numbers.
    names: Vec<(Box<str>, usize)>,
    /// Nothing in it depends on how a place was reached, so none has to be tried twice.
    pub(super) regular: bool,
    /// The repeats whose body can match nothing: the slot where the round began, and the repeat around it.
    pub(super) rounds: Vec<(u32, Option<u32>)>,
    /// The innermost of these for each instruction; empty when there are none.
    pub(super) round_of: Vec<Option<u32>>,
    /// How deep they stand in each other.
    pub(super) round_depth: usize,
}

/// Why a pattern is none.
pub(super) enum Invalid {
    /// It cannot be read, or asks for what there is not.
    Syntax(&'static str),
    /// It takes too much memory.
    TooBig,
}

impl Program {
    /// The most instructions.
    pub(super) const MOST_INSNS: usize = 50_000;

    /// Compiles a pattern in the notation of the engines.
    pub(super) fn compile(text: &str) -> Result<Program, Invalid> {
        let tree = Expr::parse_tree(text).map_err(|_| Invalid::Syntax(why_unread(text)))?;
        let groups = 1 + count_groups(&tree.expr);
        let mut c = Compiler {
            insns: Vec::new(),
            classes: Vec::new(),
            known: HashMap::new(),
            groups,
            next_group: 1,
            slots: 2 * groups,
            regular: true,
            rounds: Vec::new(),
            round_of: Vec::new(),
            open_rounds: Vec::new(),
            round_depth: 0,
        };
        c.expr(&tree.expr)?;
        c.push(Insn::Match)?;
        let numbered = tree.named_groups.iter().filter_map(|(name, numbers)| Some((name, *numbers.first()?)));
        let names = numbered.map(|(name, number)| (name.as_str().into(), number)).collect();
        if c.rounds.is_empty() {
            c.round_of.clear();
        }
        Ok(Program {
            insns: c.insns,
            classes: c.classes,
            slots: c.slots,
            groups,
            names,
            regular: c.regular,
            rounds: c.rounds,
            round_of: c.round_of,
            round_depth: c.round_depth,
        })
    }

    /// The number of the group with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(own, _)| &**own == name).map(|found| found.1)
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.insns.capacity() * std::mem::size_of::<Insn>() + self.classes.iter().map(Class::bytes).sum::<usize>()
    }
}

/// Why a pattern is none, as far as its text tells.
fn why_unread(text: &str) -> &'static str {
    let after_look_around = text.match_indices("(?").any(|(at, _)| {
        let group = text.get(at..).unwrap_or_default();
        let is_look = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| group.starts_with(sign));
        is_look
            && group
                .find(')')
                .is_some_and(|end| group.get(end + 1..).unwrap_or_default().starts_with(['*', '+', '?', '{']))
    });
    if after_look_around { "look-around cannot be repeated; it matches no text" } else { "it cannot be read" }
}

fn count_groups(expr: &Expr) -> usize {
    let own = usize::from(matches!(expr, Expr::Group(_)));
    own + expr.children_iter().map(count_groups).sum::<usize>()
}

/// The least and the most characters that an expression matches.
fn width(expr: &Expr) -> (usize, Option<usize>) {
    match expr {
        Expr::Any { .. } | Expr::Delegate { .. } => (1, Some(1)),
        Expr::GeneralNewline { .. } => (1, Some(2)),
        Expr::Literal { val, .. } => (val.chars().count(), Some(val.chars().count())),
        Expr::LiteralBytes { bytes } => (bytes.len(), Some(bytes.len())),
        Expr::Concat(parts) => parts
            .iter()
            .map(width)
            .fold((0, Some(0)), |(a, b), (c, d)| (a.saturating_add(c), b.zip(d).map(|(b, d)| b.saturating_add(d)))),
        Expr::Alt(ways) => ways
            .iter()
            .map(width)
            .reduce(|(a, b), (c, d)| (a.min(c), b.zip(d).map(|(b, d)| b.max(d))))
            .unwrap_or((0, Some(0))),
        Expr::Group(child) => width(child),
        Expr::AtomicGroup(child) => width(child),
        Expr::Repeat { child, lo, hi, .. } => {
            let (least, most) = width(child);
            let most = if *hi == usize::MAX { None } else { most.map(|m| m.saturating_mul(*hi)) };
            (least.saturating_mul(*lo), most)
        }
        Expr::Backref { .. } => (0, None),
        Expr::Conditional { true_branch, false_branch, .. } => {
            let ((a, b), (c, d)) = (width(true_branch), width(false_branch));
            (a.min(c), b.zip(d).map(|(b, d)| b.max(d)))
        }
        _ => (0, Some(0)),
    }
}

struct Compiler {
    insns: Vec<Insn>,
    classes: Vec<Class>,
    /// Classes by their notation.
    known: HashMap<(String, bool), u32>,
    groups: usize,
    next_group: usize,
    slots: usize,
    regular: bool,
    rounds: Vec<(u32, Option<u32>)>,
    round_of: Vec<Option<u32>>,
    open_rounds: Vec<u32>,
    round_depth: usize,
}

type Done = Result<(), Invalid>;

impl Compiler {
    fn push(&mut self, insn: Insn) -> Result<usize, Invalid> {
        if self.insns.len() >= Program::MOST_INSNS {
            return Err(Invalid::TooBig);
        }
        self.insns.push(insn);
        self.round_of.push(self.open_rounds.last().copied());
        Ok(self.insns.len() - 1)
    }

    fn here(&self) -> Result<u32, Invalid> {
        number(self.insns.len())
    }

    /// Two slots of its own for an instruction.
    fn slot(&mut self) -> Result<u32, Invalid> {
        self.slots += 2;
        number(self.slots - 2)
    }

    fn class(&mut self, notation: &str, any_case: bool) -> Result<u32, Invalid> {
        let key = (notation.to_owned(), any_case);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let class = Class::parse(notation, any_case).ok_or(Invalid::Syntax("a class cannot be read"))?;
        self.classes.push(class);
        let number = number(self.classes.len() - 1)?;
        self.known.insert(key, number);
        Ok(number)
    }

    /// The class of an expression that is one character of a class.
    fn single(&mut self, expr: &Expr) -> Result<Option<u32>, Invalid> {
        match expr {
            Expr::Any { newline: true, .. } => self.class("(?s:.)", false),
            Expr::Any { newline: false, crlf: false } => self.class(".", false),
            Expr::Any { newline: false, crlf: true } => self.class("(?R:.)", false),
            Expr::Delegate { inner, casei } => self.class(inner, *casei),
            Expr::Literal { val, casei } if val.chars().count() == 1 => self.class(&regex_syntax::escape(val), *casei),
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn expr(&mut self, expr: &Expr) -> Done {
        match expr {
            Expr::Empty => Ok(()),
            Expr::Any { .. } | Expr::Delegate { .. } => match self.single(expr)? {
                Some(class) => self.push(Insn::Class(class)).map(drop),
                None => Ok(()),
            },
            Expr::Literal { val, casei } => self.literal(val, *casei),
            Expr::LiteralBytes { bytes } => {
                let text: String = bytes.iter().map(|&b| char::from(b)).collect();
                self.literal(&text, false)
            }
            Expr::GeneralNewline { .. } => self.literal("\n", false),
            Expr::Assertion(assertion) => self.assertion(*assertion),
            Expr::Concat(parts) => parts.iter().try_for_each(|part| self.expr(part)),
            Expr::Alt(ways) => self.ways(ways, |c, way| c.expr(way)),
            Expr::Group(child) => self.group(child),
            Expr::LookAround(child, kind) => self.look_around(child, *kind),
            Expr::Repeat { child, lo, hi, greedy } => self.repeat(child, *lo, *hi, *greedy),
            Expr::Backref { group, casei } => self.again(*group, *casei),
            Expr::AtomicGroup(child) => {
                self.regular = false;
                let slot = self.slot()?;
                self.push(Insn::Open(slot))?;
                self.expr(child)?;
                self.push(Insn::Commit(slot)).map(drop)
            }
            Expr::KeepOut => {
                self.regular = false;
                self.push(Insn::Save(0)).map(drop)
            }
            Expr::ContinueFromPreviousMatchEnd => self.push(Insn::Origin).map(drop),
            Expr::Conditional { condition, true_branch, false_branch } => {
                self.conditional(condition, true_branch, false_branch)
            }
            _ => Err(Invalid::Syntax("subroutines, recursion and control verbs are not supported")),
        }
    }

    fn literal(&mut self, text: &str, any_case: bool) -> Done {
        if !any_case {
            return self.push(Insn::Text(text.into())).map(drop);
        }
        for c in text.chars() {
            let class = self.class(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])), true)?;
            self.push(Insn::Class(class))?;
        }
        Ok(())
    }

    fn assertion(&mut self, assertion: Assertion) -> Done {
        let look = match assertion {
            Assertion::StartText => Look::Start,
            Assertion::EndText => Look::End,
            Assertion::EndTextIgnoreTrailingNewlines { .. } => {
                return self.push(Insn::BeforeLastLineEnd).map(drop);
            }
            Assertion::StartLine { crlf: false } | Assertion::StartLineOniguruma { crlf: false } => Look::StartLF,
            Assertion::StartLine { crlf: true } | Assertion::StartLineOniguruma { crlf: true } => Look::StartCRLF,
            Assertion::EndLine { crlf: false } => Look::EndLF,
            Assertion::EndLine { crlf: true } => Look::EndCRLF,
            Assertion::LeftWordBoundary => Look::WordStartUnicode,
            Assertion::LeftWordHalfBoundary => Look::WordStartHalfUnicode,
            Assertion::RightWordBoundary => Look::WordEndUnicode,
            Assertion::RightWordHalfBoundary => Look::WordEndHalfUnicode,
            Assertion::WordBoundary => Look::WordUnicode,
            Assertion::NotWordBoundary => Look::WordUnicodeNegate,
        };
        self.push(Insn::Look(look)).map(drop)
    }

    /// One way or the other, the first that goes.
    fn ways(&mut self, ways: &[Expr], mut each: impl FnMut(&mut Self, &Expr) -> Done) -> Done {
        let mut ends = Vec::new();
        for (i, way) in ways.iter().enumerate() {
            if i + 1 == ways.len() {
                each(self, way)?;
                break;
            }
            let split = self.push(Insn::Split(self.here()? + 1, 0))?;
            each(self, way)?;
            ends.push(self.push(Insn::Jump(0))?);
            self.insns[split] = Insn::Split(number(split)? + 1, self.here()?);
        }
        for end in ends {
            self.insns[end] = Insn::Jump(self.here()?);
        }
        Ok(())
    }

    fn group(&mut self, child: &Expr) -> Done {
        // A repeat compiles its body several times: the numbers of the groups in it are those of the first time.
        let group = number(self.next_group)?;
        self.next_group += 1;
        self.push(Insn::Save(2 * group))?;
        self.expr(child)?;
        self.push(Insn::Save(2 * group + 1)).map(drop)
    }

    fn look_around(&mut self, child: &Expr, kind: LookAround) -> Done {
        self.regular = false;
        let slot = self.slot()?;
        let negative = matches!(kind, LookAround::LookAheadNeg | LookAround::LookBehindNeg);
        let open = self.push(Insn::Open(slot))?;
        let not = if negative { Some(self.push(Insn::Not(slot, 0))?) } else { None };
        match (kind, child) {
            (LookAround::LookAhead | LookAround::LookAheadNeg, _) => self.expr(child)?,
            (_, Expr::Alt(ways)) => self.ways(ways, |c, way| c.behind(way, slot))?,
            _ => self.behind(child, slot)?,
        }
        match not {
            None => self.push(Insn::CommitAndReturn(slot)).map(drop),
            Some(not) => {
                debug_assert_eq!(open + 1, not);
                self.push(Insn::Refuse(slot))?;
                self.insns[not] = Insn::Not(slot, self.here()?);
                Ok(())
            }
        }
    }

    /// What ends where the slot behind `slot` says, tried from the nearest beginning on.
    fn behind(&mut self, child: &Expr, slot: u32) -> Done {
        let (least, most) = width(child);
        self.push(Insn::Back(u32::try_from(least).unwrap_or(u32::MAX)))?;
        if most == Some(least) {
            return self.expr(child);
        }
        let split = self.push(Insn::Split(0, 0))?;
        self.expr(child)?;
        self.push(Insn::At(slot + 1))?;
        let done = self.push(Insn::Jump(0))?;
        self.insns[split] = Insn::Split(number(split)? + 1, self.here()?);
        self.push(Insn::Back(1))?;
        if let Some(most) = most {
            let bytes = u32::try_from(most.saturating_mul(4)).unwrap_or(u32::MAX);
            self.push(Insn::Within(slot + 1, bytes))?;
        }
        self.push(Insn::Jump(number(split)?))?;
        self.insns[done] = Insn::Jump(self.here()?);
        Ok(())
    }

    fn repeat(&mut self, child: &Expr, lo: usize, hi: usize, greedy: bool) -> Done {
        if lo > hi {
            return Err(Invalid::Syntax("the numbers of a counted repeat are in the wrong order"));
        }
        // More often than this counts is as often as there is text.
        let times = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        if let Some(class) = self.single(child)? {
            return self.push(Insn::Many { class, least: times(lo), most: times(hi), greedy }).map(drop);
        }
        let first_group = self.next_group;
        let mut once = |c: &mut Self| {
            c.next_group = first_group;
            c.expr(child)
        };
        for _ in 0..lo {
            once(self)?;
        }
        if hi == usize::MAX {
            self.round_and_round(&mut once, width(child).0 == 0, greedy)?;
        } else {
            let mut splits = Vec::new();
            for _ in lo..hi {
                splits.push(self.push(Insn::Split(0, 0))?);
                once(self)?;
            }
            for split in splits {
                self.insns[split] = choice(number(split)? + 1, self.here()?, greedy);
            }
        }
        self.next_group = first_group + count_groups(child);
        Ok(())
    }

    fn round_and_round(&mut self, once: &mut impl FnMut(&mut Self) -> Done, empty: bool, greedy: bool) -> Done {
        let slot = self.slot()?;
        let split = self.push(Insn::Split(0, 0))?;
        if empty {
            self.push(Insn::Save(slot))?;
            self.rounds.push((slot, self.open_rounds.last().copied()));
            self.open_rounds.push(number(self.rounds.len() - 1)?);
            self.round_depth = self.round_depth.max(self.open_rounds.len());
        }
        once(self)?;
        if empty {
            self.open_rounds.pop();
        }
        // A round that has not moved on is the last.
        let still = if empty { Some(self.push(Insn::IfStill(slot, 0))?) } else { None };
        self.push(Insn::Jump(number(split)?))?;
        self.insns[split] = choice(number(split)? + 1, self.here()?, greedy);
        if let Some(still) = still {
            self.insns[still] = Insn::IfStill(slot, self.here()?);
        }
        Ok(())
    }

    fn again(&mut self, group: usize, any_case: bool) -> Done {
        self.regular = false;
        if group == 0 || group >= self.groups {
            return Err(Invalid::Syntax("a back-reference to a group that is not there"));
        }
        self.push(Insn::Again { group: number(group)?, any_case }).map(drop)
    }

    fn conditional(&mut self, condition: &Expr, yes: &Expr, no: &Expr) -> Done {
        self.regular = false;
        let &Expr::BackrefExistsCondition { group, relative_recursion_level: None } = condition else {
            return Err(Invalid::Syntax("a condition can only ask whether a group has matched"));
        };
        if group >= self.groups {
            return Err(Invalid::Syntax("a condition on a group that is not there"));
        }
        let unless = self.push(Insn::Unless(number(group)?, 0))?;
        self.expr(yes)?;
        let end = self.push(Insn::Jump(0))?;
        self.insns[unless] = Insn::Unless(number(group)?, self.here()?);
        self.expr(no)?;
        self.insns[end] = Insn::Jump(self.here()?);
        Ok(())
    }
}

/// A place or a number as instructions have it.
fn number(n: usize) -> Result<u32, Invalid> {
    u32::try_from(n).map_err(|_| Invalid::TooBig)
}

fn choice(on: u32, out: u32, greedy: bool) -> Insn {
    if greedy { Insn::Split(on, out) } else { Insn::Split(out, on) }
}
