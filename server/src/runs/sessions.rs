//! Sessions: each turn loads the session from the store, runs one program, and saves it.

use super::admission::{InTurn, Slot, TenantState};
use super::state::{Inner, Refused, Service, TurnInProgress};
use super::writer::patiently;
use crate::store::{NewSession, Opened, Put, SessionLimits, SessionSummary, StoredSession, TurnLease, TurnStart, Undo};
use lisp_runtime::outcome::Phase;
use lisp_runtime::{Answer, Cancel, Error, Input, Outcome, Problem, Reason, Request};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The request that opens a session: the parts that all turns share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub struct Opening<'a> {
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    memory: Option<&'a RawValue>,
    #[serde(borrow, default)]
    history: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lisp_runtime::request::request_setup")]
    setup: Vec<String>,
    #[serde(default, deserialize_with = "lisp_runtime::request::request_tools")]
    tools: BTreeMap<String, lisp_runtime::request::ScriptedTool>,
    #[serde(default)]
    limits: lisp_runtime::LimitsRequest,
    #[serde(default)]
    strict_data: bool,
    #[serde(default, deserialize_with = "lisp_runtime::internal::request_word")]
    json_keys: Option<lisp_runtime::Keys>,
}

impl<'a> Opening<'a> {
    fn request(self) -> Request<'a> {
        let mut request = Request::default();
        let text = |json: Option<&'a RawValue>| json.map(RawValue::get);
        (request.data, request.memory, request.history) = (text(self.data), text(self.memory), text(self.history));
        (request.setup, request.tools, request.limits) = (self.setup, self.tools, self.limits);
        (request.strict_data, request.json_keys) = (self.strict_data, self.json_keys);
        request
    }

    /// Returns the name of a tool that its client would answer. Sessions cannot have such tools.
    pub(crate) fn client_tool(&self) -> Option<&str> {
        self.tools.iter().find(|(_, tool)| tool.client).map(|(name, _)| name.as_str())
    }
}

/// A turn: one program of a session.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub struct Turn {
    /// Returned unchanged in the answer.
    #[serde(default, deserialize_with = "lisp_runtime::request::request_id")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub id: Option<Box<RawValue>>,
    /// The program.
    pub program: String,
}

/// The state of a session.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct SessionState {
    /// The ID of the session.
    pub session_id: String,
    /// The number of successful turns.
    pub turns: u64,
    /// The number of turns that can be undone.
    pub undos: u64,
    /// The size of the session in the store, in bytes.
    pub bytes: u64,
    /// When the session was opened, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When the session last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
}

impl From<SessionSummary> for SessionState {
    fn from(session: SessionSummary) -> Self {
        SessionState {
            session_id: session.session_id,
            turns: session.turns,
            undos: session.undos,
            bytes: session.bytes,
            created_ms: session.created_ms,
            updated_ms: session.updated_ms,
        }
    }
}

/// Cancels a turn when its client disconnects.
struct CancelOnDrop(Cancel, CancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
        self.1.cancel();
    }
}

impl Inner {
    /// Checks what every turn will get, so that an invalid opening is rejected before there is a session.
    fn check_opening(&self, tenant: &TenantState, request: &Request<'_>) -> Result<(), Refused> {
        let own = request.own_tools(&self.engine);
        let input = own.map(|own| self.input(tenant, request, own).into_owned());
        let checked = input.and_then(|input| AnySession::open(self, None, input)?.check());
        checked.map_err(|problem| {
            if problem.reason() == Reason::HostFault {
                return Refused::Fault(problem.to_string());
            }
            let field = match problem.setup {
                Some(number) => format!("setup[{number}]"),
                None => String::new(),
            };
            Refused::Invalid { field, message: problem.to_string() }
        })
    }
}

