//! The tool `resume`: returns the outcome of a paused run, and sends results of its open calls. It cannot approve
//! calls.

use crate::ask;
use crate::connection::AskMode;
use crate::drive::{Drive, Responded};
use crate::schema::WAIT_SECONDS;
use crate::show;
use crate::ticket::{Purpose, Ticket};
use lisp_server::runs::{EarlierReply, Refused, Reply, RunState, WaitingCall};
use rmcp::model::{CallToolResponse, ContentBlock, JsonObject};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The arguments of the tool.
pub(crate) const ARGUMENTS: [&str; 5] = ["token", "wait_seconds", "call", "result", "error"];
/// Arguments of earlier versions, which models may still try.
const DECISIONS: [&str; 3] = ["approve", "reject", "arguments"];

/// The arguments of a call.
struct ResumeArguments {
    token: String,
    wait: Duration,
    call: Option<String>,
    reply: Option<Reply>,
}

impl ResumeArguments {
    fn read(mut given: JsonObject) -> Result<Self, String> {
        if let Some(unknown) = given.keys().find(|name| !ARGUMENTS.contains(&name.as_str())) {
            return Err(format!("unknown argument {unknown:?}; resume takes {}", ARGUMENTS.join(", ")));
        }
        let Some(Value::String(token)) = given.remove("token") else {
            return Err("token must be the token of the paused result, unchanged".to_owned());
        };
        let wait = match given.remove("wait_seconds") {
            None | Some(Value::Null) => 0,
            Some(seconds) => seconds
                .as_u64()
                .filter(|seconds| *seconds <= WAIT_SECONDS)
                .ok_or_else(|| format!("wait_seconds must be an integer from 0 to {WAIT_SECONDS}"))?,
        };
        let call = match given.remove("call") {
            None | Some(Value::Null) => None,
            Some(Value::String(call)) => Some(call),
            Some(_) => return Err("call must be the name of an open call, as a string".to_owned()),
        };
        Ok(ResumeArguments { token, wait: Duration::from_secs(wait), call, reply: ResumeArguments::reply(given)? })
    }

    /// Reads the reply, if there is one.
    fn reply(given: JsonObject) -> Result<Option<Reply>, String> {
        let fields: Map<String, Value> = given
            .into_iter()
            .filter(|(name, value)| name == "result" || !value.is_null())
            .map(|(name, value)| match (name.as_str(), value) {
                ("error", Value::String(message)) => (name, json!({ "message": message })),
                (_, value) => (name, value),
            })
            .collect();
        if fields.is_empty() {
            return Ok(None);
        }
        let reply =
            ask::decision(&Value::Object(fields)).filter(|reply| reply.result.is_some() != reply.error.is_some());
        let why = "give either \"result\": .. or \"error\": \"message\", or neither to get the outcome of the run";
        reply.map(Some).ok_or_else(|| why.to_owned())
    }
}

/// Resumes a paused run.
pub(crate) async fn call(drive: &Drive<'_>, arguments: JsonObject) -> Responded {
    let failed = |why: String| Ok(show::failed(why).into());
    let open = |token: &str| drive.connection.tickets.open(drive.connection.name(), Purpose::Resume, token);
    if let Some(name) = DECISIONS.iter().find(|name| arguments.get(**name).is_some_and(|value| !value.is_null())) {
        let why = format!(
            "resume does not accept {name}: a model cannot decide on its own calls. {}. The run is unchanged; call resume with \
             only the token for its outcome",
            drive.connection.approver()
        );
        let token = arguments.get("token").and_then(Value::as_str);
        return match token.and_then(|token| open(token).ok()) {
            Some(ticket) => Ok(with_reason(drive.now(&ticket.run_id).await, why)),
            None => failed(why),
        };
    }
    let asked = match ResumeArguments::read(arguments) {
        Ok(asked) => asked,
        Err(why) => return failed(why),
    };
    let ticket = match open(&asked.token) {
        Ok(ticket) => ticket,
        Err(error) => return failed(error.to_string()),
    };
    match &asked.reply {
        None => outcome(drive, &ticket.run_id, asked.wait).await,
        Some(reply) => send_result(drive, &ticket, asked.call.as_deref(), reply).await,
    }
}

