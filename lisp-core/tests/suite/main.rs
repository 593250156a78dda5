//! The tests of the crate through its public surface: one binary, so that they are linked once and run beside each other.
//! What measures time is in binaries of its own (`looks.rs`, `rates.rs`).

mod absent;
mod calls;
mod cases;
mod caught;
mod chains;
mod charges;
mod clojure;
mod common;
mod corpus;
#[path = "../cpu/mod.rs"]
mod cpu;
mod depth;
mod documents;
mod examples;
mod extreme_sources;
mod extremes;
mod floats;
mod folds;
mod hints;
mod integers;
mod limits;
mod many_arguments;
mod misuse;
mod modes;
mod oracle;
mod orders;
mod outside_world;
mod patterns;
mod properties;
mod shortcuts;
mod texts;
mod workers;
mod worst_case;