impl Service {
    /// Opens a session. Its set-up programs are compiled, with the isolation of the service, which takes a slot and
    /// counts as a run for the tenant's rate. Until a slot is free, the opening is kept as text.
    ///
    /// # Errors
    /// If there is no slot, the tenant's maximum of sessions is reached, the tenant has a budget, or the opening is
    /// invalid.
    pub async fn open_session(
        &self,
        tenant: &Arc<TenantState>,
        opening: impl AsRef<str> + Send + 'static,
    ) -> Result<SessionState, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        if tenant.budget.is_some() {
            let why = "sessions do not pay from a budget, and the tenant has one; use POST /v1/run or /v1/runs";
            return Err(Refused::Unprocessable(why.to_owned()));
        }
        let slot = self.slot(tenant).await?;
        let (inner, of) = (self.0.clone(), tenant.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let _held = slot;
            let read: Opening<'_> =
                serde_json::from_str(opening.as_ref()).map_err(|error| invalid(&error.to_string()))?;
            if let Some(name) = read.client_tool() {
                let message =
                    format!("tool {name}: sessions do not support tools that the client answers; use POST /v1/runs");
                return Err(Refused::Invalid { field: "tools".to_owned(), message });
            }
            inner.check_opening(&of, &read.request())?;
            Ok(opening)
        });
        let opening = checked.await.map_err(|error| Refused::Fault(error.to_string()))??;
        self.new_session(tenant, opening.as_ref().to_owned(), None).await
    }

    async fn new_session(
        &self,
        tenant: &TenantState,
        opening: String,
        text: Option<String>,
    ) -> Result<SessionState, Refused> {
        let limits = self.session_limits();
        let session_id = uuid::Uuid::now_v7().to_string();
        let new = NewSession { session_id: session_id.clone(), tenant: tenant.name.clone(), opening, text };
        match self.0.store.open_session(new, limits).await? {
            Opened::New => self.session_state(tenant, &session_id).await,
            Opened::TooMany => Err(Refused::Unprocessable(format!(
                "the maximum of {} sessions is reached; delete some, or raise max_sessions of the service",
                limits.sessions
            ))),
            Opened::TooLarge(bytes) => Err(too_large("", bytes, limits.bytes)),
        }
    }

    fn session_limits(&self) -> SessionLimits {
        let service = &self.config().service;
        SessionLimits { sessions: service.max_sessions as u64, bytes: service.max_sessions_bytes }
    }

    /// Starts a turn, during which no other changes the session.
    async fn one_turn(&self, tenant: &TenantState, session_id: &str) -> Result<OneTurn, Refused> {
        let period = self.0.lease_period();
        match self.0.store.begin_turn(&tenant.name, session_id, period).await? {
            TurnStart::Started(lease, _) => Ok(OneTurn::new(&self.0, lease)),
            TurnStart::Busy => {
                Err(Refused::Conflict("a turn of the session is in progress; wait for its answer".to_owned()))
            }
            TurnStart::NoSession => Err(no_session(session_id)),
        }
    }

    /// Returns the state of a session.
    ///
    /// # Errors
    /// If the tenant has no such session.
    pub async fn session_state(&self, tenant: &TenantState, session_id: &str) -> Result<SessionState, Refused> {
        let session = self.0.store.session_summary(session_id).await?.filter(|session| session.tenant == tenant.name);
        session.map(SessionState::from).ok_or_else(|| no_session(session_id))
    }

    /// Reads the texts of a session when it is the tenant's turn.
    async fn stored_session(&self, tenant: &TenantState, session_id: &str) -> Result<InTurn<StoredSession>, Refused> {
        let (store, id) = (self.0.store.clone(), session_id.to_owned());
        let read = self.0.read(&tenant.name, async move { store.session(&id).await }).await?;
        read.map(|session| session.ok_or_else(|| no_session(session_id))).transpose()
    }

    /// Runs a program in a session. If it fails, the session does not change. Dropping the future cancels the turn.
    ///
    /// # Errors
    /// If the session does not exist, another turn is in progress, or there is no slot.
    pub async fn turn(&self, tenant: &Arc<TenantState>, session_id: &str, turn: Turn) -> Result<Answer, Refused> {
        Ok(self.turn_in_slot(tenant, session_id, turn).await?.0)
    }

    /// Runs a turn. Its answer has the slot of the turn until there is room for it.
    pub(crate) async fn turn_in_slot(
        &self,
        tenant: &Arc<TenantState>,
        session_id: &str,
        turn: Turn,
    ) -> Result<(Answer, Slot), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let cancel = CancelOnDrop(Cancel::new(), CancellationToken::new());
        let (service, of, session_id) = (self.clone(), tenant.clone(), session_id.to_owned());
        let (handle, disconnected) = (cancel.0.clone(), cancel.1.clone());
        let has_begun = Arc::<AtomicBool>::default();
        let begins = has_begun.clone();
        // The turn keeps what it holds until it ends, even if its client disconnects.
        let turn = to_the_end(async move {
            let one = service.one_turn(&of, &session_id).await?;
            let slot = tokio::select! {
                slot = service.0.admission.slot(&of) => slot,
                () = disconnected.cancelled() => Err(super::Busy {
                    why: "the client has disconnected".to_owned(),
                    retry_after: std::time::Duration::ZERO,
                }),
            };
            let slot = match slot {
                Ok(slot) => slot,
                Err(busy) => {
                    one.end().await?;
                    return Err(busy.into());
                }
            };
            let session = match service.stored_session(&of, &session_id).await {
                Ok(session) => session.value,
                Err(refused) => {
                    one.end().await?;
                    return Err(refused);
                }
            };
            // Once the client was told that nothing was done, the turn does not begin.
            if begins.swap(true, Ordering::AcqRel) {
                one.end().await?;
                return Err(Refused::Draining);
            }
            let (inner, cancel) = (service.0.clone(), handle.clone());
            let ran =
                tokio::task::spawn_blocking(move || (run_turn(&inner, &of, &session, &turn.program, &cancel), slot));
            let ((outcome, text, undos), slot) = match ran.await {
                Ok(ran) => ran,
                Err(error) => {
                    one.end().await?;
                    return Err(Refused::Fault(error.to_string()));
                }
            };
            match text.filter(|_| !handle.is_cancelled()) {
                Some(text) => one.put(text, undos, service.session_limits().bytes).await?,
                None => one.end().await?,
            }
            Ok((Answer::new(turn.id, &outcome), slot))
        });
        tokio::select! {
            done = turn => done,
            () = self.drained() => match has_begun.swap(true, Ordering::AcqRel) {
                true => Err(Refused::CutOff),
                false => Err(Refused::Draining),
            },
        }
    }

    /// Copies a session with its definitions.
    ///
    /// # Errors
    /// If the session does not exist, or the tenant's maximum of sessions is reached.
    pub async fn fork(&self, tenant: &Arc<TenantState>, session_id: &str) -> Result<SessionState, Refused> {
        tenant.check_rate()?;
        let (service, tenant, session_id) = (self.clone(), tenant.clone(), session_id.to_owned());
        to_the_end(async move {
            let one = service.one_turn(&tenant, &session_id).await?;
            let read = service.stored_session(&tenant, &session_id).await;
            one.end().await?;
            // The copy is stored in the same turn.
            let InTurn { value: session, turn: _turn } = read?;
            service.new_session(&tenant, session.opening, session.text).await
        })
        .await
    }

    /// Undoes the last successful turn.
    ///
    /// # Errors
    /// If the session does not exist, or there is no turn to undo.
    pub async fn undo(&self, tenant: &Arc<TenantState>, session_id: &str) -> Result<SessionState, Refused> {
        let (service, tenant, session_id) = (self.clone(), tenant.clone(), session_id.to_owned());
        match to_the_end(async move { service.one_turn(&tenant, &session_id).await?.undo().await }).await? {
            Undo::Done(session) => Ok(session.into()),
            Undo::Nothing => Err(Refused::Conflict(
                "no turn can be undone: there is none, or the limit session_undo is reached".to_owned(),
            )),
            Undo::Lost => Err(lost("nothing was undone; send the request again")),
        }
    }

    /// Deletes a session.
    ///
    /// # Errors
    /// If the session does not exist, or a turn is in progress.
    pub async fn delete_session(&self, tenant: &Arc<TenantState>, session_id: &str) -> Result<(), Refused> {
        let (service, tenant, session_id) = (self.clone(), tenant.clone(), session_id.to_owned());
        to_the_end(async move { service.one_turn(&tenant, &session_id).await?.delete().await }).await
    }
}

