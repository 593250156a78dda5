//! Tools: their signatures, the gate that every call passes, the ledger of calls, and the threads that calls are made on.

#[cfg(feature = "async")]
pub(crate) mod approval;
mod argument;
#[cfg(feature = "async")]
pub(crate) mod async_tool;
pub(crate) mod bounded;
pub(crate) mod cache;
pub(crate) mod document;
pub(crate) mod gate;
pub(crate) mod import;
pub(crate) mod json_contract;
pub(crate) mod ledger;
pub(crate) mod line;
pub(crate) mod naming;
pub(crate) mod operation;
pub(crate) mod policy;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod signature;
mod sync;
pub(crate) mod threads;
pub(crate) mod tool;
mod tool_error;
mod turns;
#[cfg(feature = "schemars")]
mod typed;
