//! Tools: their signatures, the gate that every call passes, the ledger of calls, and the threads that calls are made on.

pub(crate) mod bounded;
pub(crate) mod cache;
pub(crate) mod gate;
pub(crate) mod ledger;
pub(crate) mod signature;
mod sync;
pub(crate) mod threads;
pub(crate) mod tool;
