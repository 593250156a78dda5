//! The MCP server for one client: what it declares, and how it dispatches requests.

#![expect(deprecated, reason = "clients of revision 2025-11-25 set the level of log messages")]

use crate::connection::{Client, Connection};
use crate::drive::{Drive, Responded, cancelled};
use crate::in_progress::InProgress;
use crate::notes::{Notes, has_prints};
use crate::ticket::Tickets;
use crate::{lookup, resume, run, runs, schema};
use lisp_server::runs::{Service, TenantState};
use lisp_server::store::StoreError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The methods allowed in every protocol revision, and those that need a session.
const METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];
const SESSION_METHODS: [&str; 3] = ["initialize", "ping", "logging/setLevel"];

/// Returns whether the request needs no session.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// Why a server cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store cannot keep the key for tokens.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are tenants, and none was named.
    #[error("the configuration has tenants; name the client's tenant with --tenant NAME")]
    NoTenant,
    /// No tenant has this name.
    #[error("the configuration has no tenant {0}: name one of its [[tenants]]; if it has none, leave out --tenant")]
    UnknownTenant(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
}

/// A service for MCP clients. Cheap to clone.
#[derive(Clone)]
pub struct Mcp {
    pub(crate) service: Service,
    tickets: Tickets,
    /// Tool calls in progress.
    pub(crate) calls: TaskTracker,
    pub(crate) ended: CancellationToken,
    approvals: Arc<OnceLock<String>>,
}

impl std::fmt::Debug for Mcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mcp").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

impl Mcp {
    /// Creates a server for MCP clients.
    ///
    /// # Errors
    /// If the store cannot keep the key that seals the tokens of paused runs.
    pub async fn new(service: Service) -> Result<Mcp, OpenError> {
        let tickets = Tickets::new(&service).await?;
        Ok(Mcp {
            service,
            tickets,
            calls: TaskTracker::new(),
            ended: CancellationToken::new(),
            approvals: Arc::default(),
        })
    }

    /// Sets the address named in results of paused runs: where approvers decide, for example that of
    /// [`lisp_server::http::approvals`]. Only the first call has an effect.
    pub fn approvals_at(&self, address: &str) {
        let _ = self.approvals.set(address.to_owned());
    }

    /// Returns the service.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Shuts down. Nothing new starts, calls in progress get `drain_seconds`, then connections are closed.
    pub async fn end(&self) {
        self.service.drain();
        self.calls.close();
        let time = Duration::from_secs(self.service.config().service.drain_seconds);
        // Calls that are still in progress after that are cut off.
        let _ = tokio::time::timeout(time, self.calls.wait()).await;
        self.ended.cancel();
    }

    /// Returns the tenant of this name, or without a name the only one of a service without tenants.
    pub(crate) fn tenant(&self, name: Option<&str>) -> Result<Arc<TenantState>, OpenError> {
        let config = self.service.config();
        let name = match (name, config.anonymous()) {
            (Some(name), _) => name,
            (None, Some(anonymous)) => &anonymous.name,
            (None, None) => return Err(OpenError::NoTenant),
        };
        self.service.tenant(name).ok_or_else(|| OpenError::UnknownTenant(name.to_owned()))
    }

    /// Returns the handler for a tenant's client.
    pub(crate) fn handler(&self, tenant: Arc<TenantState>, disconnected: CancellationToken) -> Handler {
        let tools = schema::tools(&self.service.prompt(&tenant)).into();
        let connection = Connection {
            service: self.service.clone(),
            tenant,
            tickets: self.tickets.clone(),
            disconnected,
            approvals: self.approvals.clone(),
            in_progress: InProgress::default(),
        };
        Handler { connection, tools, logs: Arc::default(), calls: self.calls.clone() }
    }
}

/// The server of one client.
#[derive(Clone)]
pub(crate) struct Handler {
    connection: Connection,
    tools: Arc<[Tool]>,
    /// Whether the client wants printed lines as log messages.
    logs: Arc<AtomicBool>,
    calls: TaskTracker,
}

impl Handler {
    /// Returns the calls in progress of its sessions.
    pub(crate) fn in_progress(&self) -> InProgress {
        self.connection.in_progress.clone()
    }

    /// Returns a copy for another client.
    pub(crate) fn for_another(&self) -> Self {
        Handler { logs: Arc::default(), ..self.clone() }
    }
}

/// The digest of a request. A state token works only with the request that it was made for.
fn contents(request: &CallToolRequestParams) -> [u8; 32] {
    let arguments = request.arguments.clone().unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(request.name.as_bytes());
    digest.update([0]);
    digest.update(Value::Object(arguments).to_string());
    digest.finalize().into()
}

/// Answers a request, and drops it when its client cancels it, so that others get its turn. Only for requests that change no run
/// when they are dropped.
async fn while_wanted(client: &Client, answer: impl Future<Output = Responded>) -> Responded {
    tokio::select! {
        biased;
        () = client.cancelled.cancelled() => Err(cancelled()),
        answer = answer => answer,
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("ptc-lisp", env!("CARGO_PKG_VERSION")).with_title("PTC-Lisp");
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(
            "Runs programs in PTC-Lisp, a small Clojure for working on data. Use run for filtering, grouping, counting and \
             joining data, and for calling several tools at once. Use search and describe to look up functions and tools. \
             Use check before you run a program that changes something. If a result is \"paused\", a call needs approval: \
             tell the user, then call resume for the outcome. If a result \
             was lost, runs lists the runs that resume can return.",
        )
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list of tools has one page; omit cursor", None));
        }
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            // Without a session, each request sets its own log level.
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.logs.store(has_prints(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let of_sessions = SESSION_METHODS.contains(&method.as_str()) && !is_stateless(&context);
        Err(match METHODS.contains(&method.as_str()) || of_sessions {
            true => ErrorData::invalid_params(format!("invalid params for {method}; see the MCP specification"), None),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method {method}"), None),
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.calls.token();
        let contents = contents(&request);
        let is_stateless = is_stateless(&context);
        let client = Client::of(context, is_stateless, &self.connection.in_progress);
        let notes = Notes::new(&client, self.logs.load(Ordering::Relaxed));
        let drive = Drive { connection: &self.connection, client: &client, notes: &notes, contents: &contents };
        let arguments = request.arguments.unwrap_or_default();
        match (&*request.name, &request.request_state) {
            ("run" | "resume", Some(state)) => drive.next_round(state, request.input_responses.as_ref()).await,
            ("run", None) => run::call(&drive, arguments).await,
            ("check", _) => while_wanted(&client, async { Ok(run::check(&drive, arguments).await.into()) }).await,
            // The run goes on without the request.
            ("resume", None) => while_wanted(&client, resume::call(&drive, arguments)).await,
            ("search", _) => Ok(lookup::search(&self.connection, &arguments).into()),
            ("describe", _) => Ok(lookup::describe(&self.connection, &arguments).into()),
            ("runs", _) => while_wanted(&client, async { Ok(runs::call(&drive, &arguments).await.into()) }).await,
            (name, _) => {
                let known: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
                Err(ErrorData::invalid_params(
                    format!("unknown tool {name:?}; the tools are {}", known.join(", ")),
                    None,
                ))
            }
        }
    }
}
