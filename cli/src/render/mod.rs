//! Text for people: errors under their source line, values in the format that was asked for.

pub(crate) mod colour;
pub(crate) mod errors;
pub(crate) mod keys;
pub(crate) mod profile;
mod table;
pub(crate) mod values;
