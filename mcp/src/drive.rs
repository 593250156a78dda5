//! Drives runs until they have an answer or a question.

use crate::ask;
use crate::connection::{AskMode, Client, Connection};
use crate::notes::Notes;
use crate::show;
use crate::ticket::Purpose;
use lisp_runtime::Request;
use lisp_server::runs::{Done, EarlierReply, Refused, Reply, RunState, WaitingCall};
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, ElicitResult, ErrorCode, InputRequests, InputRequiredResult, InputResponses};
use std::time::Duration;

/// The pause before a decision is sent again to a run that has not received it.
const AGAIN: Duration = Duration::from_millis(20);

/// The response to a request.
pub(crate) type Responded = Result<CallToolResponse, ErrorData>;

/// A request in progress.
pub(crate) struct Drive<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) client: &'a Client,
    pub(crate) notes: &'a Notes,
    /// The digest of the request.
    pub(crate) contents: &'a [u8; 32],
}

pub(crate) fn cancelled() -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, "the request was cancelled", None)
}

impl Drive<'_> {
    /// Runs a program.
    pub(crate) async fn run(&self, text: &str, request: &Request<'_>) -> Responded {
        let (service, tenant) = (&self.connection.service, &self.connection.tenant);
        if service.needs_journal(tenant, request) {
            return match service.submit(tenant, text, None).await {
                Ok(state) => self.follow(&state.run_id).await,
                Err(refused) => Ok(show::refused(&refused).into()),
            };
        }
        let run_id = uuid::Uuid::now_v7().to_string();
        let mut reader = service.events_of_new_run(self.connection.name(), &run_id);
        let run = self.notes.follow(&mut reader, service.run(tenant, request, &run_id));
        // Dropping the future cancels the run.
        let answered = tokio::select! {
                biased;
            () = self.client.cancelled.cancelled() => return Err(cancelled()),
            answered = run => answered,
        };
        Ok(match answered {
            Ok(answer) => show::answer(&answer.to_json()),
            Err(refused) => show::refused(&refused),
        }
        .into())
    }

    /// Waits for a durable run, and asks its questions. If the request is cancelled, so is the run.
    pub(crate) async fn follow(&self, run_id: &str) -> Responded {
        self.follow_with(run_id, Decisions::default(), Ends::Run).await
    }

    /// Like [`Drive::follow`], but the run continues if the request is cancelled.
    pub(crate) async fn collect(&self, run_id: &str) -> Responded {
        self.follow_with(run_id, Decisions::default(), Ends::Request).await
    }

    async fn follow_with(&self, run_id: &str, mut decisions: Decisions, ends: Ends) -> Responded {
        let (service, tenant) = (&self.connection.service, self.connection.name());
        let mut reader = service.events(tenant, run_id, 0);
        loop {
            let waited = tokio::select! {
                biased;
                () = self.client.cancelled.cancelled() => {
                    if ends == Ends::Run
                        && let Err(error) = service.cancel(tenant, run_id).await
                    {
                        tracing::warn!(run_id, %error, "a run cannot be cancelled");
                    }
                    return Err(cancelled());
                }
                waited = self.notes.follow(&mut reader, service.wait(tenant, run_id)) => waited,
            };
            let state = match waited {
                Ok(Done::Answer(answer)) => return Ok(show::answer(&answer).into()),
                Ok(Done::Waiting(state)) => state,
                Err(refused) => return Ok(show::refused(&refused).into()),
            };
            if state.calls.is_empty() {
                let why = state.error.as_deref().unwrap_or("the server is shutting down");
                return Ok(show::failed(format!("the run {run_id} cannot continue: {why}")).into());
            }
            let open: Vec<&WaitingCall> = state.calls.iter().filter(|call| !decisions.has(call)).collect();
            if open.is_empty() {
                // The run has not received the user's decisions yet.
                if !self.send_again(&state, &decisions).await {
                    return Ok(self.paused(&state));
                }
                continue;
            }
            // The user decides on calls that have a question; the model sends results of the others.
            match (self.client.ask_mode, open.iter().find(|call| call.question.is_some())) {
                (AskMode::Approver, _) | (_, None) => return Ok(self.paused(&state)),
                (AskMode::Rounds, Some(_)) => return Ok(self.next_input(&state, &open)),
                (AskMode::Elicit, Some(call)) => match self.elicit(run_id, call).await {
                    QuestionResult::Decided(reply) => {
                        let is_taken = self.send_reply(run_id, call, &reply).await;
                        decisions.add(call, *reply);
                        if !is_taken {
                            return Ok(self.now(run_id).await);
                        }
                    }
                    QuestionResult::Undecided => return Ok(self.now(run_id).await),
                    QuestionResult::Closed => {}
                },
            }
        }
    }

    /// Waits until the run has open calls, and returns its state. If it ends instead, returns the response. A run from
    /// an earlier server has to reach its calls again first.
    pub(crate) async fn waiting(&self, run_id: &str) -> Result<Result<Box<RunState>, CallToolResponse>, ErrorData> {
        let waited = tokio::select! {
            biased;
            () = self.client.cancelled.cancelled() => return Err(cancelled()),
            waited = self.connection.service.wait(self.connection.name(), run_id) => waited,
        };
        Ok(match waited {
            Ok(Done::Waiting(state)) => Ok(state),
            Ok(Done::Answer(answer)) => Err(show::answer(&answer).into()),
            Err(refused) => Err(show::refused(&refused).into()),
        })
    }

    /// Asks the user about a call.
    async fn elicit(&self, run_id: &str, call: &WaitingCall) -> QuestionResult {
        let Some(form) = ask::form(call) else { return QuestionResult::Undecided };
        let answer = tokio::select! {
            biased;
            // The caller's loop handles this.
            () = self.client.cancelled.cancelled() => return QuestionResult::Closed,
            () = self.connection.disconnected.cancelled() => return QuestionResult::Undecided,
            () = self.answered_elsewhere(run_id, call) => return QuestionResult::Closed,
            answer = self.client.peer.create_elicitation(form) => answer,
        };
        if self.client.cancelled.is_cancelled() {
            // An answer that arrives now has no effect.
            return QuestionResult::Closed;
        }
        let reply = match answer {
            Ok(answer) => ask::reply(&answer),
            Err(error) => {
                tracing::info!(%error, "the client does not answer a question");
                None
            }
        };
        reply.map_or(QuestionResult::Undecided, |reply| QuestionResult::Decided(Box::new(reply)))
    }

    /// Returns when the call is answered elsewhere or the run has ended.
    async fn answered_elsewhere(&self, run_id: &str, call: &WaitingCall) {
        let mut watcher = self.connection.service.watcher(run_id);
        loop {
            let state = self.connection.service.state(self.connection.name(), run_id).await;
            let is_it = |open: &WaitingCall| open.call == call.call && open.asked() == call.asked();
            if state.is_ok_and(|state| !state.calls.iter().any(is_it)) {
                return;
            }
            watcher.changed().await;
        }
    }

    /// Sends the decisions again after a pause. Returns false if one does not fit its call.
    async fn send_again(&self, state: &RunState, decisions: &Decisions) -> bool {
        tokio::time::sleep(AGAIN).await;
        for call in &state.calls {
            if let Some(reply) = decisions.of(call)
                && !self.send_reply(&state.run_id, call, reply).await
            {
                return false;
            }
        }
        true
    }

    /// Sends a decision on what the call waited for when it was asked about. Returns false if it does not fit the call.
    async fn send_reply(&self, run_id: &str, call: &WaitingCall, reply: &Reply) -> bool {
        let reply = Reply { phase: Some(call.asked()), ..reply.clone() };
        match self.connection.service.reply(self.connection.name(), run_id, &call.call, &reply).await {
            // An approver was faster, or the run has not reached the call again: check the open calls again.
            Ok(_) | Err(Refused::Conflict(_) | Refused::NotFound(_)) => true,
            Err(error) => {
                tracing::warn!(run_id, %error, "a decision does not fit");
                false
            }
        }
    }

    pub(crate) fn paused(&self, state: &RunState) -> CallToolResponse {
        let tickets = &self.connection.tickets;
        let token = tickets.make(self.connection.name(), Purpose::Resume, &state.run_id, &state.calls);
        let approver = (&*self.connection.approver(), self.connection.has_approvers());
        show::paused(&state.run_id, &token, &state.calls, approver).into()
    }

    /// The response for the current state of the run.
    pub(crate) async fn now(&self, run_id: &str) -> CallToolResponse {
        match self.connection.service.state(self.connection.name(), run_id).await {
            Ok(state) => match &state.answer {
                Some(answer) => show::answer(answer.get()).into(),
                None => self.paused(&state),
            },
            Err(refused) => show::refused(&refused).into(),
        }
    }

    /// The questions, for a client that sends its request again with the answers.
    fn next_input(&self, state: &RunState, open: &[&WaitingCall]) -> CallToolResponse {
        let asked = open.iter().filter(|call| call.question.is_some());
        let questions: InputRequests = asked.filter_map(|call| Some((call.call.clone(), ask::input(call)?))).collect();
        let purpose = Purpose::Round(self.contents);
        let token = self.connection.tickets.make(self.connection.name(), purpose, &state.run_id, &state.calls);
        InputRequiredResult::new(Some(questions), Some(token)).into()
    }

    /// Handles a request that was sent again with answers.
    pub(crate) async fn next_round(&self, token: &str, answers: Option<&InputResponses>) -> Responded {
        let (service, tenant) = (&self.connection.service, self.connection.name());
        let invalid = |why: String| Err(ErrorData::invalid_params(format!("requestState: {why}"), None));
        let ticket = match self.connection.tickets.open(tenant, Purpose::Round(self.contents), token) {
            Ok(ticket) => ticket,
            Err(error) => return invalid(error.to_string()),
        };
        let state = match service.state(tenant, &ticket.run_id).await {
            Ok(state) => state,
            Err(refused) => return Ok(show::refused(&refused).into()),
        };
        let (mut is_undecided, mut decisions) = (false, Decisions::default());
        for (name, answer) in answers.into_iter().flatten() {
            let answer = serde_json::from_value::<ElicitResult>(answer.clone()).ok();
            let reply = answer.as_ref().and_then(ask::reply);
            // Only answers to the questions that were asked count.
            let open = state.calls.iter().find(|call| call.call == *name && ticket.names(call));
            match (open, reply) {
                (Some(call), Some(reply)) => {
                    is_undecided |= !self.send_reply(&ticket.run_id, call, &reply).await;
                    decisions.add(call, reply);
                }
                (Some(_), None) => is_undecided = true,
                // The same request may arrive twice.
                (None, Some(reply)) => {
                    let may_be_for = |call: &str, asked: &str| ticket.may_answer(Some(name), call, asked);
                    match service.earlier_reply(tenant, &ticket.run_id, may_be_for, &reply).await {
                        Ok(EarlierReply::Other) => {
                            return invalid(format!("the call {name} already has a different decision"));
                        }
                        Ok(EarlierReply::Same | EarlierReply::None) => {}
                        Err(refused) => return Ok(show::refused(&refused).into()),
                    }
                }
                (None, None) => {}
            }
        }
        // A user who did not decide is not asked again right away.
        if is_undecided {
            return Ok(self.now(&ticket.run_id).await);
        }
        self.follow_with(&ticket.run_id, decisions, Ends::Run).await
    }
}

/// What a cancelled request ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The request and its run.
    Run,
    /// The request only.
    Request,
}

/// The result of a question.
enum QuestionResult {
    /// The user has decided.
    Decided(Box<Reply>),
    /// The user has not decided.
    Undecided,
    /// The call is no longer open, or the request was cancelled.
    Closed,
}

/// The user's decisions in this request that the run may not have received yet. No question is asked twice.
#[derive(Default)]
struct Decisions(Vec<(String, String, Reply)>);

impl Decisions {
    fn add(&mut self, call: &WaitingCall, reply: Reply) {
        self.0.push((call.call.clone(), call.asked(), reply));
    }

    fn of(&self, call: &WaitingCall) -> Option<&Reply> {
        let found = self.0.iter().find(|(name, asked, _)| *name == call.call && *asked == call.asked());
        found.map(|(.., reply)| reply)
    }

    fn has(&self, call: &WaitingCall) -> bool {
        self.of(call).is_some()
    }
}
