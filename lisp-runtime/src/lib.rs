//! PTC-Lisp for hosts: run a program that a model wrote, on the host's data, within limits.
//!
//! An [`Engine`] holds the limits and the tools. It compiles a [`Program`] once and runs it any number of times, each
//! time with an [`Input`] and on a heap of its own. What comes of a run is an [`Outcome`]: it is always there, and a
//! failed run has its prints, its figures and its ledger of tool calls too.
//!
//! ```
//! use lisp_runtime::{Engine, Input};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder()
//!     .tool("price", |call| Ok(if call.get::<String>("sku")? == "KB-01" { 49.5 } else { 10.0 }))
//!     .build()?;
//! let program = engine.compile("(sum (map #(tool/price {:sku (:sku %)}) data/items))")?;
//! let outcome = engine.run(&program, Input::new().json("items", r#"[{"sku": "KB-01"}, {"sku": "X"}]"#));
//! assert_eq!(outcome.value::<f64>()?, 59.5);
//! assert_eq!(outcome.ledger.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! The in-process limits are cooperative. For hostile programs of many tenants a process of its own belongs behind
//! them.

#![forbid(unsafe_code)]
// A number that does not fit is an error, never another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod actor;
mod cancel;
mod clock;
mod desk;
mod engine;
mod envelope;
mod grant;
mod input;
mod ledger;
mod limits;
mod observer;
mod outcome;
mod parallel;
mod print_hook;
mod program;
mod project;
mod prompt;
mod reference;
mod remote;
mod run;
mod session;
mod signature;
mod tool;
mod watchdog;

pub use cancel::Cancel;
pub use clock::Reading;
pub use engine::{CallId, Engine, EngineBuilder, Progress, Waiting};
pub use envelope::{
    Answer, Cut, ErrorReport, Isolation, LedgerLine, Request, SCHEMA, ScriptedTool, answer_bytes, answer_bytes_by,
    answer_line, answer_line_by, answer_refused,
};
pub use input::{DataSet, Input};
pub use limits::{Limits, LimitsRequest, UnknownLimit};
pub use lisp_core::cost::COST_SCHEDULE_VERSION;
pub use lisp_core::{Detail, Error, Reason, Span};
pub use observer::{HostFault, Observer};
pub use outcome::{
    Call, CallStatus, LedgerEntry, Outcome, OutcomeKind, Phase, Position, Preview, Problem, Usage, ValueError, Verdict,
};
pub use parallel::{ParallelBudget, Pool, PoolError, Slot};
pub use program::{Program, builtin_names, is_incomplete};
pub use reference::{describe_name, functions_markdown};
pub use remote::{
    Begun, CallFootprint, CallReply, Ended, Far, FarCall, Fault, Figures, Home, Job, LinesFootprint, PendingCall,
    QueuedCall, Report, ReportFootprint, RunHost, SentSet,
};
pub use session::Session;
pub use signature::{Signature, SignatureError};
pub use tool::{BuildError, Tool, ToolCall, ToolError, Tools};
