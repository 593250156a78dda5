//! From source text to forms.
//!
//! [`lexer`] splits the text into tokens; [`reader`] nests them into [`Form`]s and interns their [`Names`]. This module
//! does not know what forms mean: `(let)` is a valid form, and so is `%1` outside of `#()`.
//!
//! Invariants that the rest of the crate relies on:
//!
//! - No input makes the reader panic, and its native stack does not grow with the nesting of the text.
//! - No form is nested deeper than [`ReadLimits::NESTING_CEILING`], so later passes may drop, clone and compare forms
//!   recursively.
//! - Every span is inside the text, on character boundaries.
//! - The number of forms in a [`FormKind::Map`] is even, and no map or set literal repeats a key.

#![forbid(unsafe_code)]

mod diagnostics;
mod fence;
mod form;
mod hidden;
mod interrupt;
pub mod lexer;
mod literals;
mod names;
mod position;
pub mod reader;
mod shapes;
mod spelling;

pub use fence::fence_of;
pub use form::{Form, FormKind, NameId};
pub(crate) use interrupt::Interrupt;
pub use names::Names;
pub use position::LineIndex;
pub use reader::{Completeness, ReadLimits, Source, completeness, read};
pub(crate) use reader::{read_at, read_first};
pub use spelling::{is_name_part, name_length};
