//! The configuration as serde reads it, before it is checked.

use lisp_runtime::tools::Effect;
use lisp_runtime::{Check, Keys, LimitsRequest};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where programs run.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IsolationSetting {
    Process,
    InProcess,
}

/// The policy for the calls of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Calls are made.
    #[default]
    Allow,
    /// Calls end the program with `tool_denied`.
    Deny,
    /// Each call waits for an approval.
    Ask,
}

/// The method of an HTTP tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the methods of HTTP")]
pub enum Method {
    Get,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct File {
    pub(super) listen: Option<String>,
    pub(super) store: Option<String>,
    pub(super) isolation: Option<IsolationSetting>,
    pub(super) json_keys: Option<Keys>,
    pub(super) check: Option<Check>,
    #[serde(default)]
    pub(super) limits: LimitsRequest,
    #[serde(default)]
    pub(super) ceiling: LimitsRequest,
    #[serde(default)]
    pub(super) service: super::service::ServiceFile,
    pub(super) tls: Option<Tls>,
    pub(super) approver_token_sha256: Option<String>,
    #[serde(default)]
    pub(super) approver_tokens_sha256: Vec<String>,
    #[serde(default)]
    pub(super) tenants: Vec<Tenant>,
    #[serde(default)]
    pub(super) tools: BTreeMap<String, Tool>,
    #[serde(default)]
    pub(super) openapi: BTreeMap<String, Api>,
    #[serde(default)]
    pub(super) mcp: BTreeMap<String, Mcp>,
    #[serde(default)]
    pub(super) network: Network,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with certificate and key")]
pub(super) struct Tls {
    pub(super) certificate: String,
    pub(super) key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a tenant")]
pub(super) struct Tenant {
    pub(super) name: String,
    pub(super) token_sha256: Option<String>,
    #[serde(default)]
    pub(super) tokens_sha256: Vec<String>,
    pub(super) approver_token_sha256: Option<String>,
    #[serde(default)]
    pub(super) approver_tokens_sha256: Vec<String>,
    pub(super) concurrency: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) max_requests: Option<u64>,
    pub(super) runs_per_second: Option<f64>,
    pub(super) burst: Option<u64>,
    #[serde(default)]
    pub(super) ceiling: LimitsRequest,
    pub(super) tools: Option<Vec<String>>,
    #[serde(default)]
    pub(super) domain: bool,
    pub(super) budget: Option<Budget>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with runs, fuel, calls, bytes, refill_seconds")]
pub(super) struct Budget {
    pub(super) runs: Option<u64>,
    pub(super) fuel: Option<u64>,
    pub(super) calls: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) refill_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a tool")]
pub(super) struct Tool {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: Method,
    #[serde(default)]
    pub(super) description: String,
    pub(super) input: Option<toml::Table>,
    pub(super) input_file: Option<String>,
    pub(super) output: Option<toml::Table>,
    pub(super) output_file: Option<String>,
    pub(super) effect: Option<Effect>,
    pub(super) idempotent: Option<bool>,
    #[serde(default)]
    pub(super) cached: bool,
    #[serde(default)]
    pub(super) tagged: bool,
    pub(super) concurrency: Option<u64>,
    pub(super) max_calls: Option<u64>,
    #[serde(default)]
    pub(super) redact: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_response_bytes: Option<u64>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) policy: Decision,
    pub(super) question: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes an API")]
pub(super) struct Api {
    pub(super) file: String,
    pub(super) base_url: Option<String>,
    pub(super) effect: Option<Effect>,
    #[serde(default)]
    pub(super) cached: bool,
    #[serde(default)]
    pub(super) tagged: bool,
    pub(super) concurrency: Option<u64>,
    pub(super) max_calls: Option<u64>,
    #[serde(default)]
    pub(super) redact: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_response_bytes: Option<u64>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) policy: Decision,
    #[serde(default)]
    pub(super) policies: BTreeMap<String, Decision>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes an MCP server")]
pub(super) struct Mcp {
    pub(super) command: Option<Vec<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) tagged: bool,
    pub(super) concurrency: Option<u64>,
    pub(super) max_calls: Option<u64>,
    #[serde(default)]
    pub(super) redact: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) start_timeout_ms: Option<u64>,
    pub(super) max_response_bytes: Option<u64>,
    #[serde(default)]
    pub(super) policy: Decision,
    #[serde(default)]
    pub(super) policies: BTreeMap<String, Decision>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with allow_private")]
pub(super) struct Network {
    #[serde(default)]
    pub(super) allow_private: Vec<String>,
}
