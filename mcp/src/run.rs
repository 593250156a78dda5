//! The tools `run` and `check`.

use crate::drive::{Drive, Responded};
use crate::show;
use lisp_runtime::Request;
use lisp_runtime::internal::{near_field, near_names};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

/// The arguments of the tools.
pub(crate) const ARGUMENTS: [&str; 6] = ["program", "data", "signature", "tools", "limits", "json_keys"];

/// Checks the tools that the model answers itself.
fn check_tools(drive: &Drive<'_>, arguments: &JsonObject) -> Result<(), String> {
    let Some(Value::Object(tools)) = arguments.get("tools") else { return Ok(()) };
    for (name, tool) in tools {
        if tool["client"] != true {
            return Err(format!("tools.{name} must have \"client\": true; you answer its calls with the tool resume"));
        }
        let mut all = drive.connection.service.engine().tools().all();
        if all.any(|tool| (tool.given_name() == name || tool.name() == name) && drive.connection.sees(tool)) {
            return Err(format!("tools.{name}: the server has a tool of this name; use another name"));
        }
    }
    Ok(())
}

/// Returns the request that the arguments of a tool make, as text.
fn request_text(drive: &Drive<'_>, tool: &str, mut arguments: JsonObject) -> Result<String, CallToolResult> {
    if let Some(unknown) = arguments.keys().find(|name| !ARGUMENTS.contains(&name.as_str())) {
        let known = ARGUMENTS.join(", ");
        let near = near_names(unknown, ARGUMENTS.into_iter(), 1).first().map(|near| format!("did you mean {near}? "));
        let near = near.unwrap_or_default();
        return Err(show::failed(format!("unknown argument {unknown:?}; {near}{tool} takes {known}")));
    }
    check_tools(drive, &arguments).map_err(show::failed)?;
    if let Some(traceparent) = drive.client.meta.get_traceparent() {
        arguments.insert("traceparent".to_owned(), traceparent.into());
    }
    Ok(Value::Object(arguments).to_string())
}

fn read(text: &str) -> Result<Request<'_>, CallToolResult> {
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize::<_, Request<'_>>(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let message = error.into_inner().to_string();
        // The position refers to text that the client has not seen.
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        let field = if field == "." { String::new() } else { format!("{field}: ") };
        let near = near_field(message).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let next = r#"example: {"program": "(sum data/xs)", "data": {"xs": [1, 2]}}"#;
        show::failed(format!("{field}{message}{near}; {next}"))
    })
}

/// Runs a program.
pub(crate) async fn call(drive: &Drive<'_>, arguments: JsonObject) -> Responded {
    let text = match request_text(drive, "run", arguments) {
        Ok(text) => text,
        Err(failed) => return Ok(failed.into()),
    };
    match read(&text) {
        Ok(request) => drive.run(&text, &request).await,
        Err(failed) => Ok(failed.into()),
    }
}

/// Checks a program.
pub(crate) async fn check(drive: &Drive<'_>, arguments: JsonObject) -> CallToolResult {
    let text = match request_text(drive, "check", arguments) {
        Ok(text) => text,
        Err(failed) => return failed,
    };
    let request = match read(&text) {
        Ok(request) => request,
        Err(failed) => return failed,
    };
    match drive.connection.service.check(&drive.connection.tenant, &request).await {
        Ok(report) => show::report(&report),
        Err(refused) => show::refused(&refused),
    }
}
