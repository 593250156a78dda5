//! Sessions: each turn loads the session from the store, runs one program, and saves it.

use super::admission::TenantState;
use super::state::{Inner, Refused, Service};
use super::turns::OneTurn;
use crate::old_store::StoredSession;
use lisp_runtime::outcome::Phase;
use lisp_runtime::{Answer, Cancel, Error, Input, Outcome, Problem, Reason, Request, Tools};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    #[serde(default)]
    setup: Vec<String>,
    #[serde(default)]
    tools: BTreeMap<String, lisp_runtime::request::ScriptedTool>,
    #[serde(default)]
    limits: lisp_runtime::LimitsRequest,
    #[serde(default)]
    strict_data: bool,
    #[serde(default)]
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

impl From<&StoredSession> for SessionState {
    fn from(session: &StoredSession) -> Self {
        let text = session.text.as_ref().map_or(0, String::len);
        SessionState {
            session_id: session.session_id.clone(),
            turns: session.turns,
            undos: session.undos,
            bytes: (text + session.opening.len()) as u64,
            created_ms: session.created_ms,
            updated_ms: session.updated_ms,
        }
    }
}

/// Cancels a turn when its client disconnects.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Inner {
    /// Checks what every turn will get, so that an invalid opening is rejected before there is a session.
    fn check_opening(&self, tenant: &TenantState, request: &Request<'_>) -> Result<(), Refused> {
        let checked = self.input(tenant, request).and_then(|input| {
            let nothing = self.engine.compile("nil")?;
            self.engine.check(&nothing, &input)
        });
        checked.map_err(|problem| {
            let field = match problem.setup {
                Some(number) => format!("setup[{number}]"),
                None => String::new(),
            };
            Refused::Invalid { field, message: problem.to_string() }
        })
    }
}

