//! The names of one program as small numbers.

use super::form::NameId;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// The distinct symbols and keywords of one program. Keywords are kept without their colon, so `:a` and `a` share a
/// number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// One text behind the other.
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
    ids: HashTable<NameId>,
    hasher: RandomState,
}

impl Names {
    /// No names yet.
    pub fn new() -> Self {
        // Room for what a usual program has.
        Names {
            text: String::with_capacity(256),
            ends: Vec::with_capacity(32),
            ids: HashTable::with_capacity(32),
            hasher: RandomState::default(),
        }
    }

    /// The number of `text`, which is the next free one if `text` is new.
    pub fn intern(&mut self, text: &str) -> NameId {
        let hash = self.hasher.hash_one(text);
        if let Some(&id) = self.ids.find(hash, |&id| self.text(id) == text) {
            return id;
        }
        // Source texts are numbered by u32, and each name costs at least one of the text's bytes: none saturates.
        let id = NameId(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        let Names { text, ends, ids, hasher } = self;
        ids.insert_unique(hash, id, |&id| hasher.hash_one(slice(text, ends, id)));
        id
    }

    /// The number of `text` if it has one.
    pub fn get(&self, text: &str) -> Option<NameId> {
        self.ids.find(self.hasher.hash_one(text), |&id| self.text(id) == text).copied()
    }

    /// The text of a name; empty for a number that these names never gave out.
    pub fn text(&self, id: NameId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// How many distinct names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name at all.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], id: NameId) -> &'a str {
    let at = id.0 as usize;
    let end = ends.get(at).copied().unwrap_or_default();
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    text.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::new();
        assert!(names.is_empty());
        let (map, filter) = (names.intern("map"), names.intern("filter"));
        assert_ne!(map, filter);
        assert_eq!(names.intern("map"), map);
        assert_eq!(names.get("filter"), Some(filter));
        assert_eq!(names.get("reduce"), None);
        assert_eq!((names.text(map), names.text(filter), names.text(NameId(2))), ("map", "filter", ""));
        assert_eq!(names.len(), 2);
    }
}
