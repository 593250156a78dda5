//! Functions that call functions. Each is one item: its row, what it keeps in the registers of its frame, how it starts, what
//! it does with a result, its value at the end.
//!
//! A function that calls another once per element implements [`per_element::PerElement`], one that combines elements
//! [`reduce::Fold`], one that is made of others [`compose::Composition`]; each of these has one loop. The others have a
//! loop of their own. What a frame does between two calls can be done again from the start: nothing is changed before
//! the last thing that can fail.

mod accepts;
mod apply;
mod compose;
mod direct;
mod fast_return;
mod grouping;
mod mapping;
mod parallel;
mod per_element;
mod predicates;
mod reduce;
mod registers;
mod sort;
mod update;
mod walk;

pub(crate) use compose::call as call_composed;
pub(crate) use parallel::{push_worker, waiting};

use crate::builtins::Builtin;

/// The rows of all these functions, and of those that make functions.
pub(crate) const TABLE: &[Builtin] = &{
    const TABLES: &[&[Builtin]] = &[
        apply::TABLE,
        mapping::TABLE,
        predicates::TABLE,
        grouping::TABLE,
        reduce::TABLE,
        sort::TABLE,
        update::TABLE,
        parallel::TABLE,
        compose::TABLE,
        walk::TABLE,
    ];
    const COUNT: usize = {
        let (mut count, mut i) = (0, 0);
        while i < TABLES.len() {
            count += TABLES[i].len();
            i += 1;
        }
        count
    };
    let mut rows = [TABLES[0][0]; COUNT];
    let (mut table, mut at, mut to) = (0, 0, 0);
    while to < COUNT {
        if at == TABLES[table].len() {
            (table, at) = (table + 1, 0);
            continue;
        }
        rows[to] = TABLES[table][at];
        (at, to) = (at + 1, to + 1);
    }
    rows
};
