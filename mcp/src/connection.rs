//! The service as a client of one tenant sees it.

use crate::accept::JsonOnly;
use crate::in_progress::{CallInProgress, InProgress};
use crate::ticket::Tickets;
use axum::http::request::Parts;
use lisp_runtime::Tool;
use lisp_server::config::Tenant;
use lisp_server::runs::{Service, TenantState};
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProgressToken, RequestMetaObject};
use rmcp::service::{Peer, RequestContext};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The service for one tenant.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) service: Service,
    pub(crate) tenant: Arc<TenantState>,
    pub(crate) tickets: Tickets,
    /// Cancelled when the client disconnects.
    pub(crate) disconnected: CancellationToken,
    /// The address where approvers decide.
    pub(crate) approvals: Arc<OnceLock<String>>,
    pub(crate) in_progress: InProgress,
}

impl Connection {
    /// Returns the tenant's name.
    pub(crate) fn name(&self) -> &str {
        &self.tenant.name
    }

    /// Returns a sentence, without its full stop, that says who decides on a call if the client's user did not.
    pub(crate) fn approver(&self) -> String {
        match (self.has_approvers(), self.approvals.get()) {
            (true, Some(address)) => format!("An approver decides at {address} (resume cannot approve)"),
            (true, None) => "An approver decides (resume cannot approve)".to_owned(),
            (false, _) => "No one can decide yet: no approver is configured. The operator of this server can set \
                 approver_token_sha256 and restart it, or the user can use a client that shows forms (elicitation)"
                .to_owned(),
        }
    }

    /// Returns whether the tenant has approvers.
    pub(crate) fn has_approvers(&self) -> bool {
        self.settings().is_some_and(Tenant::has_approvers)
    }

    /// Returns whether this tool of the service exists for the tenant's programs.
    pub(crate) fn sees(&self, tool: &Tool) -> bool {
        self.settings().is_none_or(|tenant| tenant.sees(tool.given_name()))
    }

    /// Returns the tenant's settings.
    pub(crate) fn settings(&self) -> Option<&Tenant> {
        self.service.config().tenant_named(&self.tenant.name)
    }
}

/// How a client's user can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskMode {
    /// With a request from the server, while the client's own request waits.
    Elicit,
    /// In the result of the request, which the client sends again with the answers.
    Rounds,
    /// Not at all: an approver decides.
    Approver,
}

/// The client that sent a request.
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) ask_mode: AskMode,
    pub(crate) progress: Option<ProgressToken>,
    pub(crate) meta: RequestMetaObject,
    /// Cancelled when the request is cancelled or its session ends.
    pub(crate) cancelled: CancellationToken,
    pub(crate) is_stateless: bool,
    _in_progress: Option<CallInProgress>,
}

impl Client {
    pub(crate) fn of(context: RequestContext<RoleServer>, is_stateless: bool, in_progress: &InProgress) -> Self {
        let parts = context.extensions.get::<Parts>();
        let takes_requests = parts.is_none_or(|parts| parts.extensions.get::<JsonOnly>().is_none());
        let forms = takes_requests && context.client_capabilities().is_some_and(|declared| has_forms(&declared));
        let ask_mode = match (forms, is_stateless) {
            (true, true) => AskMode::Rounds,
            (true, false) => AskMode::Elicit,
            (false, _) => AskMode::Approver,
        };
        let progress = context.meta.get_progress_token();
        let cancelled = context.ct.child_token();
        let session = parts.and_then(|parts| parts.headers.get(HEADER_SESSION_ID)?.to_str().ok());
        let entered = session.map(|session| in_progress.enter(session, cancelled.clone()));
        let (peer, meta) = (context.peer, context.meta);
        Client { peer, ask_mode, progress, meta, cancelled, is_stateless, _in_progress: entered }
    }
}

/// Returns whether the client shows forms. Clients that name no elicitation mode do.
fn has_forms(declared: &ClientCapabilities) -> bool {
    declared.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}
