//! An agent: a model gets the prompt, writes programs, and corrects them by what they report.
//!
//! `cargo run -p ptc-lisp-runtime --example agent` plays it with a scripted model, once in the format of Anthropic's Messages API and once in
//! that of OpenAI's Chat Completions API. A host sends the request over HTTP where this one asks the script.

mod anthropic;
mod openai;
mod script;

use lisp_runtime::{Check, Engine, Input, Tool};
use serde_json::{Value, json};
use std::error::Error;

/// The maximum number of requests to the model for one question.
const MAX_ROUNDS: usize = 6;

/// What a model responds with: a program to run, or its answer.
enum Response {
    Program { call: String, source: String },
    Answer(String),
}

/// A conversation in the format of an API.
trait Conversation {
    /// Returns the body of the next request.
    fn request(&self) -> Value;
    /// Adds the body of a response.
    fn receive(&mut self, body: Value) -> Result<Response, Box<dyn Error>>;
    /// Adds what a program returned.
    fn reply(&mut self, call: &str, text: &str, is_error: bool);
}

/// The only tool of the model.
fn run_program() -> (&'static str, &'static str, Value) {
    let parameters = json!({
        "type": "object",
        "properties": { "program": { "type": "string", "description": "The source. The value of its last form is the result." } },
        "required": ["program"],
    });
    ("run_program", "Runs a PTC-Lisp program and returns its value, or an error to correct.", parameters)
}

/// Runs a program. Returns the text for the model, and whether it is an error.
fn run(engine: &Engine, source: &str, input: Input<'_>) -> (String, bool) {
    let outcome = engine.eval(source, input);
    (outcome.report(source), !outcome.is_success())
}

/// Asks the model until it answers.
fn ask(
    engine: &Engine,
    input: &Input<'_>,
    conversation: &mut dyn Conversation,
    mut send: impl FnMut(&Value) -> Value,
) -> Result<String, Box<dyn Error>> {
    for _ in 0..MAX_ROUNDS {
        let body = send(&conversation.request());
        match conversation.receive(body)? {
            Response::Answer(text) => return Ok(text),
            Response::Program { call, source } => {
                let (text, is_error) = run(engine, &source, input.clone());
                println!("{source}\n=> {text}\n");
                conversation.reply(&call, &text, is_error);
            }
        }
    }
    Err(format!("no answer after {MAX_ROUNDS} requests").into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let refund = Tool::new("refund", |call| Ok(json!({ "receipt": format!("r{}", call.get::<i64>("order")?) })))
        .signature("(order :int, amount :float) -> {receipt :string}")
        .about("Refunds an amount of an order.");
    let engine = Engine::builder().grant(refund).check(Check::Refuse).build()?;
    let orders = json!([{ "id": 7, "total": 12.5, "status": "lost" }, { "id": 8, "total": 30.0, "status": "paid" }]);
    let input = Input::new().data("orders", &orders);
    let question = "Refund every order that was lost. data/orders has id, total and status.";
    let system = engine.prompt();

    let mut anthropic = anthropic::Messages::new("the-model", &system, question);
    let answer = ask(&engine, &input, &mut anthropic, script::anthropic())?;
    assert_eq!(answer, "Order 7 is refunded, receipt r7.");

    let mut openai = openai::Chat::new("the-model", &system, question);
    let answer = ask(&engine, &input, &mut openai, script::openai())?;
    assert_eq!(answer, "Order 7 is refunded, receipt r7.");
    println!("{answer}");
    Ok(())
}
