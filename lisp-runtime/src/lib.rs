//! An embeddable interpreter for PTC-Lisp: runs programs that a model wrote, on your data, within limits.
//!
//! An [`Engine`] holds the limits and the tools. It compiles a [`Program`] once and runs it any number of times. Each
//! run has its own [`Input`] and its own heap. Every run returns an [`Outcome`], with its prints, its usage figures and
//! its ledger of tool calls, even when it failed.
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
//! In-process limits are checked by the interpreter itself, so they do not protect against a bug in it. To run hostile
//! programs for many tenants, add process isolation with the crate `ptc-lisp-sandbox`.
//!
//! # Terms
//!
//! | term | meaning |
//! |---|---|
//! | in-process, process, domain | isolation: on a thread of the host; in a process of its own; in a process shared by the runs of one group (a *domain*), such as a tenant |
//! | ledger | the report of a run's tool calls, with shortened arguments and results ([`Outcome::ledger`]) |
//! | data set | JSON that is imported once and shared by many runs ([`DataSet`]) |
//! | set-up | importing the data and running the set-up programs, before the program starts |
//! | baseline | bytes of the run's data, memory and programs; they do not count against the heap limit |
//! | worker | runs one call of `pmap` or `pcalls`, in parallel with others |
//! | session, turn | programs that run one after another and share definitions ([`Session`]); one of them |
//! | budget | amounts that several runs share ([`Budget`]) |
//! | policy | decides on each tool call: allow, deny or ask an approver ([`ToolPolicy`]) |
//! | tenant | the client that a run belongs to, a name for the policy ([`Input::tenant`]) |
//! | fuel | units of work; the same on every machine |
//! | cost schedule | how much fuel each kind of work costs ([`COST_SCHEDULE_VERSION`](language::COST_SCHEDULE_VERSION)) |
//! | record | a run as text, with which it can be replayed or resumed ([`Record`]) |
//! | replay, resume | repeat what a record has, without calling tools; do that, then continue after its end |
//! | journal | the lines of a record about calls, approvals and clock readings |
//! | attempt | a recorded run from its start, or from its last resumption, until it ends or suspends |
//! | handler | the closure or async function that serves the calls of a tool |
//! | effect | what a tool's calls do to the outside world: read, write, or unknown ([`tools::Effect`]) |
//! | external tool | a tool without a handler: the host replies to its calls step by step ([`Tool::external`]) |
//! | scripted tool | a tool of a request, with fixed replies ([`request::ScriptedTool`]) |
//! | tagged tool | a tool whose failures are values of the program ([`Tool::tagged`]) |
//! | detached tool | a tool that is called on one of the engine's tool threads, so that a run ends on time without it ([`Tool::detached`]) |
//! | prompt | text that describes the language and the tools to a model ([`Engine::prompt`]) |
//!
//! # Features
//!
//! | feature | on by default | what it does |
//! |---|---|---|
//! | `async` | no | `Engine::run_async` and `eval_async`, `Tool::new_async` and `with_async_handler`, `Input::approvals`: futures that any async executor can run |
//! | `json-schema` | no | `Tool::from_json_schema`, `Tools::from_mcp_list` and `from_openapi`: tools described by JSON Schema, checked against it |
//! | `seal` | no | `Record::seal` and `unseal`, and records of runs over a [`DataSet`] |
//! | `schemars` | no | `Tool::typed`: a tool defined by the Rust types of its arguments and its result |
//! | `tracing` | no | spans (timed steps) of the crate `tracing` for runs, compiling, set-up, parallel calls and tool calls |

#![forbid(unsafe_code)]
// docs.rs says of each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A number that does not fit is an error; it is never changed into another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod api;
mod drive;
mod parallel;
mod recording;
#[doc(hidden)]
pub mod remote;
mod terms;
mod text;
pub mod tools;

