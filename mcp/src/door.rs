//! What a client of one tenant gets at.

use crate::ticket::Tickets;
use lisp_server::config::Tenant;
use lisp_server::runs::{Service, TenantState};
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProgressToken, RequestMetaObject};
use rmcp::service::{Peer, RequestContext};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The service, as one tenant sees it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) service: Service,
    pub(crate) tenant: Arc<TenantState>,
    pub(crate) tickets: Tickets,
    /// The client has gone.
    pub(crate) gone: CancellationToken,
}

impl Door {
    /// The tenant's name.
    pub(crate) fn name(&self) -> &str {
        &self.tenant.name
    }

    /// The tenant's settings.
    pub(crate) fn settings(&self) -> Option<&Tenant> {
        self.service.config().tenant_named(&self.tenant.name)
    }
}

/// How a client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// By a request of the server's, while its own waits.
    Elicit,
    /// In the result of its request, which it sends again with the answers.
    Rounds,
    /// Not at all: the model goes on with the tool `resume`.
    Nobody,
}

/// Who has sent a request.
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) asking: Asking,
    pub(crate) progress: Option<ProgressToken>,
    pub(crate) meta: RequestMetaObject,
    /// The request is cancelled.
    pub(crate) cancelled: CancellationToken,
    pub(crate) is_stateless: bool,
}

impl Client {
    pub(crate) fn of(context: RequestContext<RoleServer>, is_stateless: bool) -> Self {
        let forms = context.client_capabilities().is_some_and(|declared| has_forms(&declared));
        let asking = match (forms, is_stateless) {
            (true, true) => Asking::Rounds,
            (true, false) => Asking::Elicit,
            (false, _) => Asking::Nobody,
        };
        let progress = context.meta.get_progress_token();
        Client { peer: context.peer, asking, progress, meta: context.meta, cancelled: context.ct, is_stateless }
    }
}

/// Does a client show forms? One that names no mode does.
fn has_forms(declared: &ClientCapabilities) -> bool {
    declared.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}
