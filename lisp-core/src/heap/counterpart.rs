//! Keyword/string pairs ("counterparts"): the keyword and the string of one name. A key that a map does not have stands for
//! the entry of its counterpart, if that exists. Reading and writing follow the rule in this file. Map constructors keep their
//! keys as written.

use super::map::{Entries, Entry, KeyArray, Map, Rep, TreeSize, address, may_contain};
use super::node::{BITS, Step};
use super::shapes::Place;
use super::string::{SHORT_TEXT, hash_text, text_cost};
use super::{Heap, Res, Value};
use crate::cost;

impl<'h> KeyArray<'h> {
    /// Returns the position of a keyword, or else of its counterpart; and the number of words of eight bytes compared for it,
    /// which depends only on the names.
    fn place_of(&self, key: Value<'h>) -> (Option<usize>, usize) {
        let Value::Keyword(hash, name) = key else { return (None, 0) };
        let exact = |k: &Value<'h>| matches!(k, Value::Keyword(h, s) if *h == hash && s.text() == name.text());
        match self.keys().iter().position(exact) {
            Some(place) => (Some(place), 0),
            None => self.place_of_counterpart(name.text()),
        }
    }

    /// Returns the position of the counterpart of a keyword: the string of its name, else the keyword or the string with
    /// underscores for its hyphens. Also returns the number of words compared.
    pub(super) fn place_of_counterpart(&self, name: &str) -> (Option<usize>, usize) {
        let (mut underscored, mut compared) = ([None; 2], 0);
        let has_hyphens = name.contains('-');
        for (place, key) in self.keys().iter().enumerate() {
            let (text, is_string) = match key {
                Value::Str(s) => (s.text(), true),
                Value::Keyword(_, s) if has_hyphens => (s.text(), false),
                _ => continue,
            };
            if text.len() != name.len() {
                continue;
            }
            compared += name.len().div_ceil(8);
            if is_string && text == name {
                return (Some(place), compared);
            }
            if has_hyphens && is_underscored(text, name) {
                underscored[usize::from(is_string)].get_or_insert(place);
            }
        }
        (underscored[0].or(underscored[1]), compared)
    }
}

/// Returns true if a text, as long as a name, is that name with underscores for its hyphens.
fn is_underscored(text: &str, name: &str) -> bool {
    let spelt = |byte: u8| if byte == b'-' { b'_' } else { byte };
    let (texts, names) = (text.as_bytes().chunks(8), name.as_bytes().chunks(8));
    // A chunk is compared without branches: a branch for each byte would take several times as long.
    texts.zip(names).all(|(text, name)| text.iter().zip(name).fold(true, |same, (a, b)| same & (*a == spelt(*b))))
}

/// Returns whether two of these keys may stand for the same key of another map: a keyword and a string, or two keywords of
/// which one has hyphens, with the same name but for hyphens and underscores. Two strings never do: see [`Map::meant`].
fn may_meet(h: &Heap, keys: &[Value<'_>]) -> Res<bool> {
    let spelt = |byte: u8| if byte == b'-' { b'_' } else { byte };
    let (mut words, mut meet) = (0, false);
    'search: for (i, key) in keys.iter().enumerate() {
        let Value::Keyword(_, name) = key else { continue };
        let (name, has_hyphens) = (name.text(), may_contain(name.text(), '-'));
        for (j, other) in keys.iter().enumerate() {
            let other = match other {
                Value::Keyword(_, other) if has_hyphens && i != j => other.text(),
                Value::Str(other) => other.text(),
                _ => continue,
            };
            if other.len() != name.len() {
                continue;
            }
            h.charge(text_cost(name))?;
            words += name.len().min(SHORT_TEXT).div_ceil(8);
            meet = name.bytes().zip(other.bytes()).all(|(a, b)| spelt(a) == spelt(b));
            if meet {
                break 'search;
            }
        }
    }
    h.charge(cost::pairs_compared(keys.len(), words))?;
    Ok(meet)
}

