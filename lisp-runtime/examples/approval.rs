//! A run that stops for an approval, outlives its process, and goes on in another one.
//!
//! `cargo run -p ptc-lisp-runtime --example approval` starts the run, writes its record, and ends; then it starts itself again, as
//! somebody would who has approved the payment a day later.

use lisp_runtime::{Engine, Input, Progress, Record, Recording, Tool};
use std::error::Error;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "
(let [order (tool/find {:id 7})
      paid  (tool/pay {:customer (:customer order) :amount (* 1.2 (:net order))})]
  (str \"paid as \" (:receipt paid)))";

fn engine() -> Result<Engine, Box<dyn Error>> {
    let find = Tool::external("find").signature("(id :int) -> {customer :string, net :float}");
    let pay = Tool::external("pay").signature("(customer :string, amount :float) -> {receipt :string}");
    Ok(Engine::builder().grant(find).grant(pay).build()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(file) => approved(Path::new(&file)),
        None => {
            let file = std::env::temp_dir().join(format!("approval-{}.ptc", std::process::id()));
            start(&file)?;
            let other = Command::new(std::env::current_exe()?).arg(&file).status()?;
            std::fs::remove_file(&file)?;
            if other.success() { Ok(()) } else { Err("the other process failed".into()) }
        }
    }
}

/// Runs the program up to the payment, and writes the record.
fn start(file: &Path) -> Result<(), Box<dyn Error>> {
    let (engine, recording) = (engine()?, Recording::new());
    let program = engine.compile(PROGRAM)?;
    let mut progress = engine.start(&program, Input::new().record(&recording));
    loop {
        progress = match progress {
            Progress::ToolCall(waiting) if waiting.call().name() == "find" => {
                waiting.reply(&serde_json::json!({"customer": "ann", "net": 100.0}))
            }
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                println!("to approve: {} {}", waiting.call().name(), waiting.call().json());
                return Ok(std::fs::write(file, recording.text())?);
            }
            Progress::Done(outcome) => return Err(format!("it ended: {:?}", outcome.problem()).into()),
        };
    }
}

/// Reads the record, makes the payment, and goes on.
fn approved(file: &Path) -> Result<(), Box<dyn Error>> {
    let record = Record::parse(std::fs::read_to_string(file)?)?;
    let Progress::ToolCall(waiting) = engine()?.resume(&record)? else { return Err("nothing waits".into()) };
    // The key is the same however often the run goes on from this record: who pays twice with it pays once.
    let key = waiting.call().key().unwrap_or_default().to_owned();
    let Progress::Done(outcome) = waiting.reply(&serde_json::json!({ "receipt": key })) else {
        return Err("it stops again".into());
    };
    println!("{}", outcome.value::<String>()?);
    Ok(())
}
