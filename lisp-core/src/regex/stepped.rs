//! Linear searches in long texts. A lazy automaton walks the text in pieces. Each piece is charged at its last byte, so
//! the search stops at the deadline.

use super::SEARCH_BYTES;
use crate::cost;
use crate::heap::{Heap, Res};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;
use std::ops::Range;
use std::sync::Arc;

/// The automata of a pattern. One finds the end of a match; the other walks back from there to its start.
#[derive(Debug)]
pub(crate) struct Automata {
    forward: DFA,
    reverse: DFA,
}

/// A search with its own caches of automaton states, which grow during the search.
pub(crate) struct Stepped<'h> {
    h: &'h Heap,
    automata: Arc<Automata>,
    forward: Cache,
    reverse: Cache,
    /// The cost of a byte, as a multiple of that of a simple pattern.
    spread: u64,
}

/// The result of a walk.
enum Walk {
    /// The offset of the match, if there is one.
    Ended(Option<usize>),
    /// The automaton cannot handle a character: one beyond ASCII, if the pattern checks for word boundaries.
    Stuck,
}

/// The result of a search.
pub(crate) enum Found {
    /// The start and end of a match.
    Match(usize, usize),
    Nothing,
    /// The automaton cannot decide.
    Unknown,
}

impl Automata {
    /// Compiles the automata of a pattern, each of which may take at most `bytes`. Returns `None` if that fails.
    pub(super) fn compile(hir: &Hir, bytes: usize) -> Option<Automata> {
        let dfa = |reverse: bool| {
            let nfa = thompson::Compiler::new()
                .configure(
                    thompson::Config::new()
                        .reverse(reverse)
                        .which_captures(thompson::WhichCaptures::None)
                        .nfa_size_limit(Some(bytes)),
                )
                .build_from_hir(hir)
                .ok()?;
            let kind = if reverse { MatchKind::All } else { MatchKind::LeftmostFirst };
            let config = DFA::config()
                .match_kind(kind)
                .unicode_word_boundary(true)
                .cache_capacity(SEARCH_BYTES)
                .skip_cache_capacity_check(true);
            DFA::builder().configure(config).build_from_nfa(nfa).ok()
        };
        Some(Automata { forward: dfa(false)?, reverse: dfa(true)? })
    }
}

/// The pieces of a walk. The first ones are small, because most matches are near.
struct Pieces {
    len: usize,
    left: usize,
}

impl Pieces {
    const FIRST: usize = 64;
    const LARGEST: usize = 4_096;

    fn new() -> Self {
        Pieces { len: Self::FIRST, left: Self::FIRST }
    }

    /// Counts a byte, and charges for the piece if it is the last one.
    #[inline]
    fn one(&mut self, h: &Heap, spread: u64) -> Res<()> {
        self.left -= 1;
        if self.left == 0 {
            self.end(h, spread)?;
            // The more a byte may cost, the more often the deadline is checked.
            let largest = Self::LARGEST / usize::try_from(spread).unwrap_or(usize::MAX).max(1);
            self.len = (self.len * 2).min(largest.max(Self::FIRST));
            self.left = self.len;
        }
        Ok(())
    }

    /// Charges for the bytes of the piece walked so far.
    fn end(&self, h: &Heap, spread: u64) -> Res<()> {
        h.charge(((self.len - self.left) as u64).saturating_mul(spread) / cost::SEARCHED_BYTES_PER_UNIT)
    }
}

impl<'h> Stepped<'h> {
    pub(crate) fn new(h: &'h Heap, automata: Arc<Automata>, spread: u64) -> Self {
        let (forward, reverse) = (automata.forward.create_cache(), automata.reverse.create_cache());
        Stepped { h, automata, forward, reverse, spread }
    }

