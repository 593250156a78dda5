//! Text for people: errors under their source line, and values in the requested format.

pub(crate) mod colour;
pub(crate) mod errors;
pub(crate) mod fields;
pub(crate) mod keys;
pub(crate) mod pretty;
pub(crate) mod profile;
pub(crate) mod table;
pub(crate) mod values;
#[cfg(feature = "json-schema")]
mod yaml;
