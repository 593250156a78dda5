//! Noting what a program reads and compares in vain.

use super::map::{KeyArray, address};
use super::misses::{Misses, Similar, Vain};
use super::string::{SHORT_TEXT, Str, hash_text, mix};
use super::{Heap, Res, Value};
use crate::error::Span;

fn hash_of(key: Value<'_>) -> u64 {
    match key {
        Value::Keyword(hash, _) => hash.into(),
        Value::Str(text) if text.text().len() <= SHORT_TEXT => hash_text(text.text(), false).into(),
        _ => 1,
    }
}

/// Returns the names among keys.
fn names<'h>(keys: &KeyArray<'h>) -> Vec<&'h str> {
    let name = |key: Value<'h>| match key {
        Value::Keyword(_, name) | Value::Str(name) if name.text().len() <= SHORT_TEXT => Some(name.text()),
        _ => None,
    };
    keys.each_key().filter_map(name).collect()
}

impl Heap {
    /// Makes the heap note misses, with a function that finds similar names.
    pub(crate) fn watch_misses(&mut self, similar: Similar) {
        self.watch.start(similar);
    }

    /// Sets whether the program runs. Misses of the host are not noted.
    pub(crate) fn note_misses(&self, is_on: bool) {
        self.watch.set_on(is_on);
    }

    /// Prepares for work that starts over: it is not counted twice.
    pub(crate) fn restart_misses(&self) {
        self.watch.restart();
    }

    /// Forgets what earlier programs have read, for one that starts.
    pub(crate) fn forget_misses(&self) {
        if self.watch.is_there() {
            // What is remembered is not searched for, and would not be seen to be found.
            self.shapes.clear_known();
            self.watch.clear();
        }
    }

    /// Sets the position that was asked for.
    pub(crate) fn place_miss(&self, place: Option<(u64, Span)>) {
        self.watch.set_place(place);
    }

    /// Takes what was noted.
    pub(crate) fn take_misses(&self) -> Misses {
        self.watch.take()
    }

    /// Adds what a worker noted.
    pub(crate) fn absorb_misses(&self, misses: Misses) {
        self.watch.absorb(misses);
    }

    /// Notes whether a key array has a name. Returns true if it has a similar one only.
    #[cold]
    pub(super) fn searched(&self, keys: &KeyArray<'_>, (hash, name): (u32, &str), is_found: bool) -> bool {
        if is_found {
            self.watch.found(hash);
            return false;
        }
        let pair = keys.each_key().fold(hash.into(), |hash, key| mix(hash ^ hash_of(key)));
        self.watch.missed(pair, |similar| similar(&names(keys), name).is_some())
    }

    /// Notes that a collection was read in vain.
    ///
    /// # Errors
    /// Fails with [`Fault::Place`](super::Fault::Place) if the position is needed.
    #[inline]
    pub(crate) fn note_missed<'h>(&'h self, coll: Value<'h>, key: Value<'h>) -> Res<()> {
        if self.watch.some_near() { self.note_near(coll, key) } else { Ok(()) }
    }

    #[cold]
    fn note_near<'h>(&'h self, coll: Value<'h>, key: Value<'h>) -> Res<()> {
        let (Value::Map(map), Value::Keyword(hash, name), Some(similar)) = (coll, key, self.watch.similar()) else {
            return Ok(());
        };
        let Some((keys, _)) = map.shape() else { return Ok(()) };
        if !self.shapes.is_near(address(keys), address(name)) {
            return Ok(());
        }
        let name = name.text();
        // Searched for once: what is noted keeps it, and what cannot be noted does not need it.
        let meant = match self.watch.is_full() || self.watch.has(&Vain::Missed("".into()), name) {
            true => "",
            false => similar(&names(keys), name).unwrap_or_default(),
        };
        self.watch.note((hash, name), Vain::Missed(meant.into()), self.meter.restart_fuel())
    }

    /// Notes that two values are not equal.
    ///
    /// # Errors
    /// Fails with [`Fault::Place`](super::Fault::Place) if the position is needed.
    #[inline]
    pub(crate) fn note_unequal<'h>(&self, a: Value<'h>, b: Value<'h>) -> Res<()> {
        match (a, b) {
            (Value::Keyword(hash, name), Value::Str(text)) | (Value::Str(text), Value::Keyword(hash, name)) => {
                self.note_compared((hash, name.text()), text)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn note_compared(&self, name: (u32, &str), text: &Str<'_>) -> Res<()> {
        let is_same = text.text().len() <= SHORT_TEXT && name.1 == text.text();
        match is_same && self.watch.similar().is_some() {
            true => self.watch.note(name, Vain::Compared, self.meter.restart_fuel()),
            false => Ok(()),
        }
    }
}
