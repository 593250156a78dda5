//! Replies to the open calls of durable runs: checked before they are taken.

use super::open_calls::{Phase, Reply, WaitingCall};
use super::state::{Refused, Service};
use super::submit::RunState;
use crate::store::{Replied, RunStatus, Store, StoredReply, StoredRun};
use lisp_runtime::{Request, Tool, Tools};
use std::sync::Arc;

/// The maximum bytes of a reply: a value in the record of a run takes at most 1 MB.
const REPLY_BYTES: usize = 1_000_000;

impl Service {
    /// Stores a reply to an open call, which resumes the run.
    ///
    /// # Errors
    /// If there is no such call, it is already answered, or the reply does not fit it. A reply that does not fit leaves
    /// the call open.
    pub async fn reply(&self, tenant: &str, run_id: &str, call: &str, reply: &Reply) -> Result<RunState, Refused> {
        self.take_reply(tenant, run_id, (call, reply), true).await?;
        self.state(tenant, run_id).await
    }

    /// Stores a reply. `may_decide` says whether its sender may decide on calls.
    pub(crate) async fn take_reply(
        &self,
        tenant: &str,
        run_id: &str,
        (call, reply): (&str, &Reply),
        may_decide: bool,
    ) -> Result<(), Refused> {
        if !may_decide && reply.is_decision() {
            return Err(Refused::NeedsApprover("an approver approves or rejects calls"));
        }
        if reply.reject.as_deref().is_some_and(|why| why.trim().is_empty()) {
            let message = "a rejection needs a reason: {\"reject\": \"too much\"}".to_owned();
            return Err(Refused::Invalid { field: "reject".to_owned(), message });
        }
        let run = self.0.stored_in_turn(tenant, run_id).await?;
        if let Some(open) = run.value.summary.calls.iter().find(|open| open.call == call) {
            // Whoever says that a call was not done can have it made again.
            if !may_decide && matches!(Phase::of(&open.phase), Some(Phase::Unknown(_))) {
                return Err(Refused::NeedsApprover("an approver finds out how a call of unknown result ended"));
            }
            self.check_tool(&run.value, &open.tool).await?;
        }
        take_reply(&*self.0.store, self.0.engine.tools(), &run.value, (call, reply)).await
    }
}

impl Service {
    /// Checks that a run has the tool of its open call, if it runs in this process. The tools of other workers are not
    /// known here.
    async fn check_tool(&self, run: &StoredRun, tool: &str) -> Result<(), Refused> {
        let is_configured = self.0.engine.tools().all().any(|known| known.name() == tool);
        if is_configured || !self.0.is_worker {
            return Ok(());
        }
        let (request, name) = (run.request.clone(), tool.to_owned());
        let is_own = tokio::task::spawn_blocking(move || {
            let own =
                |request: Request<'_>| request.tools.keys().any(|own| Tool::external(own.as_str()).name() == name);
            // A request that cannot be read makes its run stuck.
            Request::parse(&request).map_or(true, own)
        });
        match is_own.await.map_err(|error| Refused::Fault(error.to_string()))? {
            true => Ok(()),
            false => Err(Refused::Conflict(format!(
                "the configuration has no tool {tool} any more, so the run cannot continue: configure it again, or cancel \
                 the run; the call stays open"
            ))),
        }
    }
}

/// Checks a reply to an open call of a run, with the tools of the service, and stores it.
///
/// # Errors
/// Those of [`Service::reply`].
pub(super) async fn take_reply(
    store: &dyn Store,
    tools: &Tools,
    run: &StoredRun,
    (call, reply): (&str, &Reply),
) -> Result<(), Refused> {
    let run_id = &run.summary.run_id;
    let Some(open) = run.summary.calls.iter().find(|open| open.call == call).map(WaitingCall::from) else {
        return Err(no_open_call(store, run, call).await);
    };
    if let Some(unknown) = reply.phase.as_ref().filter(|phase| Phase::of(phase).is_none()) {
        let message = format!("unknown phase {unknown:?}: it must be gate, result, or unknown1, unknown2 and so on");
        return Err(Refused::Invalid { field: "phase".to_owned(), message });
    }
    if let Some(phase) = reply.phase.as_ref().filter(|phase| **phase != open.phase.name()) {
        let why =
            format!("the call {call} is in the phase {0}, not {phase}: reply with the phase {0}", open.phase.name());
        return Err(Refused::Conflict(why));
    }
    reply.check(&open.phase).map_err(|message| Refused::Invalid { field: String::new(), message })?;
    check_fit(tools, run, &open, reply).await?;
    let body = serde_json::to_string(&reply.without_phase()).map_err(|error| Refused::Fault(error.to_string()))?;
    let kept = StoredReply { call: call.to_owned(), phase: open.phase.name(), body };
    match store.reply(run_id, kept).await? {
        Replied::Taken => Ok(()),
        Replied::Repeated | Replied::Answered => Err(answered(call)),
        Replied::NoCall => Err(no_call(call)),
        Replied::Over(status) => Err(over(status)),
        Replied::Cancelled => Err(Refused::Conflict("the run was cancelled and takes no replies".to_owned())),
        Replied::NoRun => Err(Refused::NotFound(format!("there is no run {run_id}"))),
    }
}

