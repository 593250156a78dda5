//! The format of `POST https://api.openai.com/v1/chat/completions`, which many other servers share.

use crate::{Conversation, Response, run_program};
use serde_json::{Value, json};
use std::error::Error;

pub(crate) struct Chat {
    model: String,
    messages: Vec<Value>,
}

impl Chat {
    pub(crate) fn new(model: &str, system: &str, question: &str) -> Self {
        let messages =
            vec![json!({ "role": "system", "content": system }), json!({ "role": "user", "content": question })];
        Chat { model: model.to_owned(), messages }
    }
}

impl Conversation for Chat {
    fn request(&self) -> Value {
        let (name, description, parameters) = run_program();
        let function = json!({ "name": name, "description": description, "parameters": parameters });
        json!({
            "model": self.model,
            "tools": [{ "type": "function", "function": function }],
            "parallel_tool_calls": false,
            "messages": self.messages,
        })
    }

    fn receive(&mut self, body: Value) -> Result<Response, Box<dyn Error>> {
        let message = body["choices"][0]["message"].clone();
        if message.is_null() {
            return Err(format!("no message: {body}").into());
        }
        self.messages.push(message.clone());
        let call = &message["tool_calls"][0];
        if call.is_null() {
            return Ok(Response::Answer(message["content"].as_str().unwrap_or_default().to_owned()));
        }
        // The arguments are JSON in a string. What is no JSON is a program that does not compile.
        let text = call["function"]["arguments"].as_str().unwrap_or_default();
        let arguments: Value = serde_json::from_str(text).unwrap_or_default();
        let source = arguments["program"].as_str().unwrap_or(text).to_owned();
        Ok(Response::Program { call: call["id"].as_str().unwrap_or_default().to_owned(), source })
    }

    fn reply(&mut self, call: &str, text: &str, _is_error: bool) {
        self.messages.push(json!({ "role": "tool", "tool_call_id": call, "content": text }));
    }
}
