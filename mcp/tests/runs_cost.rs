//! What calls of the tool `runs` cost that wait for their turn: they keep no list, and read none once they are cancelled. Counts
//! what is allocated, so it is a binary of its own, with one test.

#[path = "../../server/tests/support/allocations.rs"]
mod allocations;
mod support;

use allocations::{allocated, in_use, peak};

use lisp_server::store::{Batch, End, MemoryStore, NewRun, Room, Store, StoredCall};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use support::Bench;

/// The runs of the list, the bytes of each one's open call, and the calls that ask for the list at once.
const RUNS: usize = 8;
const BYTES: usize = 400_000;
const CALLS: usize = 60;

/// Stores runs that wait for a call with large arguments.
async fn fill(store: &Arc<dyn Store>) {
    for run in 0..RUNS {
        let run_id = format!("01900000-0000-7000-8000-{run:012}");
        let tenant = "anonymous".to_owned();
        let request = format!("{{\"program\": \"(tool/ask data/x)\", \"data\": {{\"x\": \"{}\"}}}}", "x".repeat(BYTES));
        store.submit(NewRun { run_id, tenant: tenant.clone(), request }, None).await.unwrap();
        let room = Room { slots: 1, tenants: vec![(tenant, 1)] };
        let claim = store.claim("test", Duration::from_secs(60), &room).await.unwrap().remove(0);
        let opened = StoredCall {
            call: "1".to_owned(),
            phase: "result".to_owned(),
            number: 0,
            tool: "ask".to_owned(),
            arguments: format!("{{\"x\":\"{}\"}}", "y".repeat(BYTES)),
            question: None,
        };
        let batch = Batch { first_line: 1, first_event: 1, opened: vec![opened], ..Batch::default() };
        store.end(&claim.lease, batch, End::Suspended(0)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_keep_no_list_and_read_none_once_cancelled() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    fill(&store).await;
    let bench = Bench::with("", store).await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let listed = client.call("runs", json!({})).await;
    assert_eq!(listed["structuredContent"]["runs"].as_array().map(Vec::len), Some(RUNS), "{listed}");
    let (before, at_first) = (in_use(), allocated());
    let all = async {
        for _ in 0..CALLS {
            client.ask("tools/call", json!({ "name": "runs", "arguments": {} })).await;
        }
        for _ in 0..CALLS {
            let response = client.message().await;
            assert!(response["result"]["structuredContent"]["runs"].is_array(), "{response}");
        }
    };
    let peak = peak(before, all).await;
    println!("{CALLS} calls of runs, with a list of {} bytes, take {peak} bytes", RUNS * BYTES);
    // Two lists or programs are read at once.
    assert!(peak < CALLS * RUNS * BYTES / 4, "{peak}");
    let (before, of_all) = (allocated(), allocated() - at_first);
    for _ in 0..CALLS {
        let id = client.ask("tools/call", json!({ "name": "runs", "arguments": {} })).await;
        let cancelled = json!({ "requestId": id });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
    }
    let last = client.ask("tools/call", json!({ "name": "runs", "arguments": {} })).await;
    while client.message().await["id"] != last {}
    let of_cancelled = allocated() - before;
    println!("{CALLS} calls allocate {of_all} bytes, and {of_cancelled} if they are cancelled");
    assert!(of_cancelled < of_all / 3, "{of_cancelled} {of_all}");
}
