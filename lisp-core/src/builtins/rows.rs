//! Lookup of rows by number and by name.

use super::{Builtin, java};
use crate::Table;
use crate::code::BuiltinId;
use std::borrow::Cow;

/// A table of functions, by number and name.
pub(crate) struct Rows {
    rows: &'static [Builtin],
    by_name: Table<&'static str, BuiltinId>,
}

impl Rows {
    /// Creates the table of these rows; their numbers are their indices.
    pub(crate) fn new(rows: &'static [Builtin]) -> Self {
        let mut by_name = Table::default();
        for (i, row) in (0..u16::MAX).zip(rows) {
            for &name in std::iter::once(&row.name).chain(row.aliases) {
                let other = by_name.insert(name, BuiltinId(i));
                debug_assert!(other.is_none(), "two built-ins are called {name}");
            }
        }
        Rows { rows, by_name }
    }

    /// Returns the row with this number.
    pub(crate) fn row(&self, id: BuiltinId) -> &'static Builtin {
        &self.rows[id.0 as usize]
    }

    /// Returns the function with this name or alias, or the one of a Java class with its package.
    pub(crate) fn by_name(&self, name: &str) -> Option<BuiltinId> {
        self.by_name.get(name).copied().or_else(|| self.of_class(name))
    }

    /// Returns the function for `java.lang.Math/abs`, `LocalDate/getYear` or `java.time.LocalDate/getYear`.
    fn of_class(&self, name: &str) -> Option<BuiltinId> {
        let name = java::without_package(name);
        self.by_name.get(name).or_else(|| self.by_name.get(java::method_named_with_class(name)?)).copied()
    }

    /// Returns the function with this name in a namespace of Clojure: `join` in `clojure.string` or `str`. Some have a
    /// separate row, because the core has another function with that name, or none.
    pub(crate) fn in_namespace(&self, namespace: &str, name: &str) -> Option<BuiltinId> {
        let namespace = namespace_of(namespace)?;
        if namespace == MATH {
            return self.by_name(&format!("Math/{}", in_java(name)));
        }
        if !namespace.is_empty()
            && let Some(own) = self.by_name(&format!("{namespace}/{name}"))
        {
            return Some(own);
        }
        let id = self.by_name(name)?;
        (namespace.is_empty() || self.row(id).namespace == namespace).then_some(id)
    }

    /// Returns the names of the functions in a namespace of Clojure, without the namespace.
    pub(crate) fn names_in(&self, namespace: &str) -> impl Iterator<Item = Cow<'static, str>> {
        let namespace = namespace_of(namespace);
        let own = self.rows.iter().filter(move |row| {
            Some(row.namespace) == namespace || namespace == Some(MATH) && row.name.starts_with("Math/")
        });
        let names = own.flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()));
        names.filter_map(move |name| match name.rsplit_once('/').filter(|(space, _)| !space.is_empty()) {
            Some(("Math", plain)) => Some(in_clojure(plain).into()),
            Some(_) if namespace == Some(MATH) => None,
            Some((_, plain)) => Some(plain.into()),
            None => Some(name.into()),
        })
    }
}

/// The namespace with the functions of Java's `Math`, in Clojure's spelling: `floor-div` is `Math/floorDiv`.
pub(crate) const MATH: &str = "clojure.math";

/// Converts a name from Clojure's to Java's spelling.
fn in_java(name: &str) -> String {
    let mut parts = name.split('-');
    let mut java = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        java.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        java.push_str(letters.as_str());
    }
    java
}

/// Converts a name from Java's to Clojure's spelling.
fn in_clojure(name: &str) -> String {
    let mut clojure = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            clojure.push('-');
        }
        clojure.push(c.to_ascii_lowercase());
    }
    clojure
}

/// Namespaces of Clojure and the rows' names for them; the core's is empty.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", ""),
    ("core", ""),
    ("clojure.string", "clojure.string"),
    ("str", "clojure.string"),
    ("string", "clojure.string"),
    ("clojure.set", "clojure.set"),
    ("set", "clojure.set"),
    ("clojure.walk", "clojure.walk"),
    ("walk", "clojure.walk"),
    (MATH, MATH),
    ("math", MATH),
    ("clojure.pprint", "clojure.pprint"),
    ("pprint", "clojure.pprint"),
    ("clojure.edn", "clojure.edn"),
    ("edn", "clojure.edn"),
    ("regex", "regex"),
    ("json", "json"),
    ("clojure.data.json", "json"),
    ("cheshire.core", "json"),
    ("cheshire", "json"),
];

/// Returns the rows' name for a namespace of Clojure.
pub(crate) fn namespace_of(namespace: &str) -> Option<&'static str> {
    NAMESPACES.iter().find(|(name, _)| *name == namespace).map(|found| found.1)
}

/// Returns the total number of rows of several tables.
pub(crate) const fn count(tables: &[&[Builtin]]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < tables.len() {
        count += tables[i].len();
        i += 1;
    }
    count
}

/// Concatenates several tables, at the interpreter's compile time.
pub(crate) const fn concat<const COUNT: usize>(tables: &[&[Builtin]]) -> [Builtin; COUNT] {
    let mut rows = [tables[0][0]; COUNT];
    let (mut table, mut at, mut to) = (0, 0, 0);
    while to < COUNT {
        if at == tables[table].len() {
            (table, at) = (table + 1, 0);
            continue;
        }
        rows[to] = tables[table][at];
        (at, to) = (at + 1, to + 1);
    }
    rows
}
