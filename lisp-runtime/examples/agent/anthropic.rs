//! The format of `POST https://api.anthropic.com/v1/messages`.

use crate::{Conversation, Response, run_program};
use serde_json::{Value, json};
use std::error::Error;

pub(crate) struct Messages {
    model: String,
    system: String,
    messages: Vec<Value>,
}

impl Messages {
    pub(crate) fn new(model: &str, system: &str, question: &str) -> Self {
        let messages = vec![json!({ "role": "user", "content": question })];
        Messages { model: model.to_owned(), system: system.to_owned(), messages }
    }
}

impl Conversation for Messages {
    fn request(&self) -> Value {
        let (name, description, parameters) = run_program();
        json!({
            "model": self.model,
            "max_tokens": 4096,
            "system": self.system,
            "tools": [{ "name": name, "description": description, "input_schema": parameters }],
            // One program at a time.
            "tool_choice": { "type": "auto", "disable_parallel_tool_use": true },
            "messages": self.messages,
        })
    }

    fn receive(&mut self, body: Value) -> Result<Response, Box<dyn Error>> {
        let content = body["content"].as_array().ok_or_else(|| format!("no content: {body}"))?.clone();
        self.messages.push(json!({ "role": "assistant", "content": content }));
        if let Some(call) = content.iter().find(|block| block["type"] == "tool_use") {
            let source = call["input"]["program"].as_str().unwrap_or_default().to_owned();
            return Ok(Response::Program { call: call["id"].as_str().unwrap_or_default().to_owned(), source });
        }
        Ok(Response::Answer(content.iter().filter_map(|block| block["text"].as_str()).collect()))
    }

    fn reply(&mut self, call: &str, text: &str, is_error: bool) {
        let result = json!({ "type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error });
        self.messages.push(json!({ "role": "user", "content": [result] }));
    }
}