/// Adds a reason in front of a result, and marks it as an error.
fn with_reason(result: CallToolResponse, why: String) -> CallToolResponse {
    let CallToolResponse::Complete(mut result) = result else { return show::failed(why).into() };
    result.content.insert(0, ContentBlock::text(why));
    result.is_error = Some(true);
    result.into()
}

/// Returns the outcome of a run, or its open calls if it has none when the time is over.
async fn outcome(drive: &Drive<'_>, run_id: &str, wait: Duration) -> Responded {
    if drive.client.ask_mode == AskMode::Approver && !wait.is_zero() {
        let state = match drive.waiting(run_id).await? {
            Ok(state) => state,
            Err(response) => return Ok(response),
        };
        let (service, tenant) = (&drive.connection.service, drive.connection.name());
        let calls = |state: &RunState| state.calls.iter().map(|call| call.call.clone()).collect::<Vec<_>>();
        let known = calls(&state);
        // Its arguments may be large.
        drop(state);
        let has_moved = async {
            let mut watcher = service.watcher(run_id);
            while service.state(tenant, run_id).await.is_ok_and(|now| now.answer.is_none() && calls(&now) == known) {
                watcher.changed().await;
            }
        };
        tokio::select! {
            biased;
            // This ends the request but not the run.
            () = drive.client.cancelled.cancelled() => return Err(crate::drive::cancelled()),
            () = has_moved => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    drive.collect(run_id).await
}

/// Sends the result of a call.
async fn send_result(drive: &Drive<'_>, ticket: &Ticket, name: Option<&str>, reply: &Reply) -> Responded {
    let (service, tenant, run_id) = (&drive.connection.service, drive.connection.name(), &*ticket.run_id);
    let state = match service.state(tenant, run_id).await {
        Ok(state) => state,
        Err(refused) => return Ok(show::refused(&refused).into()),
    };
    let again = async |why: String| Ok(with_reason(drive.now(run_id).await, why));
    let open: Option<&WaitingCall> = match name {
        Some(name) => state.calls.iter().find(|call| call.call == name && ticket.names(call)),
        None => match &*state.calls {
            [call] => Some(call).filter(|call| ticket.names_only(call)),
            calls if calls.iter().any(|call| ticket.names(call)) => {
                let names = calls.iter().map(|call| call.call.as_str()).collect::<Vec<_>>().join(", ");
                return again(format!("several calls are open; name one of them with \"call\": {names}")).await;
            }
            _ => None,
        },
    };
    if let Some(call) = open {
        let asked = call.asked();
        if asked == "gate" || (asked != "result" && drive.connection.has_approvers()) {
            let what = if asked == "gate" { "to be approved" } else { "for an approver to find out how it ended" };
            let why = format!(
                "the reply was not accepted: the call {} waits {what}, not for a result from you. {}. Call resume with only the \
                 token for the outcome of the run",
                call.call,
                drive.connection.approver()
            );
            return again(why).await;
        }
        // Only what the call waits for in the token: it may wait for another answer by now.
        let reply = Reply { phase: Some(asked), ..reply.clone() };
        match service.reply(tenant, run_id, &call.call, &reply).await {
            Ok(_) => return drive.collect(run_id).await,
            // Another reply arrived first.
            Err(Refused::Conflict(_)) => {}
            Err(refused) => return again(format!("the reply was not accepted: {refused}")).await,
        }
    }
    let may_be_for = |call: &str, asked: &str| ticket.may_answer(name, call, asked);
    match service.earlier_reply(tenant, run_id, may_be_for, reply).await {
        Ok(EarlierReply::Same) => drive.collect(run_id).await,
        Ok(EarlierReply::Other) => {
            again("conflict: the call already has another result, which is kept".to_owned()).await
        }
        Ok(EarlierReply::None) => again(
            "the reply was not accepted: no open call matches, or the token does not cover it; use the newest token"
                .to_owned(),
        )
        .await,
        Err(refused) => Ok(show::refused(&refused).into()),
    }
}
