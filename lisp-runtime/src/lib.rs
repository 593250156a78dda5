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
//! In-process limits are cooperative. To run hostile programs for many tenants, add process isolation with the crate
//! `ptc-lisp-sandbox`.
//!
//! # Terms
//!
//! | term | meaning |
//! |---|---|
//! | in-process, process, domain | isolation: on a host thread, in its own process, in a process shared by a domain's runs |
//! | ledger | the report of a run's tool calls, with previews of arguments and results ([`Outcome::ledger`]) |
//! | data set | JSON that is imported once and shared by many runs ([`DataSet`]) |
//! | set-up | importing the data and running the set-up programs, before the program starts |
//! | baseline | bytes of the run's data, memory and programs; they do not count against the heap limit |
//! | worker | runs one call of `pmap` or `pcalls`, in parallel with others |
//! | turn | one program of a session |
//! | fuel | units of work, counted by the cost schedule; the same on every machine |
//! | record | a run as text, with which it can be replayed or resumed ([`Record`]) |
//! | attempt | a recorded run from its start, or from its last resumption, until it ends or suspends |
//! | handler | the closure or async function that serves the calls of a tool |
//! | prompt | text that describes the language and the tools to a model ([`Engine::prompt`]) |
//!
//! # Features
//!
//! | feature | on by default | what it does |
//! |---|---|---|
//! | `async` | no | `Engine::run_async` and `eval_async`, `Tool::new_async` and `served_by_async`, `Input::approvals`: futures for any executor |
//! | `json-schema` | no | `Tool::from_json_schema`, `Tools::from_mcp_list` and `from_openapi`: tools described by JSON Schema, checked against it |
//! | `seal` | no | `Record::seal` and `unseal`, and records of runs over a [`DataSet`] |
//! | `schemars` | no | `Tool::typed`: a tool by the Rust types of its arguments and its result |
//! | `tracing` | no | spans of the crate `tracing` for runs, compiling, set-up, parallel calls and tool calls |

#![forbid(unsafe_code)]
// A number that does not fit is an error; it is never changed into another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod api;
mod drive;
mod parallel;
mod record;
pub mod remote;
mod terms;
mod text;
mod tools;

pub use api::answer::{Answer, AnswerPart, Cut, ErrorReport, LedgerLine, SCHEMA};
#[cfg(feature = "async")]
pub use api::asynchronous::RunFuture;
pub use api::engine::{Engine, EngineBuilder};
pub use api::envelope::{
    Isolation, Request, ScriptedTool, answer_bytes, answer_bytes_by, answer_line, answer_line_by, answer_refused,
    request_id,
};
pub use api::input::{DataSet, Input};
pub use api::program::{Program, builtin_names, is_incomplete};
pub use api::program_cache::ProgramCacheUsage;
pub use api::record::{OpenCall, Record, Recording, RecordingBuilder, Settled};
pub use api::record_error::{RECORD_SCHEMA, RecordError};
pub use api::saved::SESSION_SCHEMA;
pub use api::session::Session;
pub use api::waiting::{CallId, Progress, Waiting};
pub use drive::budget::{ParallelBudget, Slot};
pub use lisp_core::cost::COST_SCHEDULE_VERSION;
pub use lisp_core::text::near_names;
pub use lisp_core::{Detail, Error, Reason, Span};
pub use parallel::pool::{Pool, PoolError};
pub use record::journal::Recorder;
pub use record::line::CallState;
pub use terms::budget::{Amounts, Budget};
pub use terms::cancel::Cancel;
pub use terms::clock::Reading;
pub use terms::keys::Keys;
pub use terms::limits::{Limits, LimitsRequest, UnknownLimit};
pub use terms::misfit::near_field;
pub use terms::observer::{CallBegun, CallEnded, CallRefused, HostFault, Observer, PrintedLine, RunEnded, RunStarted};
pub use terms::outcome::{
    Call, CallStatus, Element, FurtherError, LedgerEntry, Local, Outcome, OutcomeKind, Phase, Position, Preview,
    Problem, Usage, ValueError, Verdict,
};
pub use terms::place::Place;
pub use terms::profile::{Cost, Profile, ProfileNode};
pub use terms::tool_code::ToolCode;
pub use terms::warning::{Warning, WarningKind, WarningReport};
pub use text::reference::{describe_name, functions_markdown};
pub use text::visible::{visible, visible_in_place};
#[cfg(feature = "async")]
pub use tools::approval::Approval;
#[cfg(feature = "json-schema")]
pub use tools::import::Imported;
pub use tools::operation::{BodyField, Operation, OperationBody, OperationParameter, ParameterStyle};
pub use tools::policy::{AskedCall, PolicyDecision, ToolPolicy};
pub use tools::schema_error::SchemaError;
pub use tools::search::FoundTool;
pub use tools::signature::{Signature, SignatureError};
#[cfg(feature = "async")]
pub use tools::tool::BoxedCall;
pub use tools::tool::{BuildError, Effect, Tool, ToolCall, ToolError, Tools};
