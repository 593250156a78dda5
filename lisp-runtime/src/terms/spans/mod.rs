//! Spans of the crate `tracing`, with the feature `tracing`; without it they do nothing. Spans contain names,
//! positions, figures and verdicts, but never source, arguments or results.

#[cfg(not(feature = "tracing"))]
mod off;
#[cfg(feature = "tracing")]
mod on;

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{CallSpan, GroupSpan, RunSpan, StepSpan};
#[cfg(feature = "tracing")]
pub(crate) use on::{CallSpan, GroupSpan, RunSpan, StepSpan};
