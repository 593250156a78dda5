//! Functions that call functions. Each is one item: its row, the registers of its frame, how it starts, what it does
//! with a result, and its final value.
//!
//! A function that calls another once per element implements [`per_element::PerElement`], one that combines elements
//! [`reduce::Fold`], one that is made of others [`compose::Composition`]; each of these has one loop. The others have a
//! loop of their own. What a frame does between two calls can be done again from the start: nothing is changed before
//! the last operation that can fail.

mod accepts;
mod apply;
mod compose;
mod direct;
mod grouping;
mod known_order;
mod mapping;
mod one_by_one;
mod parallel;
mod per_element;
mod predicates;
mod reduce;
mod registers;
mod replacing;
mod sort;
mod streams;
mod update;
mod walk;

pub(crate) use compose::call as call_composed;
pub(crate) use parallel::{push_worker, waiting};
pub(crate) use streams::{start_with_frame, walks_without_end};

use crate::builtins::{Builtin, FIRST_ORDER, concat, count, same};
use crate::code::BuiltinId;

/// The rows of all these functions.
pub(crate) const TABLE: &[Builtin] = &ROWS;

const TABLES: &[&[Builtin]] = &[
    apply::TABLE,
    mapping::TABLE,
    predicates::TABLE,
    grouping::TABLE,
    reduce::TABLE,
    sort::TABLE,
    update::TABLE,
    parallel::TABLE,
    replacing::TABLE,
    walk::TABLE,
    streams::REPEATEDLY,
    streams::SINKS,
];

const ROWS: [Builtin; count(TABLES)] = concat(TABLES);

/// The number of `map`.
const MAP: BuiltinId = number_of("map");

/// Returns the number of one of these functions: they come after those of `builtins`.
#[expect(clippy::cast_possible_truncation, reason = "there are some hundred functions")]
const fn number_of(name: &str) -> BuiltinId {
    let mut place = 0;
    while !same(ROWS[place].name.as_bytes(), name.as_bytes()) {
        place += 1;
    }
    BuiltinId((FIRST_ORDER.len() + place) as u16)
}
