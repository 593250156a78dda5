//! Approvals as futures: who approves a call, and where the decision is stored.

use crate::recording::journal::Journal;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

/// The decision of an approver on a call ([`crate::Input::approvals`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The call is made.
    Approve,
    /// The call is made with other arguments, a JSON object. Arguments that do not match the tool's signature or JSON
    /// Schema deny the call.
    ApproveWith(String),
    /// The program ends with `tool_denied` and this reason.
    Reject(String),
}

type Asked = Pin<Box<dyn Future<Output = Approval> + Send>>;

/// Asks for the approval of a call `C`.
#[derive(Clone)]
pub(crate) struct Approver<C>(Arc<dyn Fn(C) -> Asked + Send + Sync>);

impl<C> fmt::Debug for Approver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approver").finish_non_exhaustive()
    }
}

impl<C> Approver<C> {
    pub(crate) fn by<F>(ask: impl Fn(C) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Approval> + Send + 'static,
    {
        Approver(Arc::new(move |call| Box::pin(ask(call))))
    }

    pub(super) fn ask(&self, call: C) -> Asked {
        let panicked = || Approval::Reject("the host's approvals panicked".to_owned());
        catch_unwind(AssertUnwindSafe(|| (self.0)(call))).unwrap_or_else(|_| Box::pin(std::future::ready(panicked())))
    }
}

/// Who approves a call before it is made, and where the decision is stored.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalChannel<C> {
    pub(crate) approver: Approver<C>,
    pub(crate) journal: Option<Arc<Journal>>,
}
