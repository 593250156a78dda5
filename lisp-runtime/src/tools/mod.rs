//! Tools: their contracts and effects, policies and approvals, and tools from MCP servers and OpenAPI descriptions.

#[cfg(feature = "json-schema")]
mod allowance;
#[cfg(feature = "async")]
pub(crate) mod approval;
mod argument;
#[cfg(feature = "async")]
pub(crate) mod async_tool;
pub(crate) mod bounded;
pub(crate) mod cache;
pub(crate) mod contract;
#[cfg(feature = "json-schema")]
mod derived;
#[cfg(feature = "json-schema")]
mod document;
pub(crate) mod gate;
#[cfg(feature = "json-schema")]
pub(crate) mod import;
mod in_order;
#[cfg(feature = "json-schema")]
pub(crate) mod json_contract;
#[cfg(not(feature = "json-schema"))]
#[path = "no_json_contract.rs"]
pub(crate) mod json_contract;
pub(crate) mod ledger;
#[cfg(feature = "json-schema")]
mod line;
pub(crate) mod naming;
#[cfg(feature = "json-schema")]
mod openapi;
pub(crate) mod operation;
pub(crate) mod policy;
mod presented;
mod reply;
#[cfg(feature = "json-schema")]
mod schema;
pub(crate) mod schema_error;
pub(crate) mod search;
pub(crate) mod signature;
mod sync;
pub(crate) mod threads;
pub(crate) mod tool;
mod tool_error;
pub(crate) mod tool_set;
mod turns;
#[cfg(feature = "schemars")]
mod typed;
pub(crate) mod words;
#[cfg(feature = "json-schema")]
pub(crate) mod yaml;

#[cfg(feature = "async")]
pub use approval::Approval;
pub use contract::Effect;
#[cfg(feature = "json-schema")]
pub use import::Imported;
pub use operation::{BodyField, Operation, OperationBody, OperationParameter, ParameterStyle};
pub use policy::{AskedCall, PolicyDecision};
pub use schema_error::SchemaError;
pub use search::FoundTool;
pub use signature::{Signature, SignatureError};
#[cfg(feature = "async")]
pub use tool::BoxedCall;

pub use crate::terms::tool_code::ToolCode;
