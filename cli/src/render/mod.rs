//! Text for people: errors under their source line.

pub(crate) mod errors;
