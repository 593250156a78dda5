//! What a program reads or compares in vain: keys that maps do not have while they have one with a similar name, and strings that
//! are compared with keywords of the same name. Noted only where a key is missing or values differ. Whether a key is in a key
//! array is searched for once, so that search also says what was found.

use crate::error::{Fault, Res, Span};
use std::cell::{Cell, OnceCell, RefCell};

/// Returns the name that is probably meant by one that is not there.
pub(crate) type Similar = for<'n> fn(&[&'n str], &str) -> Option<&'n str>;

/// What happened in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vain {
    /// A keyword was read from maps that have this key instead.
    Missed(Box<str>),
    /// A string was compared with the keyword of the same name.
    Compared,
}

/// What happened in vain with a name.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) what: Vain,
    pub(crate) name: Box<str>,
    /// The hash of the keyword.
    hash: u32,
    /// How often it happened.
    pub(crate) count: u64,
    /// The number of the program, and the position, where it happened first.
    pub(crate) place: Option<(u64, Span)>,
    /// The fuel spent at the start of the work in which it happened last, how often it did in that work, and how often since that
    /// work was started over.
    work: (u64, u64, u64),
}

impl Noted {
    fn is(&self, what: &Vain, name: &str) -> bool {
        std::mem::discriminant(&self.what) == std::mem::discriminant(what) && *self.name == *name
    }

    /// Counts, but not what is only repeated because work is started over.
    fn count(&mut self, restart: u64) {
        let (start, counted, again) = &mut self.work;
        if *start != restart {
            (*start, *counted, *again) = (restart, 0, 0);
        }
        *again += 1;
        if *again > *counted {
            *counted = *again;
            self.count = self.count.saturating_add(1);
        }
    }
}

/// Which names were found, and what was noted. Of fixed size: it is not charged to the program, whose limits must not depend on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Misses {
    /// In the order in which it happened.
    pub(crate) noted: Vec<Noted>,
    found: Option<Box<[u64; Misses::WORDS]>>,
}

impl Misses {
    /// The maximum number of names that are noted.
    pub(crate) const MAX: usize = 16;
    /// A bit for each name that was found, by its hash. Two names may share one: then a miss is not noted.
    const WORDS: usize = 32;

    fn bit(hash: u32) -> (usize, u64) {
        (hash as usize / 64 % Self::WORDS, 1 << (hash % 64))
    }

    fn set_found(&mut self, hash: u32) {
        let (word, bit) = Self::bit(hash);
        self.found.get_or_insert_with(|| Box::new([0; Self::WORDS]))[word] |= bit;
    }

    /// Returns whether a map had this key.
    pub(crate) fn was_found(&self, noted: &Noted) -> bool {
        let (word, bit) = Self::bit(noted.hash);
        self.found.as_ref().is_some_and(|found| found[word] & bit != 0)
    }

    fn find(&self, what: &Vain, name: &str) -> Option<usize> {
        self.noted.iter().position(|noted| noted.is(what, name))
    }

    /// Adds what a worker noted.
    pub(crate) fn absorb(&mut self, other: Misses) {
        for noted in other.noted {
            match self.find(&noted.what, &noted.name) {
                Some(at) => self.noted[at].count = self.noted[at].count.saturating_add(noted.count),
                None if self.noted.len() < Self::MAX => self.noted.push(noted),
                None => {}
            }
        }
        if let Some(found) = other.found {
            let own = self.found.get_or_insert_with(|| Box::new([0; Self::WORDS]));
            own.iter_mut().zip(*found).for_each(|(own, other)| *own |= other);
        }
    }
}

/// The misses of a run that are noted, and what finding them takes.
#[derive(Default)]
pub(super) struct Watch {
    similar: Option<Similar>,
    /// Whether the program runs, not its host.
    is_on: Cell<bool>,
    /// Whether a key was missing in a map with a similar one.
    some_near: Cell<bool>,
    tried: OnceCell<Box<Tried>>,
    misses: RefCell<Misses>,
}

/// Pairs of a name and a key array without it, by their texts, and whether the key array has a similar name. For further pairs the
/// answer is no, so that the work is bounded. It depends on no address: what is noted must not.
struct Tried {
    pairs: [Cell<u64>; Tried::PLACES],
    count: Cell<usize>,
}

impl Tried {
    const PLACES: usize = 64;
    const MAX: usize = 48;

