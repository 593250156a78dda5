//! Runs, from their beginning or a decision to their answer or the next question.

use crate::ask;
use crate::door::{Asking, Client, Door};
use crate::notes::{Notes, Watch};
use crate::show;
use crate::ticket::{BadTicket, Purpose};
use lisp_runtime::Request;
use lisp_server::runs::{Done, Refused, Reply, RunState};
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, ElicitResult, ErrorCode, InputRequests, InputRequiredResult, InputResponses};
use std::time::Duration;

/// What a request comes to.
pub(crate) type Responded = Result<CallToolResponse, ErrorData>;

/// A request under way.
pub(crate) struct Drive<'a> {
    pub(crate) door: &'a Door,
    pub(crate) client: &'a Client,
    pub(crate) notes: &'a Notes,
    /// The digest of the request.
    pub(crate) contents: &'a [u8; 32],
}

fn cancelled() -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, "the request was cancelled", None)
}

impl Drive<'_> {
    /// Runs a program.
    pub(crate) async fn run(&self, text: &str, request: &Request<'_>) -> Responded {
        let (service, tenant) = (&self.door.service, &self.door.tenant);
        if service.needs_journal(request) {
            return match service.submit(tenant, text, None) {
                Ok(state) => self.go_on(&state.run_id).await,
                Err(refused) => Ok(show::refused(&refused).into()),
            };
        }
        let run_id = uuid::Uuid::now_v7().to_string();
        let mut watch = Watch::new(service, &run_id);
        let run = self.notes.follow(&mut watch, service.run(tenant, request, &run_id));
        // Dropped, the run is cancelled.
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

    /// Waits for a durable run, and asks what it asks.
    pub(crate) async fn go_on(&self, run_id: &str) -> Responded {
        let (service, tenant) = (&self.door.service, self.door.name());
        let mut watch = Watch::new(service, run_id);
        loop {
            let waited = tokio::select! {
                biased;
                () = self.client.cancelled.cancelled() => {
                    if let Err(error) = service.cancel(tenant, run_id) {
                        tracing::warn!(run_id, %error, "a run cannot be cancelled");
                    }
                    return Err(cancelled());
                }
                waited = self.notes.follow(&mut watch, service.wait(tenant, run_id)) => waited,
            };
            let state = match waited {
                Ok(Done::Answer(answer)) => return Ok(show::answer(&answer).into()),
                Ok(Done::Waiting(state)) => state,
                Err(refused) => return Ok(show::refused(&refused).into()),
            };
            if state.calls.is_empty() {
                let why = state.trouble.as_deref().unwrap_or("the server is going down");
                return Ok(show::failed(format!("the run {run_id} cannot go on: {why}")).into());
            }
            match self.client.asking {
                Asking::Nobody => return Ok(self.paused(&state)),
                Asking::Rounds => return Ok(self.next_input(&state)),
                Asking::Elicit => {
                    if let Some(paused) = self.elicit(&state).await? {
                        return Ok(paused);
                    }
                }
            }
        }
    }

    /// What a run waits for; one that an earlier server had under way comes to it again first. Else what the request comes to.
    pub(crate) async fn waiting(&self, run_id: &str) -> Result<Result<Box<RunState>, CallToolResponse>, ErrorData> {
        let waited = tokio::select! {
            biased;
            () = self.client.cancelled.cancelled() => return Err(cancelled()),
            waited = self.door.service.wait(self.door.name(), run_id) => waited,
        };
        Ok(match waited {
            Ok(Done::Waiting(state)) => Ok(state),
            Ok(Done::Answer(answer)) => Err(show::answer(&answer).into()),
            Err(refused) => Err(show::refused(&refused).into()),
        })
    }

    /// Asks about each call, one after the other. Returns a result when something stays open.
    async fn elicit(&self, state: &RunState) -> Result<Option<CallToolResponse>, ErrorData> {
        for call in &state.calls {
            let Some(form) = ask::form(call) else { return Ok(Some(self.paused(state))) };
            let said = tokio::select! {
                biased;
                // It is told so in the loop.
                () = self.client.cancelled.cancelled() => return Ok(None),
                () = self.door.gone.cancelled() => return Ok(Some(self.paused(state))),
                said = self.client.peer.create_elicitation(form) => said,
            };
            if self.client.cancelled.is_cancelled() {
                // An answer that comes at the same time decides nothing any more.
                return Ok(None);
            }
            let reply = match said {
                Ok(said) => ask::reply(&said),
                Err(error) => {
                    tracing::info!(%error, "the client does not answer a question");
                    None
                }
            };
            let Some(reply) = reply else { return Ok(Some(self.paused_now(&state.run_id))) };
            if !self.tell(&state.run_id, &call.call, &reply).await {
                return Ok(Some(self.paused_now(&state.run_id)));
            }
        }
        Ok(None)
    }

    /// Passes a decision on. False when it does not fit the call.
    async fn tell(&self, run_id: &str, call: &str, reply: &Reply) -> bool {
        match self.door.service.reply(self.door.name(), run_id, call, reply) {
            Ok(_) => true,
            // Somebody else was faster; what is open then is looked at again.
            Err(Refused::Conflict(_) | Refused::NotFound(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                true
            }
            Err(error) => {
                tracing::warn!(run_id, %error, "a decision does not fit");
                false
            }
        }
    }

    pub(crate) fn paused(&self, state: &RunState) -> CallToolResponse {
        let tickets = &self.door.tickets;
        let token = tickets.make(self.door.name(), Purpose::Resume, &state.run_id, &state.calls);
        show::paused(&state.run_id, &token, &state.calls).into()
    }

    /// As far as the run is by now.
    pub(crate) fn paused_now(&self, run_id: &str) -> CallToolResponse {
        match self.door.service.state(self.door.name(), run_id) {
            Ok(state) => match &state.answer {
                Some(answer) => show::answer(answer.get()).into(),
                None => self.paused(&state),
            },
            Err(refused) => show::refused(&refused).into(),
        }
    }

    /// The questions, for a client that sends its request again with the answers.
    fn next_input(&self, state: &RunState) -> CallToolResponse {
        let questions: InputRequests =
            state.calls.iter().filter_map(|call| Some((call.call.clone(), ask::input(call)?))).collect();
        let purpose = Purpose::Round(self.contents);
        let token = self.door.tickets.make(self.door.name(), purpose, &state.run_id, &state.calls);
        InputRequiredResult::new(Some(questions), Some(token)).into()
    }

    /// A request that comes again with answers.
    pub(crate) async fn next_round(&self, token: &str, answers: Option<&InputResponses>) -> Responded {
        let name = self.door.name();
        let ticket = match self.door.tickets.take(&self.door.service, name, Purpose::Round(self.contents), token) {
            Ok(ticket) => ticket,
            Err(BadTicket::Refused(refused)) => return Ok(show::refused(&refused).into()),
            Err(error) => return Err(ErrorData::invalid_params(format!("requestState: {error}"), None)),
        };
        let state = match self.waiting(&ticket.run_id).await? {
            Ok(state) => state,
            Err(response) => return Ok(response),
        };
        let mut is_undecided = false;
        // Answers to other questions than those that were asked decide nothing.
        for call in state.calls.iter().filter(|_| ticket.fits(&state.calls)) {
            let said = answers.and_then(|answers| answers.get(&call.call));
            let said = said.and_then(|said| serde_json::from_value::<ElicitResult>(said.clone()).ok());
            match said.as_ref().and_then(ask::reply) {
                Some(reply) if self.tell(&ticket.run_id, &call.call, &reply).await => {}
                _ => is_undecided |= said.is_some(),
            }
        }
        // Whoever was asked and does not decide is not asked again at once.
        if is_undecided {
            return Ok(self.paused_now(&ticket.run_id));
        }
        self.go_on(&ticket.run_id).await
    }
}
