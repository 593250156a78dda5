//! The names of one program as small numbers.

use super::form::NameId;
use std::collections::HashMap;
use std::sync::Arc;

/// The distinct symbols and keywords of one program. Keywords are kept without their colon, so `:a` and `a` share a
/// number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
}

impl Names {
    /// No names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `text`, which is the next free one if `text` is new.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        // Each name costs at least one of the text's bytes, and those are numbered by u32: this cannot saturate.
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// The number of `text` if it has one.
    pub fn get(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }

    /// The text of a name; empty for a number that these names never gave out.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many distinct names there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is no name at all.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
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