pub use api::answer::Answer;
#[cfg(feature = "async")]
pub use api::asynchronous::RunFuture;
pub use api::engine::{Engine, EngineBuilder};
pub use api::envelope::Request;
pub use api::input::{DataSet, Input};
pub use api::program::Program;
pub use api::record::{Record, Recording};
pub use api::session::Session;
pub use api::waiting::Progress;
pub use lisp_core::{Error, Reason};
pub use terms::budget::{Amounts, Budget};
pub use terms::cancel::Cancel;
pub use terms::check::Check;
pub use terms::keys::Keys;
pub use terms::limits::{Limits, LimitsRequest};
pub use terms::observer::Observer;
pub use terms::outcome::{Outcome, Problem, Verdict};
pub use tools::policy::ToolPolicy;
pub use tools::tool::{Tool, ToolCall, ToolError};
pub use tools::tool_set::{BuildError, Tools};

/// The parts of an [`Outcome`]: the phase and position of a problem, usage, ledger, warnings, profile.
pub mod outcome {
    pub use crate::terms::outcome::{
        Call, CallStatus, Element, FurtherError, LedgerEntry, Local, OutcomeKind, Phase, Position, Preview, Usage,
        ValueError,
    };
    pub use crate::terms::place::Place;
    pub use crate::terms::profile::{Cost, Profile, ProfileNode};
    pub use crate::terms::warning::{Warning, WarningKind, WarningReport};
    pub use lisp_core::{Detail, Span};
}

/// The parts of a [`Request`] and of its [`Answer`], and how lines of answers are written.
pub mod request {
    pub use crate::api::answer::{AnswerPart, CheckReport, Cut, ErrorReport, LedgerLine, SCHEMA};
    pub use crate::api::envelope::{
        Isolation, ScriptedTool, answer_bytes, answer_bytes_by, answer_line, answer_line_by, answer_refused, request_id,
    };
    pub use crate::api::request_fields::{request_setup, request_tools};
    pub use crate::terms::limits::UnknownLimit;
}

/// Runs that are driven step by step ([`Engine::start`]).
pub mod progress {
    pub use crate::api::waiting::{CallId, Waiting};
}

/// Recorded runs: open calls, the lines of a record, and why one cannot be resumed.
pub mod record {
    pub use crate::api::record::{OpenCall, RecordingBuilder, Settled};
    pub use crate::api::record_error::{RECORD_SCHEMA, RecordError};
    pub use crate::api::saved::SESSION_SCHEMA;
    pub use crate::recording::journal::Recorder;
    pub use crate::recording::line::CallState;
    pub use crate::terms::clock::Reading;
}

/// The events that an [`Observer`] receives, and the size of the program cache.
pub mod observe {
    pub use crate::api::program_cache::ProgramCacheUsage;
    pub use crate::terms::observer::{
        CallEnded, CallRefused, CallStarted, HostFault, PrintedLine, RunEnded, RunStarted,
    };
}

/// Values that cross between a host and a program with their types: also sets, dates and times, which JSON does not
/// have.
pub mod value {
    pub use crate::terms::typed::{Part, TypedError, TypedReader, TypedValue, TypedWriter};
}

/// The threads of parallel workers, and how several engines share them.
pub mod threads {
    pub use crate::drive::budget::{ParallelBudget, Slot};
    pub use crate::parallel::pool::{Pool, PoolError};
}

/// The reference of the language: its functions with their documentation, and the schedule of costs.
pub mod language {
    pub use crate::api::program::{builtin_names, is_incomplete};
    pub use crate::text::reference::{describe_name, functions_markdown};
    pub use lisp_core::cost::COST_SCHEDULE_VERSION;
}

/// What the project's own programs share. Not for hosts: it changes without notice.
#[doc(hidden)]
pub mod internal {
    pub use crate::api::request_fields::request_word;
    pub use crate::terms::misfit::near_field;
    pub use crate::text::visible::{visible, visible_in_place};
    #[cfg(feature = "json-schema")]
    pub use crate::tools::yaml::as_json as yaml;
    pub use lisp_core::text::near_names;
}
