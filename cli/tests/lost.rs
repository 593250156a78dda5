//! Durable runs whose process is lost while the service makes a call that writes. The service hears how the call ends, so
//! nobody is asked, and the write is made once.

#![cfg(target_os = "linux")]

mod service;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(100);

/// The process that is killed.
#[derive(Clone, Copy, Debug)]
enum Killed {
    /// The processes that templates have forked.
    Programs,
    /// The templates, and what they have forked with them.
    Templates,
}

fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    children.iter().flat_map(|line| line.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
}

/// Kills processes of the service, and returns once they are gone.
fn kill(server: &Server, killed: Killed) {
    let templates = children_of(server.id().try_into().unwrap());
    let victims: Vec<i32> = match killed {
        Killed::Programs => templates.into_iter().flat_map(children_of).collect(),
        Killed::Templates => templates,
    };
    assert!(!victims.is_empty());
    for pid in &victims {
        kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
    }
    server.until(LONG, "their end", || {
        victims.iter().all(|pid| match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        })
    });
}

fn start(tool: &ToolServer, dir: &Dir) -> Server {
    let tool = tool.config("allow").replace("policy", "timeout_ms = 60000\npolicy");
    let config = format!("isolation = \"process\"\n{tool}[limits]\ntimeout_ms = 60000\n");
    Server::start(&["--config", &dir.write("service.toml", &config), "--store", &dir.path("ptc.db")])
}

fn submit(server: &Server, body: &Value) -> String {
    let (status, state) = server.post("/v1/runs", body);
    assert_eq!(status, 202, "{state}");
    format!("/v1/runs/{}", state["run_id"].as_str().unwrap())
}

fn phases(state: &Value) -> Vec<(String, bool)> {
    let calls = state["calls"].as_array().unwrap().iter();
    calls.map(|call| (call["name"].as_str().unwrap().to_owned(), call["question"].is_string())).collect()
}

/// The next attempt would ask within 100 ms.
fn asks_nobody(server: &Server, run: &str) {
    for _ in 0..100 {
        let state = server.send("GET", run, &[], b"").2;
        assert!(!phases(&state).iter().any(|(name, _)| name == "pay"), "{state}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_the_service_hears_is_not_asked_about() {
    let (tool, dir) = (ToolServer::start(), Dir::new("lost"));
    let server = start(&tool, &dir);
    let one = "(:n (tool/pay {:k data/k :n 1}))";
    let three = "(mapv :n (pmap (fn [n] (tool/pay {:k data/k :n n})) [1 2 3]))";
    let caught = "(do (println 1) (try (:n (tool/pay {:k data/k :n 1})) (catch Exception e 2)))";
    let mut k = 0;
    for killed in [Killed::Programs, Killed::Templates] {
        for (program, writes, value) in [(one, 1, json!(1)), (three, 3, json!([1, 2, 3])), (caught, 1, json!(1))] {
            k += 1;
            tool.hold(true);
            let run = submit(&server, &json!({ "program": program, "data": {"k": k} }));
            server.until(LONG, "the writes", || (1..=writes).all(|n| tool.count(k, n) == 1));
            kill(&server, killed);
            asks_nobody(&server, &run);
            tool.hold(false);
            let state = finished(&server, &run);
            assert_eq!(state["answer"]["value"], value, "{killed:?} {program}: {state}");
            assert!((1..=writes).all(|n| tool.count(k, n) == 1), "{killed:?} {program}");
        }
    }
}

/// A call that its client answers is not awaited: it stays open, and the rest of the run continues without the answer.
#[test]
fn an_open_call_beside_a_write_stays_open() {
    let (tool, dir) = (ToolServer::start(), Dir::new("beside"));
    let server = start(&tool, &dir);
    let program = "(pcalls #(:n (tool/pay {:k 1 :n 1})) #(tool/ask {:q 1}) #(do (tool/pay {:k 1 :n 2}) (:n (tool/pay {:k 1 :n 3}))))";
    tool.hold(true);
    let run = submit(&server, &json!({ "program": program, "tools": {"ask": {"client": true}} }));
    server.until(LONG, "the writes", || tool.count(1, 1) == 1 && tool.count(1, 2) == 1);
    server.state_when(&run, |state| phases(state) == [("ask".to_owned(), false)]);
    kill(&server, Killed::Programs);
    asks_nobody(&server, &run);
    tool.hold(false);
    server.until(LONG, "the third write", || tool.count(1, 3) == 1);
    let state = server.state_when(&run, |state| state["status"] == "waiting");
    assert_eq!(phases(&state), [("ask".to_owned(), false)]);
    let call = state["calls"][0]["call"].as_str().unwrap();
    assert_eq!(server.post(&format!("{run}/calls/{call}"), &json!({ "result": 7 })).0, 200);
    assert_eq!(finished(&server, &run)["answer"]["value"], json!([1, 7, 3]));
    assert_eq!([1, 2, 3].map(|n| tool.count(1, n)), [1, 1, 1]);
}

/// A call that does not end within the time of the run is asked about, as before.
#[test]
fn a_write_is_awaited_within_the_time_of_the_run() {
    let (tool, dir) = (ToolServer::start(), Dir::new("late"));
    let server = start(&tool, &dir);
    tool.hold(true);
    let body = json!({ "program": "(:n (tool/pay {:k 1 :n 1}))", "limits": {"timeout_ms": 2_000} });
    let run = submit(&server, &body);
    server.until(LONG, "the write", || tool.count(1, 1) == 1);
    kill(&server, Killed::Programs);
    let state = server.state_when(&run, |state| phases(state) == [("pay".to_owned(), true)]);
    let call = state["calls"][0]["call"].as_str().unwrap();
    assert_eq!(server.post(&format!("{run}/calls/{call}"), &json!({ "result": {"n": 5} })).0, 200);
    assert_eq!(finished(&server, &run)["answer"]["value"], 5);
    assert_eq!(tool.count(1, 1), 1);
    tool.hold(false);
}
