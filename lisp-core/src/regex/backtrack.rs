//! The backtracking engine. Steps are charged before they are taken, so a search stops at the deadline. The choices it
//! keeps count against the heap budget.

use super::class::WORDS;
use super::linear::ends_in_line_end;
use super::program::{Insn, Program};
use super::tree::{At, Lines};
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res};
use crate::text::characters::Characters;

/// A choice to return to, or a slot to restore on the way back.
#[derive(Clone, Copy)]
enum Entry {
    Try {
        pc: u32,
        pos: usize,
    },
    Undo {
        slot: u32,
        old: usize,
    },
    /// A greedy repeat that can match fewer characters, down to `low`.
    Fewer {
        pc: u32,
        low: usize,
        pos: usize,
    },
    /// A lazy repeat that can match up to `left` more characters.
    More {
        pc: u32,
        pos: usize,
        left: u32,
    },
}

const UNSET: usize = usize::MAX;

pub(crate) struct Backtracker<'p, 'h> {
    h: &'h Heap,
    program: &'p Program,
    text: &'h str,
    /// The start of the search.
    from: usize,
    /// The end of the previous match.
    last_match: usize,
    slots: Vec<usize>,
    stack: Vec<Entry>,
    /// Steps that are charged and not yet taken.
    paid: u64,
    /// Steps charged since the start of the search.
    steps: u64,
    /// The choices already tried, one bit for each instruction and position. Empty until the search is long, and if
    /// there are too many.
    seen: Vec<u64>,
}

impl<'p, 'h> Backtracker<'p, 'h> {
    /// The maximum number of steps of one search.
    pub(crate) const MAX_STEPS: u64 = 50_000_000;
    /// The maximum number of choices that are remembered.
    pub(super) const MAX_SEEN: usize = 1 << 23;
    /// The number of steps after which a search starts to remember its choices.
    const REMEMBERS_AFTER: u64 = 1 << 16;
    /// The number of steps charged at once.
    const AT_ONCE: u64 = 256;

    /// Creates a search that starts at `from`. The previous match ended at `last_match`.
    pub(crate) fn new(h: &'h Heap, program: &'p Program, text: &'h str, from: usize, last_match: usize) -> Res<Self> {
        h.check_available(program.slots * 8)?;
        Ok(Backtracker {
            h,
            program,
            text,
            from,
            last_match,
            slots: vec![UNSET; program.slots],
            stack: Vec::new(),
            paid: 0,
            steps: 0,
            seen: Vec::new(),
        })
    }

    /// Searches for the first match. Returns whether there is one.
    pub(crate) fn search(&mut self) -> Res<bool> {
        let mut start = self.from;
        loop {
            if self.matches_at(start)? {
                return Ok(true);
            }
            match self.text.get(start..).and_then(|rest| rest.chars().next()) {
                Some(c) => start += c.len_utf8(),
                None => return Ok(false),
            }
        }
    }

