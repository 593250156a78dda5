//! The terms of a run: limits, clock, handles that cancel or observe it, and the outcome. Nothing here runs anything.

pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod deadline;
pub(crate) mod error_data;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod misfit;
pub(crate) mod observer;
pub(crate) mod outcome;
pub(crate) mod per_process;
pub(crate) mod place;
pub(crate) mod position;
pub(crate) mod print_hook;
pub(crate) mod profile;
pub(crate) mod run_id;
pub(crate) mod run_view;
pub(crate) mod scope;
pub(crate) mod spans;
pub(crate) mod tool_code;
pub(crate) mod typed;
pub(crate) mod warning;
