//! How JSON object keys are represented.

pub use lisp_core::json::Keys;