/// Does a piece of work to its end, even if the request that waits for it is dropped: a turn that was started is ended.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refused>> + Send + 'static,
) -> Result<T, Refused> {
    tokio::spawn(work).await.map_err(|error| Refused::Fault(error.to_string()))?
}

/// A turn in progress. Its lease is renewed until it ends.
struct OneTurn {
    lease: TurnLease,
    inner: Arc<Inner>,
    _counted: TurnInProgress,
    _renewed: AbortOnDropHandle<()>,
}

impl OneTurn {
    fn new(inner: &Arc<Inner>, lease: TurnLease) -> Self {
        let (store, its, period) = (inner.store.clone(), lease.clone(), inner.lease_period());
        let renews = tokio::spawn(async move {
            loop {
                tokio::time::sleep(period / 3).await;
                match store.renew_turn(&its, period).await {
                    Ok(true) => {}
                    // What it writes is refused.
                    Ok(false) => return,
                    Err(error) => tracing::warn!(session_id = &*its.session_id, %error, "a turn cannot be renewed"),
                }
            }
        });
        let _renewed = AbortOnDropHandle::new(renews);
        OneTurn { lease, inner: inner.clone(), _counted: TurnInProgress::new(inner), _renewed }
    }

    async fn put(self, text: String, undos: u64, max_bytes: u64) -> Result<(), Refused> {
        match patiently(|| self.inner.store.put_turn(&self.lease, text.clone(), undos, max_bytes)).await? {
            Put::Stored(_) => Ok(()),
            Put::Lost => Err(lost("the session stays as it was")),
            Put::TooLarge(bytes) => {
                self.end().await?;
                Err(too_large("the turn has run, but the session stays as it was: ", bytes, max_bytes))
            }
        }
    }

