//! A host: an engine with two tools and limits of its own runs a program that a model wrote.
//!
//! `cargo run -p ptc-lisp-runtime --example host`

use lisp_runtime::observe::{CallEnded, RunEnded};
use lisp_runtime::{Engine, Input, Limits, Observer, Tool, ToolError};
use std::error::Error;

const PROGRAM: &str = "
(let [total (sum (map #(* (:count %) (tool/price {:sku (:sku %)})) data/items))]
  (println \"total:\" total)
  (:id (tool/order {:total total})))";

/// Writes a log line for each call and each run.
struct Log;

impl Observer for Log {
    fn call_ended(&self, call: &CallEnded<'_>) {
        eprintln!("{}: tool/{} {} after {:?}", call.run_id, call.name, call.status.name(), call.duration);
    }

    fn run_ended(&self, run: &RunEnded<'_>) {
        eprintln!("{}: {}, {} fuel, {} calls", run.run_id, run.verdict, run.usage.fuel, run.usage.tool_calls);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let price = Tool::new("price", |call| match call.get::<String>("sku")?.as_str() {
        "KB-01" => Ok(49.5),
        "MS-02" => Ok(19.0),
        sku => Err(ToolError::new(format!("there is no {sku}"))),
    });
    let price = price.signature("(sku :string) -> :float").cached();
    let order = Tool::new("order", |call| Ok(serde_json::json!({ "id": 7, "total": call.get::<f64>("total")? })));
    let limits = Limits::default().with_timeout_ms(200).with_heap_bytes(2_000_000).with_tool_calls(20);
    let engine = Engine::builder().limits(limits).grant(price).grant(order).observer(Log).build()?;

    let program = engine.compile(PROGRAM)?;
    let items = r#"[{"sku": "KB-01", "count": 2}, {"sku": "MS-02", "count": 1}, {"sku": "KB-01", "count": 1}]"#;
    let outcome = engine.run(&program, Input::new().json("items", items));
    println!("{} {:?} {:?}", outcome.verdict(), outcome.text(), outcome.prints);
    assert_eq!(outcome.value::<i64>()?, 7);
    assert_eq!((outcome.prints.as_slice(), outcome.ledger.len()), (["total: 167.5".to_owned()].as_slice(), 4));

    // What goes wrong is an outcome too: with a reason, a place and a next step.
    let outcome = engine.run(&program, Input::new().json("items", r#"[{"sku": "XX", "count": 1}]"#));
    let problem = outcome.problem().ok_or("it has no such item")?;
    println!("{} {problem}", problem.reason().name());
    assert_eq!((problem.reason().name(), problem.position.map(|at| at.line)), ("tool_error", Some(2)));
    Ok(())
}