    /// Returns the ranges of the groups of the match.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Option<(usize, usize)>> + '_ {
        self.slots.chunks_exact(2).take(self.program.groups).map(|pair| match *pair {
            [start, end] if start != UNSET && end != UNSET => Some((start, end)),
            _ => None,
        })
    }

    #[inline]
    fn tick(&mut self, steps: u64) -> Res<()> {
        if self.paid < steps {
            self.pay(steps)?;
        }
        self.paid -= steps;
        Ok(())
    }

    #[cold]
    fn pay(&mut self, steps: u64) -> Res<()> {
        let more = steps.max(Self::AT_ONCE);
        self.steps = self.steps.saturating_add(more);
        if self.steps > Self::MAX_STEPS {
            return Err(gave_up());
        }
        self.h.charge(cost::backtracked(more))?;
        self.paid += more;
        if self.steps > Self::REMEMBERS_AFTER && self.seen.is_empty() {
            self.remember()?;
        }
        Ok(())
    }

    /// Starts to remember the choices tried, unless there are too many.
    fn remember(&mut self) -> Res<()> {
        let places = self.program.insns.len().saturating_mul(1 + self.program.round_depth);
        let bits = places.saturating_mul(self.text.len() - self.from + 1);
        if bits <= Self::MAX_SEEN {
            let words = bits / 64 + 1;
            self.h.charge(words as u64)?;
            self.h.check_available(
                (words + self.slots.len()) * 8 + self.stack.capacity() * std::mem::size_of::<Entry>(),
            )?;
            self.seen = vec![0; words];
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, entry: Entry) -> Res<()> {
        if self.stack.len() == self.stack.capacity() {
            let more = self.stack.len().max(32);
            // The old and the new stack briefly exist at the same time.
            let entries = (2 * self.stack.len() + more) * std::mem::size_of::<Entry>();
            self.h.check_available(entries + (self.seen.len() + self.slots.len()) * 8)?;
            self.stack.reserve_exact(more);
        }
        self.stack.push(entry);
        Ok(())
    }

    fn save(&mut self, slot: u32, value: usize) -> Res<()> {
        let old = self.slots[slot as usize];
        self.push(Entry::Undo { slot, old })?;
        self.slots[slot as usize] = value;
        Ok(())
    }

    /// Returns whether the pattern matches at a position.
    pub(crate) fn matches_at(&mut self, start: usize) -> Res<bool> {
        self.stack.clear();
        self.slots.fill(UNSET);
        self.tick(1 + self.slots.len() as u64 / 8)?;
        self.slots[0] = start;
        let (mut pc, mut pos) = (0, start);
        loop {
            self.tick(1)?;
            let next = match self.program.insns[pc as usize] {
                Insn::Match => {
                    self.slots[1] = pos;
                    return Ok(true);
                }
                _ => self.step(pc, pos)?,
            };
            match next {
                Some(next) => (pc, pos) = next,
                None => match self.back()? {
                    Some(choice) => (pc, pos) = choice,
                    None => return Ok(false),
                },
            }
        }
    }

    /// Takes one step. Returns the next instruction and position, or `None` if it fails.
    #[inline]
    fn step(&mut self, pc: u32, pos: usize) -> Res<Option<(u32, usize)>> {
        let rest = self.text.get(pos..).unwrap_or_default();
        let stay = |goes: bool| goes.then_some((pc + 1, pos));
        Ok(match self.program.insns[pc as usize] {
            Insn::Match => None,
            Insn::Text(ref text) => {
                self.tick(cost::copied(text.len()))?;
                rest.starts_with(&**text).then(|| (pc + 1, pos + text.len()))
            }
            Insn::Class(class) => self.program.classes[class as usize].first(rest).map(|len| (pc + 1, pos + len)),
            Insn::Many { class, least, max, greedy } => return self.many(pc, pos, class, least, max, greedy),
            Insn::At(at) => stay(self.holds(at, pos)?),
            Insn::Split(first, second) => {
                if !self.is_new(pc, pos) {
                    return Ok(None);
                }
                self.push(Entry::Try { pc: second, pos })?;
                Some((first, pos))
            }
            Insn::Jump(to) => Some((to, pos)),
            Insn::Save(slot) => {
                self.save(slot, pos)?;
                stay(true)
            }
            Insn::IfStill(slot, to) => Some((if self.slots[slot as usize] == pos { to } else { pc + 1 }, pos)),
            Insn::LineEnd => line_end(rest).map(|len| (pc + 1, pos + len)),
            Insn::Cluster => self.cluster(rest)?.map(|len| (pc + 1, pos + len)),
        })
    }

    /// Goes back to the last choice. Returns `None` if there is none.
    fn back(&mut self) -> Res<Option<(u32, usize)>> {
        while let Some(entry) = self.stack.pop() {
            self.tick(1)?;
            match entry {
                Entry::Try { pc, pos } => return Ok(Some((pc, pos))),
                Entry::Undo { slot, old } => self.slots[slot as usize] = old,
                Entry::Fewer { pc, low, pos } => {
                    let Some(c) = self.text.get(..pos).and_then(|before| before.chars().next_back()) else { continue };
                    let pos = pos - c.len_utf8();
                    if pos > low {
                        self.stack.push(Entry::Fewer { pc, low, pos });
                    }
                    return Ok(Some((pc + 1, pos)));
                }
                Entry::More { pc, pos, left } => {
                    let Insn::Many { class, .. } = self.program.insns[pc as usize] else { continue };
                    let rest = self.text.get(pos..).unwrap_or_default();
                    let Some(len) = self.program.classes[class as usize].first(rest) else { continue };
                    if left > 1 {
                        self.stack.push(Entry::More { pc, pos: pos + len, left: left - 1 });
                    }
                    return Ok(Some((pc + 1, pos + len)));
                }
            }
        }
        Ok(None)
    }

    fn many(
        &mut self,
        pc: u32,
        pos: usize,
        class: u32,
        least: u32,
        max: u32,
        greedy: bool,
    ) -> Res<Option<(u32, usize)>> {
        if !self.is_new(pc, pos) {
            return Ok(None);
        }
        let (low, taken) = self.run_of(pos, class, least)?;
        if taken < least {
            return Ok(None);
        }
        let left = if max == u32::MAX { u32::MAX } else { max - least };
        if left == 0 {
            return Ok(Some((pc + 1, low)));
        }
        if !greedy {
            self.push(Entry::More { pc, pos: low, left })?;
            return Ok(Some((pc + 1, low)));
        }
        let (end, _) = self.run_of(low, class, left)?;
        if end > low {
            self.push(Entry::Fewer { pc, low, pos: end })?;
        }
        Ok(Some((pc + 1, end)))
    }

    /// Returns the end of a run of at most `max` characters of a class, and their number.
    fn run_of(&mut self, mut pos: usize, class: u32, max: u32) -> Res<(usize, u32)> {
        const PIECE: u32 = 128;
        let (program, text) = (self.program, self.text);
        let class = &program.classes[class as usize];
        let mut count = 0;
        while count < max {
            let piece = (max - count).min(PIECE);
            let before = count;
            while count - before < piece
                && let Some(len) = class.first(text.get(pos..).unwrap_or_default())
            {
                pos += len;
                count += 1;
            }
            self.tick(u64::from(count - before) / 4)?;
            if count - before < piece {
                break;
            }
        }
        Ok((pos, count))
    }

    /// Returns whether a condition holds at a position.
    fn holds(&mut self, at: At, pos: usize) -> Res<bool> {
        let (before, rest) = self.text.split_at_checked(pos).unwrap_or_default();
        // No line ends between the two characters of a line terminator.
        let inside = before.ends_with('\r') && rest.starts_with('\n');
        Ok(match at {
            At::Start => pos == 0,
            At::End => rest.is_empty(),
            At::LastLineEnd(Lines::Any) => rest == "\r\n" || !inside && is_last_line_end(rest),
            At::LastLineEnd(Lines::Unix) => matches!(rest, "" | "\n"),
            At::LineStart(_) if rest.is_empty() => false,
            At::LineStart(Lines::Any) => pos == 0 || !inside && ends_in_line_end(before),
            At::LineStart(Lines::Unix) => pos == 0 || before.ends_with('\n'),
            At::LineEnd(Lines::Any) => !inside && is_line_end(rest),
            At::LineEnd(Lines::Unix) => rest.is_empty() || rest.starts_with('\n'),
            At::Word { unicode, not } => {
                let next = rest.chars().next().map_or(0, char::len_utf8);
                let left = WORDS.has_last(before, unicode, || self.tick(1))?;
                let right = next > 0
                    && WORDS.has_last(self.text.get(..pos + next).unwrap_or_default(), unicode, || self.tick(1))?;
                (left == right) == not
            }
            At::LastMatch => pos == self.last_match,
        })
    }

    /// Returns the length of the grapheme cluster at the start of a text.
    fn cluster(&mut self, text: &str) -> Res<Option<usize>> {
        if text.starts_with("\r\n") {
            return Ok(Some(2));
        }
        Characters::new(self.h, text).next().map(|cluster| cluster.map(str::len)).transpose()
    }

    /// Returns whether a choice has not been tried before. One that has been tried would fail again.
    #[inline]
    fn is_new(&mut self, pc: u32, pos: usize) -> bool {
        if self.seen.is_empty() {
            return true;
        }
        // In a round that has not advanced yet, the same position has a different continuation.
        let mut row = pc as usize;
        let mut round = self.program.round_of.get(pc as usize).copied().flatten();
        while let Some(&(slot, around)) = round.and_then(|round| self.program.rounds.get(round as usize)) {
            if self.slots[slot as usize] != pos {
                break;
            }
            row += self.program.insns.len();
            round = around;
        }
        let bit = row * (self.text.len() - self.from + 1) + (pos - self.from);
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        let new = self.seen[word] & mask == 0;
        self.seen[word] |= mask;
        new
    }
}

/// Returns whether a text is empty or a single line terminator of one character.
fn is_last_line_end(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_none_or(|_| chars.as_str().is_empty() && ends_in_line_end(text))
}

/// Returns the length of the match of `\R` at the start of a text.
fn line_end(text: &str) -> Option<usize> {
    if text.starts_with("\r\n") {
        return Some(2);
    }
    text.chars().next().filter(|c| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')).map(char::len_utf8)
}

/// Returns whether a text is empty or starts with a line terminator.
fn is_line_end(text: &str) -> bool {
    text.chars().next().is_none_or(|c| ends_in_line_end(c.encode_utf8(&mut [0; 4])))
}

#[cold]
fn gave_up() -> Fault {
    let limit = Backtracker::MAX_STEPS;
    Error::new(Reason::RuntimeError, format!("the regular expression took more than {limit} steps and gave up"))
        .hint("simplify the pattern, or search smaller parts of the string, such as its lines")
        .detail("limit_steps", limit)
        .into()
}
