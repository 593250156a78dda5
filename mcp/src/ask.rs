//! Questions to the user of a client, and how the answers are read.

use crate::show;
use lisp_runtime::internal::visible;
use lisp_server::runs::{Reply, WaitingCall};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
};
use serde_json::{Value, json};

/// The form for a yes-or-no decision.
pub(crate) fn form(call: &WaitingCall) -> Option<ElicitRequestParams> {
    let question = visible(call.question.as_deref().unwrap_or("Make this call?"));
    let schema = json!({
        "type": "object",
        "properties": {
            "approve": { "type": "boolean", "title": "Approve", "description": "Whether to make the call.", "default": false },
            "reason": { "type": "string", "title": "Reason", "description": "Why the call is rejected; part of its error message.", "maxLength": 1000, "default": "" },
        },
        "required": ["approve"],
    });
    let Value::Object(schema) = schema else { return None };
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{question}\n\n{}", show::call(call)),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

/// The form as part of a result, for clients that send their request again with the answers.
pub(crate) fn input(call: &WaitingCall) -> Option<InputRequest> {
    Some(InputRequest::Elicitation(ElicitRequest::new(form(call)?)))
}

/// Reads a user's answer. Returns `None` if the user did not decide.
pub(crate) fn reply(answer: &ElicitResult) -> Option<Reply> {
    let reject = |why: &str| decision(&json!({ "reject": why }));
    match answer.action {
        ElicitationAction::Decline => reject("the user declined"),
        ElicitationAction::Accept => {
            let content = answer.content.as_ref()?;
            match content["approve"].as_bool()? {
                true => decision(&json!({ "approve": true })),
                false => match content["reason"].as_str() {
                    Some(why) if !why.trim().is_empty() => reject(why),
                    _ => reject("the user rejected the call"),
                },
            }
        }
        // The user closed the form without a decision.
        _ => None,
    }
}

/// Parses a reply. Returns `None` if it is invalid.
pub(crate) fn decision(decision: &Value) -> Option<Reply> {
    serde_json::from_str(&decision.to_string()).ok()
}
