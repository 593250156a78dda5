//! An async host: many runs wait for many tools on one thread. Any executor will do; this one is tokio's.
//!
//! `cargo run -p ptc-lisp-runtime --features async --example host_async`

use lisp_runtime::{Engine, Input, Limits, Tool, ToolCall, Verdict};
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const PROGRAM: &str = "
(let [orders (pmap #(tool/order {:id %}) data/ids)]
  (sum-by :total orders))";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The arguments are the call's own: its future outlives this closure.
    let order = Tool::new_async("order", |call: ToolCall| async move {
        sleep(Duration::from_millis(100)).await;
        let id = call.get::<i64>("id")?;
        Ok(serde_json::json!({ "id": id, "total": 10 * id }))
    });
    let order = order.signature("(id :int) -> {id :int, total :int}");
    // How many calls of a `pmap` wait at once is up to these two limits.
    let limits = Limits::default().with_parallel_window(16).with_parallel_workers(16);
    let engine = Engine::builder().limits(limits).grant(order).build()?;
    let program = engine.compile(PROGRAM)?;

    let begun = Instant::now();
    let runs = (0..100).map(|_| tokio::spawn(engine.run_async(&program, Input::new().data("ids", &[1, 2, 3, 4]))));
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await?.value::<i64>()?, 100);
    }
    println!("100 runs, 400 calls of 100 ms: {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(5));

    // A run ends when nobody waits for it any more; its calls are dropped where they stand.
    let run = engine.run_async(&program, Input::new().data("ids", &[1, 2]).run_id("left"));
    assert_eq!(run.run_id(), "left");
    assert!(timeout(Duration::from_millis(20), run).await.is_err());

    // Its own deadline holds while its tools wait.
    let mut hurried = Input::new().data("ids", &[1, 2]);
    hurried = hurried.limits(serde_json::from_str(r#"{"timeout_ms": 50}"#)?);
    let outcome = engine.run_async(&program, hurried).await;
    println!("{} after {} us", outcome.verdict(), outcome.usage.duration_us);
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    Ok(())
}
