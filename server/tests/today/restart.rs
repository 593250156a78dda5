//! Runs that wait when the service starts again, and lists of them.

use crate::life::{Life, stores, until};
use crate::tool::ToolServer;
use lisp_server::runs::ListQuery;
use lisp_server::store::RunStatus;
use serde_json::{Value, json};

const RUNS: usize = 200;

/// A restart leaves suspended runs as they are, and a reply continues one.
#[test]
fn a_restart_replays_no_suspended_run() {
    for store in stores("restart").iter() {
        let first = Life::open(store, "");
        let body = json!({ "program": "(do (println 1) (+ 1 (tool/ask {})))", "tools": {"ask": {"client": true}} });
        let runs: Vec<String> = (0..RUNS).map(|_| first.submit(&body)).collect();
        until("all suspended", || {
            first.figure("ptc_runs_suspended_total") == RUNS as u64 && first.figure("ptc_durable_runs") == 0
        });
        first.stop();
        let second = Life::open(store, "");
        let states = || -> Vec<Value> {
            runs.iter().map(|run_id| serde_json::to_value(second.state(run_id)).unwrap()).collect()
        };
        let before = states();
        assert!(before.iter().all(|state| state["status"] == "waiting"), "{before:?}");
        // The worker is at work.
        assert_eq!(second.done(&second.submit(&json!({ "program": "5" })))["value"], 5);
        assert_eq!((second.figure("ptc_runs_resumed_total"), states()), (0, before.clone()));
        second.reply(&runs[70], "1", json!({ "result": 1 }));
        assert_eq!(second.done(&runs[70])["value"], 2);
        let mut after = states();
        assert_eq!((second.figure("ptc_runs_resumed_total"), &after[70]["status"]), (1, &json!("done")));
        after[70] = before[70].clone();
        assert_eq!(after, before);
        second.stop();
    }
}

/// A run that waits for an answer is found as such while another of its calls is under way.
#[test]
fn a_run_with_a_call_under_way_is_listed_as_waiting() {
    for store in stores("listed").iter() {
        let server = ToolServer::start();
        server.hold(true);
        let life = Life::open(store, &(server.config("pay", "") + &server.network()));
        let program = "(pcalls #(tool/ask {}) #(tool/pay {}))";
        let run_id = life.submit(&json!({ "program": program, "tools": {"ask": {"client": true}} }));
        until("the call", || server.count("pay") == 1);
        life.asked(&run_id);
        let query = ListQuery { status: Some(RunStatus::Waiting), max: 10, ..ListQuery::default() };
        let list = life.block_on(life.service.runs("anonymous", query)).unwrap();
        let found: Vec<&str> = list.runs.iter().map(|run| run.run_id.as_str()).collect();
        assert_eq!((found, life.figure("ptc_durable_runs")), (vec![&*run_id], 1));
        server.hold(false);
        life.reply(&run_id, "1:0/1", json!({ "result": 5 }));
        assert_eq!(life.done(&run_id)["value"], json!([5, 1]));
        life.stop();
    }
}
