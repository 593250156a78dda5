//! The language as a whole: the table of all functions, including those that call others; compiling with them; and the
//! documentation of everything that has a name: `doc`, `apropos`, and the error for an unknown name.

mod compile;
mod help;
mod unknown;

pub use crate::code::BuiltinId;
pub use unknown::repair;
pub(crate) use unknown::unknown_name;

use crate::builtins::{self, Builtin, Imp, Rows, concat, count};
use crate::natives;
use crate::syntax::lexer::{Token, tokens};
use std::borrow::Cow;
use std::sync::LazyLock;

const TABLES: &[&[Builtin]] = &[&builtins::FIRST_ORDER, natives::TABLE, help::TABLE];

static ALL: [Builtin; count(TABLES)] = concat(TABLES);

/// The implementations again, stored compactly for the dispatch loop.
static IMPS: [Imp; count(TABLES)] = {
    let mut imps = [Imp::Prelude; count(TABLES)];
    let mut i = 0;
    while i < imps.len() {
        imps[i] = ALL[i].imp;
        i += 1;
    }
    imps
};

static ROWS: LazyLock<Rows> = LazyLock::new(|| Rows::new(&ALL));

/// Returns the table of all functions.
pub(crate) fn rows() -> &'static Rows {
    &ROWS
}

/// Returns all functions in the order of their numbers.
pub fn all() -> &'static [Builtin] {
    &ALL
}

/// Returns the functions by area: a title and its rows.
pub fn areas() -> impl Iterator<Item = (&'static str, &'static [Builtin])> {
    let first = ("Functions that call functions", natives::TABLE);
    std::iter::once(first).chain(builtins::AREAS.iter().copied()).chain([("Help", help::TABLE)])
}

/// Returns whether a source names `pmap` or `pcalls`, outside of comments and strings. A program that does not has workers
/// only if a definition of an earlier program does.
///
/// Only the tokens are read, because the program may be someone else's to compile. So a local name counts too, and the
/// time is that of one pass over the text.
pub fn names_workers(source: &str) -> bool {
    let names = || ALL.iter().filter(|row| row.has_workers).map(|row| row.name);
    // Tokens take longer than a search, and few sources have any of the names.
    names().any(|name| source.contains(name))
        && tokens(source).any(|(token, span)| {
            let text = source.get(span.start as usize..span.end as usize).unwrap_or_default();
            let symbol = match token {
                Ok(Token::Symbol) => text,
                Ok(Token::Var) => text.trim_start_matches("#'"),
                _ => return false,
            };
            let plain = symbol.rsplit('/').next().unwrap_or_default();
            names().any(|name| name == plain)
        })
}

/// Returns the text of a function.
pub(crate) fn text_of(id: BuiltinId) -> Cow<'static, str> {
    builtins::text_of(id.row())
}

impl BuiltinId {
    /// Returns the function with this name or alias.
    pub fn by_name(name: &str) -> Option<BuiltinId> {
        ROWS.by_name(name)
    }

    /// Returns the function with this name in a namespace of Clojure: `join` in `clojure.string` or `str`.
    pub fn in_namespace(namespace: &str, name: &str) -> Option<BuiltinId> {
        ROWS.in_namespace(namespace, name)
    }

    /// Returns its row.
    #[inline]
    pub fn row(self) -> &'static Builtin {
        &ALL[self.0 as usize]
    }

    /// Returns its implementation.
    #[inline]
    pub(crate) fn imp(self) -> Imp {
        IMPS[self.0 as usize]
    }
}
