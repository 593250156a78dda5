//! Durable runs of a service that shuts down: no call is made from then on, and those in progress end.

#[path = "support/life.rs"]
mod life;
#[allow(dead_code, reason = "each test uses a part")]
#[path = "support/postgres.rs"]
mod postgres;
#[path = "support/tool.rs"]
mod tool;

use life::{Life, stores, until};
use lisp_runtime::Request;
use lisp_server::runs::{Done, Refused};
use lisp_server::store::{RunStatus, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tool::ToolServer;

/// Does something with each kind of store.
fn on_each_store(name: &str, test: impl Fn(&Arc<dyn Store>)) {
    stores(name).iter().for_each(&test);
    if let Some(server) = postgres::shared() {
        let address = server.address(&server.create_database());
        // Connections belong to a runtime, and this one outlives those of the services.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store = runtime.block_on(lisp_server::store::PostgresStore::open(&address)).unwrap();
        test(&(Arc::new(store) as Arc<dyn Store>));
    }
}

/// A program makes one call after the other, or several at once. The calls in progress end, the run is handed back, and
/// the next service makes the other calls. No call is asked about.
#[test]
fn no_call_is_made_after_the_shutdown_starts() {
    let programs = [
        ("(reduce + (mapv (fn [n] (tool/pay {:n n})) (range 4)))", "", 1, 10),
        // Calls that wait for a slot of their tool have started, and are not sent.
        ("(reduce + (pmap (fn [n] (tool/pay {:n n})) (range 4)))", "concurrency = 1", 1, 10),
        ("(reduce + (pmap (fn [n] (+ (tool/pay {:n n}) (tool/pay {:n n}))) (range 2)))", "", 2, 10),
    ];
    on_each_store("drained", |store| {
        for (program, more, before, value) in programs {
            let server = ToolServer::start();
            let config = server.config("pay", &format!("effect = \"write\"\n{more}")) + &server.network();
            server.hold(true);
            let first = Life::open(store, &config);
            let run_id = first.submit(&json!({ "program": program }));
            until("the calls", || server.count("pay") == before);
            first.service.drain();
            server.hold(false);
            first.stop();
            assert_eq!(server.count("pay"), before, "{program}");
            let run = block_on(store.run(&run_id)).unwrap().unwrap();
            assert_eq!((run.summary.status, run.summary.calls), (RunStatus::Queued, vec![]), "{program}");
            let second = Life::open(store, &config);
            assert_eq!(second.done(&run_id)["value"], value, "{program}");
            assert_eq!(server.count("pay"), 4, "{program}");
            second.stop();
        }
    });
}

/// Runs that take longer than `drain_seconds`: whoever waits for one that is not durable is told that it was cut off, and whoever
/// waits for a durable one gets its state.
#[test]
fn who_waits_for_a_run_that_is_cut_off_is_told_so() {
    let store = stores("cut").iter().next().cloned().unwrap();
    let server = ToolServer::start();
    let config = server.config("pay", "effect = \"read\"") + &server.network() + "[service]\ndrain_seconds = 1\n";
    server.hold(true);
    let life = Life::open(&store, &config);
    let tenant = life.service.tenant("anonymous").unwrap();
    let request = Request::parse("{\"program\": \"(tool/pay {:n 1})\"}").unwrap();
    let (refused, waits, ()) = life.block_on(async {
        let run = life.service.run(&tenant, &request, "run");
        let durable = life.service.submit_and_wait(&tenant, "{\"program\": \"(tool/pay {:n 2})\"}", None);
        let drained = async {
            while server.count("pay") < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            life.service.drain();
        };
        tokio::join!(run, durable, drained)
    });
    assert!(matches!(refused, Err(Refused::CutOff)), "{refused:?}");
    assert!(matches!(waits, Ok(Done::Waiting(_))), "{waits:?}");
    server.hold(false);
    life.stop();
}

/// Calls of scripted tools have no effect: they are not waited for.
#[test]
fn a_run_of_scripted_calls_stops_at_once() {
    for store in stores("scripted").iter() {
        let first = Life::open(store, "");
        let program = "(mapv (fn [n] (tool/slow {:n n})) (range 1000))";
        let tools = json!({ "slow": { "returns": 1, "delay_ms": 50 } });
        let run_id = first.submit(&json!({ "program": program, "tools": tools }));
        until("the run", || first.service.active_count() == 1);
        first.stop();
        assert_eq!(block_on(store.run(&run_id)).unwrap().unwrap().summary.status, RunStatus::Queued);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// Requests that wait for a slot when `drain_seconds` are over have not begun: they are refused, and may be sent again.
#[test]
fn what_waits_for_a_slot_until_the_end_of_the_drain_is_refused() {
    let store = stores("waits").iter().next().cloned().unwrap();
    let server = ToolServer::start();
    let tenant = format!("[[tenants]]\nname = \"one\"\ntoken_sha256 = \"{}\"\nconcurrency = 1\n", "a".repeat(64));
    let service = "[service]\ndrain_seconds = 0\nqueue_seconds = 3600\n";
    let config = server.config("pay", "effect = \"read\"") + &server.network() + service + &tenant;
    server.hold(true);
    let life = Life::open(&store, &config);
    let tenant = life.service.tenant("one").unwrap();
    let session = life.block_on(life.service.open_session(&tenant, "{}".to_owned())).unwrap().session_id;
    // Its call is in progress until the end, and so is its slot.
    life.submit(&json!({ "program": "(tool/pay {:n 1})" }));
    until("the call", || server.count("pay") == 1);
    let request = Request::parse("{\"program\": \"1\"}").unwrap();
    let asked = serde_json::from_str("{\"tools\": {\"t\": {\"returns\": 1}}}").unwrap();
    let turn = serde_json::from_str("{\"program\": \"1\"}").unwrap();
    let refused = life.block_on(async {
        let service = &life.service;
        let (run, check, prompt, opened, turn, ()) = tokio::join!(
            service.run(&tenant, &request, "run"),
            service.check(&tenant, &request),
            service.prompt_with(&tenant, asked),
            service.open_session(&tenant, "{}".to_owned()),
            service.turn(&tenant, &session, turn),
            async { service.drain() },
        );
        [run.err(), check.err(), prompt.err(), opened.err(), turn.err()]
    });
    for (n, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Some(Refused::Draining)), "{n}: {refused:?}");
    }
    server.hold(false);
    life.stop();
}
