//! From forms to code: the analyzer resolves names and destructures forms, the code generator assigns registers.

mod analyze;
mod codegen;
mod constants;
pub(crate) mod core;
mod program;

pub use analyze::{Free, MAX_DEPTH, SPECIAL_FORMS, SpecialForm, TOOL_PAGE};
pub use program::{Forms, Program};