    /// Returns whether there is a similar name: by `search` the first time.
    fn find(&self, pair: u64, search: impl FnOnce() -> bool) -> bool {
        // The lowest bit is the answer.
        let pair = pair | 2;
        // The number of a place fits.
        let first = usize::try_from(pair / 4 % Self::PLACES as u64).unwrap_or_default();
        let places = (0..Self::PLACES).map(|i| &self.pairs[(first + i) % Self::PLACES]);
        for place in places {
            match place.get() {
                0 if self.count.get() == Self::MAX => return false,
                0 => {
                    self.count.set(self.count.get() + 1);
                    let is_near = search();
                    place.set(pair & !1 | u64::from(is_near));
                    return is_near;
                }
                known if known & !1 == pair & !1 => return known & 1 == 1,
                _ => {}
            }
        }
        false
    }
}

impl Watch {
    /// Returns whether misses are noted while the program runs.
    pub(super) fn is_there(&self) -> bool {
        self.similar.is_some()
    }

    /// Notes that a map has the key with this hash.
    #[inline]
    pub(super) fn found(&self, hash: u32) {
        if self.is_there() {
            self.misses.borrow_mut().set_found(hash);
        }
    }

    /// Notes that a key array does not have a name. Returns whether it has a similar one: by `search` the first time. `pair` is a
    /// hash of both.
    pub(super) fn missed(&self, pair: u64, search: impl FnOnce(Similar) -> bool) -> bool {
        let Some(similar) = self.similar else { return false };
        let tried = self
            .tried
            .get_or_init(|| Box::new(Tried { pairs: [const { Cell::new(0) }; Tried::PLACES], count: Cell::new(0) }));
        let is_near = tried.find(pair, || search(similar));
        self.some_near.set(self.some_near.get() | is_near);
        is_near
    }

    /// Makes misses be noted, with a function that finds similar names.
    pub(super) fn start(&mut self, similar: Similar) {
        self.similar = Some(similar);
    }

    /// Returns the function that finds similar names, if misses are noted now.
    pub(super) fn similar(&self) -> Option<Similar> {
        self.similar.filter(|_| self.is_on.get())
    }

    /// Sets whether the program runs. Misses of the host are not noted.
    pub(super) fn set_on(&self, is_on: bool) {
        self.is_on.set(is_on && self.is_there());
    }

    /// Returns whether a key was missing in a map with a similar one.
    #[inline]
    pub(super) fn some_near(&self) -> bool {
        self.some_near.get()
    }

    /// Returns whether no further name can be noted.
    pub(super) fn is_full(&self) -> bool {
        self.misses.borrow().noted.len() == Misses::MAX
    }

    /// Returns whether a name is noted.
    pub(super) fn has(&self, what: &Vain, name: &str) -> bool {
        self.misses.borrow().find(what, name).is_some()
    }

    /// Prepares for work that starts over: it is not counted twice.
    pub(super) fn restart(&self) {
        if self.is_on.get() {
            self.misses.borrow_mut().noted.iter_mut().for_each(|noted| noted.work.2 = 0);
        }
    }

    /// Sets the position that was asked for.
    pub(super) fn set_place(&self, place: Option<(u64, Span)>) {
        if let Some(noted) = self.misses.borrow_mut().noted.last_mut() {
            noted.place = place;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.some_near.set(false);
        self.misses.take();
        if let Some(tried) = self.tried.get() {
            tried.pairs.iter().for_each(|pair| pair.set(0));
            tried.count.set(0);
        }
    }

    /// Takes what was noted.
    pub(super) fn take(&self) -> Misses {
        self.misses.take()
    }

    /// Adds what a worker noted.
    pub(super) fn absorb(&self, misses: Misses) {
        self.misses.borrow_mut().absorb(misses);
    }

    /// Counts. The first time the position is asked for.
    pub(super) fn note(&self, (hash, name): (u32, &str), what: Vain, restart: u64) -> Res<()> {
        let mut misses = self.misses.borrow_mut();
        match misses.find(&what, name) {
            Some(at) => misses.noted[at].count(restart),
            None if misses.noted.len() == Misses::MAX => {}
            None => {
                misses.noted.push(Noted { what, name: name.into(), hash, count: 0, place: None, work: (0, 0, 0) });
                return Err(Fault::Place);
            }
        }
        Ok(())
    }
}
