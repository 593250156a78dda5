//! A model that follows a script. It looks at what it is told, as a model would: its second program comes only after the report of the
//! first.

use serde_json::{Value, json};

const FIRST: &str =
    "(for [o data/orders :when (= (:status o) \"lost\")]\n  (tool/refund {:order (:id o) :amuont (:total o)}))";
const SECOND: &str =
    "(for [o data/orders :when (= (:status o) \"lost\")]\n  (tool/refund {:order (:id o) :amount (:total o)}))";
const ANSWER: &str = "Order 7 is refunded, receipt r7.";

/// What the model says next.
enum Line {
    Program(&'static str),
    Answer(&'static str),
}

/// Returns the next line, by the last result in the request.
fn next(request: &Value, last: &str) -> Line {
    assert!(request.to_string().contains("tool/refund"), "the prompt has the tool");
    match last {
        "" => Line::Program(FIRST),
        report if report.contains("check_failed") && report.contains("write :amount") => Line::Program(SECOND),
        result => {
            assert_eq!(result, "[{\"receipt\" \"r7\"}]\n");
            Line::Answer(ANSWER)
        }
    }
}

/// The model behind the Messages API.
pub(crate) fn anthropic() -> impl FnMut(&Value) -> Value {
    |request| {
        let last = request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        let result = &last["content"][0];
        let last = if result["type"] == "tool_result" { result["content"].as_str().unwrap_or_default() } else { "" };
        match next(request, last) {
            Line::Program(source) => json!({
                "role": "assistant",
                "stop_reason": "tool_use",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "run_program", "input": { "program": source } }],
            }),
            Line::Answer(text) => json!({
                "role": "assistant",
                "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": text }],
            }),
        }
    }
}

/// The model behind the Chat Completions API.
pub(crate) fn openai() -> impl FnMut(&Value) -> Value {
    |request| {
        let last = request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        let last = if last["role"] == "tool" { last["content"].as_str().unwrap_or_default() } else { "" };
        let message = match next(request, last) {
            Line::Program(source) => {
                let arguments = json!({ "program": source }).to_string();
                let function = json!({ "name": "run_program", "arguments": arguments });
                json!({
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [{ "id": "call_1", "type": "function", "function": function }],
                })
            }
            Line::Answer(text) => json!({ "role": "assistant", "content": text }),
        };
        json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
    }
}
