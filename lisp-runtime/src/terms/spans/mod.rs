//! Spans of the crate `tracing`, with the feature of that name; without it they are nothing. A span has names, places, figures and
//! verdicts; never source, arguments or results.

#[cfg(not(feature = "tracing"))]
mod off;
#[cfg(feature = "tracing")]
mod on;

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{CallSpan, GroupSpan, RunSpan, StepSpan};
#[cfg(feature = "tracing")]
pub(crate) use on::{CallSpan, GroupSpan, RunSpan, StepSpan};
