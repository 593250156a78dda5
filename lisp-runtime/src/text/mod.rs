//! Text in and out: values as JSON and in Clojure syntax, the prompt for models, the reference of functions.

pub(crate) mod card;
pub(crate) mod convert;
mod problem;
pub(crate) mod reference;
pub(crate) mod result;
pub(crate) mod visible;
