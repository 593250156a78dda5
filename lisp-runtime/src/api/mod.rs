//! The API for hosts: builds an engine, compiles programs, gives a run its input, and returns an outcome.

pub(crate) mod answer;
#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod engine;
pub(crate) mod envelope;
pub(crate) mod grant;
pub(crate) mod input;
pub(crate) mod program;
pub(crate) mod program_cache;
pub(crate) mod record;
pub(crate) mod record_error;
mod record_header;
mod recorded_tools;
pub(crate) mod request_fields;
pub(crate) mod run;
pub(crate) mod saved;
#[cfg(feature = "seal")]
mod seal;
pub(crate) mod session;
pub(crate) mod to_end;
pub(crate) mod turns;
pub(crate) mod waiting;