async fn no_open_call(store: &dyn Store, run: &StoredRun, call: &str) -> Refused {
    if run.summary.status == RunStatus::Stuck {
        return over(RunStatus::Stuck);
    }
    match store.replies(&run.summary.run_id, 0).await {
        Ok(replies) if replies.iter().any(|reply| reply.call == call) => answered(call),
        Ok(_) => no_call(call),
        Err(error) => error.into(),
    }
}

/// Checks what a reply gives against the tool of its call.
async fn check_fit(tools: &Tools, run: &StoredRun, open: &WaitingCall, reply: &Reply) -> Result<(), Refused> {
    if let Some((name, text)) = reply.texts().find(|(_, text)| text.len() > REPLY_BYTES) {
        return Err(Refused::TooLarge(format!(
            "{name} has {} bytes, and the maximum of a value in the record of a run is {REPLY_BYTES}; send less. The call stays open",
            text.len()
        )));
    }
    if reply.result.is_none() && reply.arguments.is_none() {
        return Ok(());
    }
    let of_service = tools.all().find(|tool| tool.given_name() == open.name || tool.name() == open.name).cloned();
    let (request, open, reply) = (run.request.clone(), open.clone(), reply.clone());
    // A request is read for this, with the schemas of its tool.
    let fits = tokio::task::spawn_blocking(move || {
        let own = Request::parse(&request).ok().and_then(|request| own_tool(&request, &open.name));
        // Without its tool the run will be stuck; the reply must be readable even so.
        let tool = own.or(of_service).unwrap_or_else(|| Arc::new(Tool::external(open.name.as_str())));
        fits(&tool, &open, &reply)
    });
    fits.await.map_err(|error| Refused::Fault(error.to_string()))?
}

/// Returns the tool of a request with this name.
fn own_tool(request: &Request<'_>, name: &str) -> Option<Arc<Tool>> {
    request.tools.get(name).map(|script| Arc::new(script.tool(name)))
}

/// Checks that the tool takes the arguments of a reply, and that its result is one of the tool, which the run can read.
fn fits(tool: &Tool, open: &WaitingCall, reply: &Reply) -> Result<(), Refused> {
    let unfit = |field: &str, message: &str| Refused::Unprocessable(format!("{field}: {message}; the call stays open"));
    if let Some(arguments) = &reply.arguments {
        tool.validate_arguments(arguments.get()).map_err(|error| unfit("arguments", &error.message))?;
    }
    if let (Some(result), Phase::Result | Phase::Unknown(_)) = (&reply.result, &open.phase) {
        tool.validate_result(result.get()).map_err(|error| unfit("result", &error.message))?;
    }
    Ok(())
}

/// Returns the tool of a call: one of the request, or one of the service.
pub(super) fn tool_of(tools: &Tools, request: &Request<'_>, name: &str) -> Option<Arc<Tool>> {
    let own = request.tools.iter().map(|(given, script)| script.tool(given)).find(|tool| tool.name() == name);
    own.map(Arc::new).or_else(|| tools.all().find(|tool| tool.name() == name).cloned())
}

fn answered(call: &str) -> Refused {
    Refused::Conflict(format!("the call {call} was answered before"))
}

fn no_call(call: &str) -> Refused {
    Refused::NotFound(format!("the run has no open call {call}"))
}

fn over(status: RunStatus) -> Refused {
    Refused::Conflict(match status {
        RunStatus::Stuck => "the run is stuck and takes no replies; its `error` says why".to_owned(),
        status => format!("the run is {status} and takes no replies"),
    })
}
