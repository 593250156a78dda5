//! The tool `resume`.

use crate::ask;
use crate::drive::{Drive, Responded};
use crate::show;
use crate::ticket::{BadTicket, Purpose};
use lisp_server::runs::{Reply, WaitingCall};
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// What the tool takes.
pub(crate) const ARGUMENTS: [&str; 7] = ["token", "call", "approve", "arguments", "reject", "result", "error"];

/// A decision, as it was sent.
struct Decision {
    token: String,
    call: Option<String>,
    reply: Reply,
}

impl Decision {
    fn read(mut given: JsonObject) -> Result<Self, String> {
        if let Some(unknown) = given.keys().find(|name| !ARGUMENTS.contains(&name.as_str())) {
            return Err(format!("there is no argument {unknown:?}; resume takes {}", ARGUMENTS.join(", ")));
        }
        let Some(Value::String(token)) = given.remove("token") else {
            return Err("token: the text that the paused run has; give it as it is".to_owned());
        };
        let call = match given.remove("call") {
            None | Some(Value::Null) => None,
            Some(Value::String(call)) => Some(call),
            Some(_) => return Err("call: the name of one of the calls that wait, as text".to_owned()),
        };
        let said: Map<String, Value> = given
            .into_iter()
            .filter(|(name, value)| name == "result" || !value.is_null())
            .map(|(name, value)| match (name.as_str(), value) {
                ("error", Value::String(message)) => (name, json!({ "message": message })),
                (_, value) => (name, value),
            })
            .collect();
        let is_one =
            ["approve", "reject", "result", "error"].iter().filter(|name| said.contains_key(**name)).count() == 1;
        let reply = ask::decision(&Value::Object(said)).filter(|_| is_one);
        let reply = reply.ok_or(
            "say one of \"approve\": true (with \"arguments\": {..} to change them), \"reject\": \"why\", \"result\": .. and \
             \"error\": \"message\"",
        )?;
        Ok(Decision { token, call, reply })
    }
}

/// Goes on with a paused run.
pub(crate) async fn call(drive: &Drive<'_>, arguments: JsonObject) -> Responded {
    let failed = |why: String| Ok(show::failed(why).into());
    let decision = match Decision::read(arguments) {
        Ok(decision) => decision,
        Err(why) => return failed(why),
    };
    let (service, tenant) = (&drive.door.service, drive.door.name());
    let ticket = match drive.door.tickets.take(service, tenant, Purpose::Resume, &decision.token) {
        Ok(ticket) => ticket,
        Err(BadTicket::Refused(refused)) => return Ok(show::refused(&refused).into()),
        Err(error) => return failed(error.to_string()),
    };
    let state = match drive.waiting(&ticket.run_id).await? {
        Ok(state) => state,
        Err(response) => return Ok(response),
    };
    let again = |why: String| {
        // The token is used up: here is the next one.
        let rmcp::model::CallToolResponse::Complete(mut paused) = drive.paused(&state) else { return failed(why) };
        paused.content.insert(0, rmcp::model::ContentBlock::text(why));
        paused.is_error = Some(true);
        Ok(paused.into())
    };
    if !ticket.fits(&state.calls) {
        return match state.calls.is_empty() {
            true => drive.go_on(&ticket.run_id).await,
            false => again("nothing was decided: the run waits for something else by now".to_owned()),
        };
    }
    let names = || state.calls.iter().map(|call| call.call.as_str()).collect::<Vec<_>>().join(", ");
    let call: Option<&WaitingCall> = match &decision.call {
        Some(name) => state.calls.iter().find(|call| call.call == *name),
        None if state.calls.len() == 1 => state.calls.first(),
        None => return again(format!("several calls wait: say which with \"call\", one of {}", names())),
    };
    let Some(call) = call else { return again(format!("no such call waits; there are {}", names())) };
    match service.reply(tenant, &ticket.run_id, &call.call, &decision.reply) {
        Ok(_) => drive.go_on(&ticket.run_id).await,
        Err(refused) => again(format!("nothing was decided: {refused}")),
    }
}
