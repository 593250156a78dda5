//! The names of a program as numbers.

use super::form::NameId;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// The distinct symbols and keywords of one program. Keywords are stored without their colon, so `:a` and `a` share a
/// number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The texts, concatenated.
    text: String,
    /// The end of each text.
    ends: Vec<u32>,
    ids: HashTable<NameId>,
    hasher: RandomState,
}

impl Names {
    /// Creates an empty table.
    pub fn new() -> Self {
        // Enough for a usual program.
        Names {
            text: String::with_capacity(256),
            ends: Vec::with_capacity(32),
            ids: HashTable::with_capacity(32),
            hasher: RandomState::default(),
        }
    }

    /// Returns the number of `text`; a new one if `text` is new.
    pub fn intern(&mut self, text: &str) -> NameId {
        let hash = self.hasher.hash_one(text);
        if let Some(&id) = self.ids.find(hash, |&id| self.text(id) == text) {
            return id;
        }
        // Source texts are numbered by u32, and each name takes at least one byte of the text, so this never saturates.
        let id = NameId(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        let Names { text, ends, ids, hasher } = self;
        ids.insert_unique(hash, id, |&id| hasher.hash_one(slice(text, ends, id)));
        id
    }

    /// Returns the number of `text` if it has one.
    pub fn get(&self, text: &str) -> Option<NameId> {
        self.ids.find(self.hasher.hash_one(text), |&id| self.text(id) == text).copied()
    }

    /// Returns the text of a name; empty for an unknown number.
    pub fn text(&self, id: NameId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// Returns the number of distinct names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no names.
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