    async fn undo(self) -> Result<Undo, Refused> {
        Ok(patiently(|| self.inner.store.undo_turn(&self.lease)).await?)
    }

    async fn delete(self) -> Result<(), Refused> {
        match patiently(|| self.inner.store.delete_session(&self.lease)).await? {
            true => Ok(()),
            false => Err(lost("the session is not deleted; send the request again")),
        }
    }

    async fn end(self) -> Result<(), Refused> {
        Ok(patiently(|| self.inner.store.end_turn(&self.lease)).await?)
    }
}

/// The store was away for so long that the turn of a request is no longer valid.
fn lost(what: &str) -> Refused {
    Refused::Conflict(format!("the turn timed out and is lost, and {what}"))
}

fn no_session(session_id: &str) -> Refused {
    Refused::NotFound(format!("there is no session {session_id}"))
}

fn too_large(what: &str, bytes: u64, max: u64) -> Refused {
    Refused::Unprocessable(format!(
        "{what}the sessions of the tenant would take {bytes} of {max} bytes in the store; delete some, or raise max_sessions_bytes of the \
         service"
    ))
}

fn invalid(message: &str) -> Refused {
    Refused::Invalid { field: String::new(), message: message.to_owned() }
}

/// A session, in this process or in one of its own.
enum AnySession {
    InProcess(Box<lisp_runtime::Session>),
    #[cfg(target_os = "linux")]
    Process(Box<lisp_sandbox::Session>),
}

impl AnySession {
    fn open(inner: &Inner, text: Option<&str>, input: Input<'static>) -> Result<Self, Box<Problem>> {
        #[cfg(target_os = "linux")]
        if let Some(sandbox) = inner.sandbox() {
            return Ok(AnySession::Process(Box::new(match text {
                Some(text) => sandbox.load_session(text, input).map_err(|outcome| problem_of(&outcome))?,
                None => sandbox.session(input),
            })));
        }
        Ok(AnySession::InProcess(Box::new(match text {
            Some(text) => inner.engine.load_session(text, input)?,
            None => inner.engine.session(input),
        })))
    }

