//! The tests of the crate: one binary, so that they are linked once and run beside each other. What measures time, memory or
//! threads of the whole process is in binaries of its own.

mod broken_records;
mod checks;
#[path = "../../../lisp-core/tests/cpu/mod.rs"]
mod cpu;
mod depth;
mod described;
mod envelope;
mod examples;
#[path = "../failing/mod.rs"]
mod failing;
mod failures;
mod gate;
mod in_place;
mod inputs;
mod json_texts;
mod key_order;
mod limits;
mod operands;
mod parallel;
mod places;
mod profiles;
mod records;
mod remote;
mod replay_time;
mod request_tools;
mod runs;
mod saved;
mod seeing;
mod sessions;
mod signatures;
mod tools;
mod warnings;
mod yaml;