impl Service {
    /// Opens a session. Its setup programs are compiled, which takes a slot and counts as a run for the tenant's rate.
    ///
    /// # Errors
    /// If there is no slot, the tenant's maximum of sessions is reached, the tenant has a budget, or the opening is
    /// invalid.
    pub async fn open_session(&self, tenant: &Arc<TenantState>, opening: String) -> Result<SessionState, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        if tenant.budget.is_some() {
            let why = "sessions do not pay from a budget, and the tenant has one; use POST /v1/run or /v1/runs";
            return Err(Refused::Unprocessable(why.to_owned()));
        }
        let place = self.0.admission.place(tenant).await?;
        let (service, tenant) = (self.clone(), tenant.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let _held = place;
            service.open_session_now(&tenant, &opening)
        });
        opened.await.map_err(|error| Refused::Fault(error.to_string()))?
    }

    fn open_session_now(&self, tenant: &TenantState, opening: &str) -> Result<SessionState, Refused> {
        let read: Opening<'_> = serde_json::from_str(opening).map_err(|error| invalid(&error.to_string()))?;
        if let Some(name) = read.client_tool() {
            let message = format!("tool {name}: a turn does not wait for its client; use POST /v1/runs");
            return Err(Refused::Invalid { field: "tools".to_owned(), message });
        }
        self.0.check_opening(tenant, &read.request())?;
        let session_id = self.new_session(tenant, opening, None)?;
        self.session_state(tenant, &session_id)
    }

    fn new_session(&self, tenant: &TenantState, opening: &str, text: Option<&str>) -> Result<String, Refused> {
        let max = self.config().service.max_sessions;
        if self.0.store.count_sessions(&tenant.name)? >= max as u64 {
            return Err(Refused::Unprocessable(format!(
                "there are {max} sessions; delete some, or raise max_sessions of the service"
            )));
        }
        let session_id = uuid::Uuid::now_v7().to_string();
        self.0.store.insert_session(&session_id, &tenant.name, opening, text)?;
        Ok(session_id)
    }

    fn one_turn(&self, tenant: &TenantState, session_id: &str) -> Result<OneTurn, Refused> {
        // Check the tenant first: other tenants learn nothing about the session's turns.
        self.session(tenant, session_id)?;
        let busy = || Refused::Conflict("a turn of the session is in progress; wait for its answer".to_owned());
        self.0.sessions.begin(session_id).ok_or_else(busy)
    }

    fn session(&self, tenant: &TenantState, session_id: &str) -> Result<StoredSession, Refused> {
        let session = self.0.store.session(session_id)?.filter(|session| session.tenant == tenant.name);
        session.ok_or_else(|| Refused::NotFound(format!("there is no session {session_id}")))
    }

    /// Returns the state of a session.
    ///
    /// # Errors
    /// If the tenant has no such session.
    pub fn session_state(&self, tenant: &TenantState, session_id: &str) -> Result<SessionState, Refused> {
        Ok((&self.session(tenant, session_id)?).into())
    }

    /// Runs a program in a session. If it fails, the session does not change. Dropping the future cancels the turn.
    ///
    /// # Errors
    /// If the session does not exist, another turn is in progress, or there is no slot.
    pub async fn turn(&self, tenant: &Arc<TenantState>, session_id: &str, turn: Turn) -> Result<Answer, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let one = self.one_turn(tenant, session_id)?;
        let place = self.0.admission.place(tenant).await?;
        let session = self.session(tenant, session_id)?;
        let (inner, tenant, cancel) = (self.0.clone(), tenant.clone(), CancelOnDrop(Cancel::new()));
        let (handle, program) = (cancel.0.clone(), turn.program);
        // The turn keeps what it holds until it ends, even if its client disconnects.
        let ran = tokio::task::spawn_blocking(move || {
            let _held = (one, place);
            let (outcome, text, undos) = run_turn(&inner, &tenant, &session, &program, &handle);
            if let Some(text) = text.filter(|_| !handle.is_cancelled()) {
                inner.store.put_turn(&session.session_id, &text, undos)?;
            }
            Ok::<_, Refused>(outcome)
        });
        let outcome = ran.await.map_err(|error| Refused::Fault(error.to_string()))??;
        Ok(Answer::new(turn.id, &outcome))
    }

    /// Copies a session with its definitions.
    ///
    /// # Errors
    /// If the session does not exist, or the tenant's maximum of sessions is reached.
    pub fn fork(&self, tenant: &TenantState, session_id: &str) -> Result<SessionState, Refused> {
        tenant.check_rate()?;
        let _one = self.one_turn(tenant, session_id)?;
        let session = self.session(tenant, session_id)?;
        let forked = self.new_session(tenant, &session.opening, session.text.as_deref())?;
        self.session_state(tenant, &forked)
    }

    /// Undoes the last successful turn.
    ///
    /// # Errors
    /// If the session does not exist, or there is no turn to undo.
    pub fn undo(&self, tenant: &TenantState, session_id: &str) -> Result<SessionState, Refused> {
        let _one = self.one_turn(tenant, session_id)?;
        match self.0.store.undo_turn(session_id)? {
            true => self.session_state(tenant, session_id),
            false => Err(Refused::Conflict("no turn can be undone (limit session_undo)".to_owned())),
        }
    }

    /// Deletes a session.
    ///
    /// # Errors
    /// If the session does not exist, or a turn is in progress.
    pub fn delete_session(&self, tenant: &TenantState, session_id: &str) -> Result<(), Refused> {
        let _one = self.one_turn(tenant, session_id)?;
        self.0.store.delete_session(session_id)?;
        Ok(())
    }
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
        Problem::new(Error::new(Reason::HostFault, "the session's process said nothing"), Phase::Setup)
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
    let input = match inner.input(tenant, &request) {
        Ok(input) => input.into_owned(),
        Err(problem) => return failed(problem),
    };
    let mut tools = Tools::new();
    let own = request.tools.iter().map(|(name, script)| script.tool(name));
    for tool in own.chain(inner.blocking_tools.all().map(|tool| tool.as_ref().clone())) {
        // A tool of the session replaces one of the service.
        let _ = tools.add(tool);
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