    fn check(&mut self) -> Result<(), Box<Problem>> {
        match self {
            AnySession::InProcess(session) => session.check(),
            #[cfg(target_os = "linux")]
            AnySession::Process(session) => session.check().map_err(|outcome| problem_of(&outcome)),
        }
    }

    fn eval(&mut self, program: &str) -> Outcome {
        match self {
            AnySession::InProcess(session) => session.eval(program),
            #[cfg(target_os = "linux")]
            AnySession::Process(session) => session.eval(program),
        }
    }

    fn save(&mut self) -> Result<String, Box<Problem>> {
        match self {
            AnySession::InProcess(session) => session.save(),
            #[cfg(target_os = "linux")]
            AnySession::Process(session) => session.save().map_err(|outcome| problem_of(&outcome)),
        }
    }
}

#[cfg(target_os = "linux")]
fn problem_of(outcome: &Outcome) -> Box<Problem> {
    Box::new(outcome.problem().cloned().unwrap_or_else(|| {
        Problem::new(Error::new(Reason::HostFault, "the session's process sent nothing"), Phase::Setup)
    }))
}

/// Runs a turn on this thread. Returns its outcome, the new session if it succeeded, and the number of turns that can
/// be undone.
fn run_turn(
    inner: &Inner,
    tenant: &TenantState,
    session: &StoredSession,
    program: &str,
    cancel: &Cancel,
) -> (Outcome, Option<String>, u64) {
    let opening: Result<Opening<'_>, _> = serde_json::from_str(&session.opening);
    let (request, unreadable) = match opening {
        Ok(opening) => (opening.request(), None),
        Err(error) => (Request::default(), Some(error)),
    };
    let failed = |problem: Box<Problem>| (request.failed(&inner.engine, problem), None, 0);
    if let Some(error) = unreadable {
        let why = format!("this version cannot read what the session was started with: {error}");
        return failed(Box::new(Problem::new(Error::new(Reason::HostFault, why), Phase::Setup)));
    }
    let mut tools = match request.own_tools(&inner.engine) {
        Ok(own) => own,
        Err(problem) => return failed(problem),
    };
    let input = inner.input(tenant, &request, tools.clone()).into_owned();
    for tool in inner.blocking_tools.all() {
        // A tool of the session replaces one of the service.
        let _ = tools.add(tool.as_ref().clone());
    }
    let input = input.tools(tools).cancel_with(cancel);
    let undos = inner.engine.limits_for(&input).session_undo;
    let mut opened = match AnySession::open(inner, session.text.as_deref(), input) {
        Ok(opened) => opened,
        Err(problem) => return failed(problem),
    };
    let outcome = opened.eval(program);
    if !outcome.is_success() {
        return (outcome, None, undos);
    }
    match opened.save() {
        Ok(text) => (outcome, Some(text), undos),
        Err(problem) => failed(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::store::MemoryStore;
    use std::pin::pin;
    use std::task::Poll;

    /// Whole sessions are read when it is the turn of their tenant, like runs and lists. Their state needs no turn.
    #[tokio::test]
    async fn sessions_are_read_in_turns() {
        let config = Config::parse_with("isolation = \"in-process\"", "test.toml", &|_| None).unwrap();
        let service = Service::open_front(config, Arc::new(MemoryStore::new())).await.unwrap();
        let tenant = service.tenant("anonymous").unwrap();
        let opened = service.open_session(&tenant, "{}").await.unwrap();
        let read = [tenant.read(async {}).await.unwrap(), tenant.read(async {}).await.unwrap()];
        let mut fork = pin!(service.fork(&tenant, &opened.session_id));
        for _ in 0..100 {
            assert!(matches!(futures_util::poll!(&mut fork), Poll::Pending));
            service.session_state(&tenant, &opened.session_id).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(read);
        assert_ne!(fork.await.unwrap().session_id, opened.session_id);
    }
}