    /// Returns the first match that starts at `from` or later.
    pub(crate) fn find(&mut self, text: &str, from: usize) -> Res<Found> {
        let mut from = from;
        while from <= text.len() {
            let end = match self.end_of_match(text.as_bytes(), from)? {
                Walk::Ended(Some(end)) => end,
                Walk::Ended(None) => return Ok(Found::Nothing),
                Walk::Stuck => return Ok(Found::Unknown),
            };
            if !text.is_char_boundary(end) {
                // An empty match inside a character does not count.
                from = text.ceil_char_boundary(end);
                continue;
            }
            return Ok(match self.start_of_match(text.as_bytes(), from, end)? {
                Walk::Ended(Some(start)) => Found::Match(start, end),
                Walk::Ended(None) | Walk::Stuck => Found::Unknown,
            });
        }
        Ok(Found::Nothing)
    }

    fn end_of_match(&mut self, bytes: &[u8], from: usize) -> Res<Walk> {
        let mut pieces = Pieces::new();
        let walk = self.walk_on(bytes, from, &mut pieces)?;
        pieces.end(self.h, self.spread)?;
        Ok(walk)
    }

    fn start_of_match(&mut self, bytes: &[u8], from: usize, end: usize) -> Res<Walk> {
        let mut pieces = Pieces::new();
        let walk = self.walk_back(bytes, from..end, &mut pieces)?;
        pieces.end(self.h, self.spread)?;
        Ok(walk)
    }

    fn walk_on(&mut self, bytes: &[u8], from: usize, pieces: &mut Pieces) -> Res<Walk> {
        let (dfa, cache) = (&self.automata.forward, &mut self.forward);
        let Ok(mut state) = dfa.start_state_forward(cache, &Input::new(bytes).range(from..)) else {
            return Ok(Walk::Stuck);
        };
        let mut found = None;
        for (at, &byte) in bytes.iter().enumerate().skip(from) {
            pieces.one(self.h, self.spread)?;
            let Ok(next) = dfa.next_state(cache, state, byte) else { return Ok(Walk::Stuck) };
            state = next;
            if state.is_tagged() {
                // A match is reported one byte after its end.
                match Tagged::of(state) {
                    Tagged::Match => found = Some(at),
                    Tagged::Dead => return Ok(Walk::Ended(found)),
                    Tagged::Quit => return Ok(Walk::Stuck),
                    Tagged::Other => {}
                }
            }
        }
        match dfa.next_eoi_state(cache, state) {
            Ok(last) if last.is_quit() => Ok(Walk::Stuck),
            Ok(last) if last.is_match() => Ok(Walk::Ended(Some(bytes.len()))),
            Ok(_) => Ok(Walk::Ended(found)),
            Err(_) => Ok(Walk::Stuck),
        }
    }

    fn walk_back(&mut self, bytes: &[u8], range: Range<usize>, pieces: &mut Pieces) -> Res<Walk> {
        let (from, end) = (range.start, range.end);
        let (dfa, cache) = (&self.automata.reverse, &mut self.reverse);
        let input = Input::new(bytes).range(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = dfa.start_state_reverse(cache, &input) else { return Ok(Walk::Stuck) };
        let mut found = None;
        for at in (from..end).rev() {
            pieces.one(self.h, self.spread)?;
            let Ok(next) = dfa.next_state(cache, state, bytes[at]) else { return Ok(Walk::Stuck) };
            state = next;
            if state.is_tagged() {
                match Tagged::of(state) {
                    Tagged::Match => found = Some(at + 1),
                    Tagged::Dead => return Ok(Walk::Ended(found)),
                    Tagged::Quit => return Ok(Walk::Stuck),
                    Tagged::Other => {}
                }
            }
        }
        let last = match from.checked_sub(1) {
            Some(before) => dfa.next_state(cache, state, bytes[before]),
            None => dfa.next_eoi_state(cache, state),
        };
        match last {
            Ok(last) if last.is_quit() => Ok(Walk::Stuck),
            Ok(last) if last.is_match() => Ok(Walk::Ended(Some(from))),
            Ok(_) => Ok(Walk::Ended(found)),
            Err(_) => Ok(Walk::Stuck),
        }
    }
}

enum Tagged {
    Match,
    Dead,
    Quit,
    Other,
}

impl Tagged {
    fn of(state: LazyStateID) -> Tagged {
        match state {
            s if s.is_match() => Tagged::Match,
            s if s.is_dead() => Tagged::Dead,
            s if s.is_quit() => Tagged::Quit,
            _ => Tagged::Other,
        }
    }
}