impl<'h> Map<'h> {
    /// Returns the value that a key reads: the value at it, else at its counterpart. `:user-id` also finds `"user-id"`,
    /// `:user_id` and `"user_id"`, and `"id"` also finds `:id`.
    #[inline]
    pub(crate) fn get_flexible(&self, h: &'h Heap, key: Value<'h>) -> Res<Option<Value<'h>>> {
        if let (Rep::Small(keys, values), Value::Keyword(..)) = (self.rep(), key) {
            return Ok(small_place(h, keys, key)?.map(|i| values[i]));
        }
        let value = match self.get(h, key)? {
            Some(value) => Some(value),
            None => self.other_spelling(h, key)?.map(|entry| entry.1),
        };
        if let (Value::Keyword(hash, _), Some(_)) = (key, value) {
            h.watch.found(hash);
        }
        Ok(value)
    }

    /// Returns the value that a keyword reads, if its position is remembered. This is free, and so is
    /// [`Map::get_flexible`] then.
    #[inline(always)]
    pub(crate) fn get_known(&self, h: &'h Heap, key: Value<'h>) -> Option<&'h Value<'h>> {
        let (Rep::Small(keys, values), Value::Keyword(_, name)) = (self.rep(), key) else { return None };
        values.get(h.shapes.known(address(keys), address(name))?)
    }

    /// Returns the key at which writing at `key` writes: `key` itself if it exists, else its counterpart if that exists, else
    /// `key`. Maps that cannot have its counterpart are not searched.
    ///
    /// A string with hyphens does not stand for a key with underscores here, although it reads such a key: strings are
    /// often keys of counted data, where two strings must stay two.
    #[inline]
    pub(crate) fn meant(&self, h: &'h Heap, key: Value<'h>) -> Res<Value<'h>> {
        let is_name = matches!(key, Value::Keyword(..) | Value::Str(_));
        if is_name && self.may_have_counterpart(key) { self.key_or_counterpart(h, key) } else { Ok(key) }
    }

    /// Returns the entries in the order in which to add them to another map: as they were written, unless two of their keys
    /// may stand for the same key of that map. Then their order decides which value it gets, and must be key order.
    pub(crate) fn entries_to_add(&self, h: &'h Heap) -> Res<Entries<'h>> {
        match self.rep() {
            Rep::Small(keys, _) if keys.written.is_some() && !may_meet(h, keys.keys())? => self.entries_as_written(h),
            Rep::Tree(size, _) if !size.may_meet() => self.entries_as_written(h),
            _ => self.entries(h),
        }
    }

    /// Charges for [`Map::meant`] when each key may come from another place, so that no position is remembered.
    /// Otherwise it is free, because the cost must not depend on what is remembered.
    pub(crate) fn charge_meant(&self, h: &'h Heap, key: Value<'h>) -> Res<()> {
        match self.rep() {
            Rep::Small(keys, _) if self.may_have_counterpart(key) => h.charge(keys.keys().len() as u64),
            _ => Ok(()),
        }
    }

    fn may_have_counterpart(&self, key: Value<'h>) -> bool {
        match (self.rep(), key) {
            (Rep::Small(keys, _), Value::Keyword(hash, name)) => {
                let (keys, len) = (keys.keys(), name.text().len());
                let as_long = |k: &Value<'h>| matches!(k, Value::Keyword(h, s) if s.text().len() == len && *h != hash);
                // Strings come last in the order of keys.
                matches!(keys.last(), Some(Value::Str(_))) || may_contain(name.text(), '-') && keys.iter().any(as_long)
            }
            (Rep::Small(keys, _), Value::Str(_)) => keys.keys().iter().any(|k| matches!(k, Value::Keyword(..))),
            (Rep::Tree(size, _), Value::Keyword(_, name)) => {
                size.may_have(TreeSize::STRINGS)
                    || size.may_have(TreeSize::UNDERSCORED) && may_contain(name.text(), '-')
            }
            (Rep::Tree(size, _), Value::Str(_)) => size.may_have(TreeSize::KEYWORDS),
            _ => false,
        }
    }

    fn key_or_counterpart(&self, h: &'h Heap, key: Value<'h>) -> Res<Value<'h>> {
        if let (Rep::Small(keys, _), Value::Keyword(..)) = (self.rep(), key) {
            return Ok(small_place(h, keys, key)?.map_or(key, |i| keys.keys()[i]));
        }
        if self.contains(h, key)? {
            return Ok(key);
        }
        let counterpart = match key {
            Value::Str(s) => self.entry_of_text(h, s.text(), true)?,
            _ => self.other_spelling(h, key)?,
        };
        Ok(counterpart.map_or(key, |entry| entry.0))
    }

    /// Returns the value of a vector as a key. Maps without vectors as keys are not searched.
    pub(crate) fn get_vector(&self, h: &'h Heap, key: Value<'h>) -> Res<Option<Value<'h>>> {
        let may_have = match self.rep() {
            Rep::Small(keys, _) => keys.keys().iter().any(|k| matches!(k, Value::Vector(_))),
            Rep::Tree(size, _) => size.may_have(TreeSize::VECTORS),
        };
        if may_have { self.get(h, key) } else { Ok(None) }
    }

    /// Returns the entry that a missing key reads.
    fn other_spelling(&self, h: &'h Heap, key: Value<'h>) -> Res<Option<Entry<'h>>> {
        if self.is_empty() {
            return Ok(None);
        }
        let (text, keyword) = match key {
            Value::Keyword(_, s) => (s.text(), true),
            Value::Str(s) => (s.text(), false),
            _ => return Ok(None),
        };
        h.charge(1)?;
        if let Some(entry) = self.entry_of_text(h, text, !keyword)? {
            return Ok(Some(entry));
        }
        let (mut buffer, long) = ([0u8; SHORT_TEXT], text.len() > SHORT_TEXT);
        if long && !keyword || !text.contains('-') {
            return Ok(None);
        }
        let owned;
        let spelling = if long {
            h.charge(text_cost(text))?;
            h.check_available(text.len())?;
            owned = text.replace('-', "_");
            &*owned
        } else {
            for (to, from) in buffer.iter_mut().zip(text.bytes()) {
                *to = if from == b'-' { b'_' } else { from };
            }
            std::str::from_utf8(&buffer[..text.len()]).unwrap_or_default()
        };
        match self.entry_of_text(h, spelling, keyword)? {
            Some(entry) => Ok(Some(entry)),
            None => self.entry_of_text(h, spelling, !keyword),
        }
    }

    /// Returns the value at the keyword, or string, with this text.
    pub fn get_text(&self, h: &'h Heap, text: &str, keyword: bool) -> Res<Option<Value<'h>>> {
        Ok(self.entry_of_text(h, text, keyword)?.map(|entry| entry.1))
    }

    fn entry_of_text(&self, h: &'h Heap, text: &str, keyword: bool) -> Res<Option<Entry<'h>>> {
        let same = |key: Value<'h>| match key {
            Value::Keyword(_, s) => keyword && s.text() == text,
            Value::Str(s) => !keyword && s.text() == text,
            _ => false,
        };
        match self.rep() {
            Rep::Small(keys, values) => {
                let len = keys.keys().len();
                h.charge(cost::compared_with(len) + text_cost(text).saturating_mul(len as u64))?;
                Ok(keys.keys().iter().position(|&k| same(k)).map(|i| (keys.keys()[i], values[i])))
            }
            Rep::Tree(_, root) => {
                h.charge(text_cost(text))?;
                let hash = hash_text(text, keyword);
                let (mut node, mut shift) = (root, 0);
                loop {
                    h.charge(1)?;
                    match node.step(hash, shift) {
                        Step::Entry(i) => return Ok(Some(node.entries()[i]).filter(|entry| same(entry.0))),
                        Step::Child(i) => (node, shift) = (node.children()[i], shift + BITS),
                        Step::Nothing => return Ok(None),
                        Step::Collisions => {
                            let each = 1 + text_cost(text);
                            h.charge(each.saturating_mul(node.entries().len() as u64))?;
                            return Ok(node.entries().iter().find(|entry| same(entry.0)).copied());
                        }
                    }
                }
            }
        }
    }
}

/// Returns the position of a keyword, or its counterpart, in the keys of an array map. Records of one shape share a key array,
/// so the position of a name in it is searched for once. A long search costs the same when its result is remembered.
#[inline]
fn small_place<'h>(h: &'h Heap, keys: &'h KeyArray<'h>, key: Value<'h>) -> Res<Option<usize>> {
    let Value::Keyword(hash, name) = key else { return Ok(None) };
    if name.text().len() > SHORT_TEXT {
        h.charge(text_cost(name.text()).saturating_mul(keys.keys().len() as u64))?;
        return Ok(keys.place_of(key).0);
    }
    let (place, units) = h.shapes.find(address(keys), address(name), || {
        let (place, compared) = keys.place_of(key);
        let place = place.and_then(|place| u8::try_from(place).ok());
        let is_near = h.watch.is_there() && h.searched(keys, (hash, name.text()), place.is_some());
        let place = match place {
            Some(place) => Place::At(place),
            None if is_near => Place::Near,
            None => Place::Absent,
        };
        (place, cost::names_compared(compared))
    });
    if units > 0 {
        h.charge(units.into())?;
    }
    Ok(place)
}
