//! Calls of which nobody knows whether they were done: what is said of them, who settles them, and how a service that
//! shuts down makes none.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "each test uses a part")]
#[path = "../../server/tests/support/postgres.rs"]
mod postgres;
mod service;

use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished, ptcl, sha256_hex};
use std::time::Duration;

const PATIENT: Duration = Duration::from_secs(100);

fn submit(server: &Server, program: &str) -> String {
    let (status, state) = server.post("/v1/runs", &json!({ "program": program }));
    assert_eq!(status, 202, "{state}");
    format!("/v1/runs/{}", state["run_id"].as_str().unwrap())
}

/// A service on a file that has the tool.
fn serve(dir: &Dir, tool: &ToolServer, more: &str) -> Server {
    let config = dir.write("service.toml", &format!("{more}{}", tool.config("allow")));
    Server::of(
        ptcl()
            .args(["serve", "--listen", "127.0.0.1:0", "--store", &dir.path("ptc.db"), "--config", &config])
            .env("PTCL_LOG", "info"),
    )
}

/// On SIGTERM the call in progress ends, no other is made, and the run is handed back. A call that takes longer than
/// `drain_seconds` is cut off, and the log names its run.
#[test]
fn a_service_that_ends_makes_no_call() {
    let (tool, dir) = (ToolServer::start(), Dir::new("drain"));
    let mut first = serve(&dir, &tool, "");
    tool.hold(true);
    let run = submit(&first, "(mapv (fn [n] (tool/pay {:k 1 :n n})) (range 3))");
    first.until(PATIENT, "the call", || tool.count(1, 0) == 1);
    first.terminate();
    first.log_with("the service shuts down");
    tool.hold(false);
    assert_eq!(first.exit_code(), Some(0));
    let log = first.log_with("the service has shut down");
    assert!(log.contains("a run was claimed") && log.contains("a run is handed back"), "{log}");
    assert_eq!((tool.count(1, 0), tool.count(1, 1)), (1, 0));
    let second = serve(&dir, &tool, "");
    assert_eq!(finished(&second, &run)["answer"]["verdict"], "ok");
    assert_eq!([0, 1, 2].map(|n| tool.count(1, n)), [1, 1, 1]);
    drop(second);

    let mut short = serve(&dir, &tool, "[service]\ndrain_seconds = 0\n");
    tool.hold(true);
    let run = submit(&short, "(tool/pay {:k 2 :n 0})");
    short.until(PATIENT, "the call", || tool.count(2, 0) == 1);
    short.terminate();
    assert_eq!(short.exit_code(), Some(0));
    let log = short.log_with("the service has shut down");
    let id = run.trim_start_matches("/v1/runs/");
    let cut = log.lines().find(|line| line.contains("a run is cut off")).unwrap_or_else(|| panic!("{log}"));
    assert!(cut.contains(id) && cut.contains("pay") && cut.contains("WARN"), "{cut}");
    tool.hold(false);
    let last = serve(&dir, &tool, "");
    let state = last.state_when(&run, |state| state["calls"][0].is_object());
    assert_eq!(state["calls"][0]["phase"], "unknown1");
}

/// A worker that is told to end does the same, and another worker continues its run at once.
#[test]
fn a_worker_that_ends_hands_its_run_back() {
    let Some(database) = postgres::shared() else { return };
    let (tool, dir) = (ToolServer::start(), Dir::new("worker"));
    let config = dir.write("service.toml", &format!("[service]\nlease_seconds = 600\n{}", tool.config("allow")));
    let store = format!("postgres://{}@127.0.0.1:{}/{}", postgres::USER, database.port(), database.create_database());
    let start = |args: &[&str]| {
        let mut command = ptcl();
        command.args(args).args(["--listen", "127.0.0.1:0", "--store", &store, "--config", &config]);
        Server::of(command.env("PGPASSWORD", postgres::PASSWORD))
    };
    let (front, mut first) = (start(&["serve", "--no-worker"]), start(&["worker"]));
    tool.hold(true);
    let run = submit(&front, "(mapv (fn [n] (tool/pay {:k 1 :n n})) (range 3))");
    first.until(PATIENT, "the call", || tool.count(1, 0) == 1);
    first.terminate();
    // It does not take the next run either.
    first.until(PATIENT, "the shutdown", || std::net::TcpStream::connect(&first.address).is_err());
    tool.hold(false);
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!((tool.count(1, 0), tool.count(1, 1)), (1, 0));
    let _second = start(&["worker"]);
    assert_eq!(finished(&front, &run)["answer"]["verdict"], "ok");
    assert_eq!([0, 1, 2].map(|n| tool.count(1, n)), [1, 1, 1]);
}

/// With approvers, the client that submits runs does not settle their calls.
#[test]
fn an_approver_says_how_a_call_ended() {
    let (tool, dir) = (ToolServer::start(), Dir::new("settle"));
    let more = format!(
        "[[tenants]]\nname = \"shop\"\ntoken_sha256 = \"{}\"\napprover_token_sha256 = \"{}\"\n",
        sha256_hex("client"),
        sha256_hex("approver")
    );
    let say = |server: &Server, method: &str, path: &str, token: &str, body: Value| {
        let bearer = format!("Bearer {token}");
        let (status, _, answer) =
            server.send(method, path, &[("Authorization", &*bearer)], body.to_string().as_bytes());
        (status, answer)
    };
    let mut first = serve(&dir, &tool, &more);
    tool.hold(true);
    let (_, state) = say(&first, "POST", "/v1/runs", "client", json!({ "program": "(tool/pay {:k 1 :n 5})" }));
    let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    first.until(PATIENT, "the call", || tool.count(1, 5) == 1);
    first.kill();
    tool.hold(false);
    let server = serve(&dir, &tool, &more);
    let state = || say(&server, "GET", &run, "client", json!(null)).1;
    server.until(PATIENT, "the question", || state()["calls"][0].is_object());
    let call = &state()["calls"][0];
    assert!(call["question"].as_str().unwrap().ends_with("with the phase unknown1."), "{call}");
    let path = format!("{run}/calls/1");
    for (token, body, wanted, why) in [
        ("client", json!({ "result": { "n": 5 } }), 403, "an approver finds out"),
        ("client", json!({ "error": { "message": "no" } }), 403, "an approver's token"),
        ("client", json!({ "approve": true, "phase": "unknown1" }), 403, "an approver's token"),
        ("approver", json!({ "approve": true, "phase": "gat" }), 400, "gate, result, or unknown1"),
        ("approver", json!({ "approve": true, "phase": "unknown0" }), 400, "unknown phase"),
        ("approver", json!({ "approve": true, "phase": "gate" }), 409, "unknown1"),
        ("approver", json!({ "reject": true }), 400, "{\"reject\": \"too much\"}"),
        ("approver", json!({ "result": { "n": 5 }, "phase": "unknown1" }), 200, ""),
    ] {
        let (status, answer) = say(&server, "POST", &path, token, body.clone());
        assert_eq!(status, wanted, "{body}: {answer}");
        assert!(answer["detail"].as_str().unwrap_or_default().contains(why), "{body}: {answer}");
    }
    server.until(PATIENT, "the answer", || state()["answer"].is_object());
    assert_eq!(state()["answer"]["value"], json!({ "n": 5 }));
}

/// Returns the answer of a run whose time ends in a call. A run that waited for its store for a quarter of its time continues
/// instead, and asks about the call: then another has twice the time.
fn timed_out(server: &Server, path: &str) -> Value {
    for doublings in 0..8 {
        let limits = json!({ "timeout_ms": 300 << doublings });
        let (status, state) = server.post(path, &json!({ "program": "(tool/pay {:k 1 :n 1})", "limits": limits }));
        if status == 200 {
            return state;
        }
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        let state = server.state_when(&run, |state| state["calls"][0].is_object() || state["answer"].is_object());
        if state["answer"].is_object() {
            return state["answer"].clone();
        }
    }
    panic!("each run waited for its store");
}

/// The error of a run says that a call that writes may have been made. A call that waited for approval was not.
#[test]
fn an_error_says_what_may_have_been_done() {
    let (tool, dir) = (ToolServer::start(), Dir::new("error"));
    for isolation in ["process", "in-process"] {
        let server = serve(&dir, &tool, &format!("isolation = \"{isolation}\"\n"));
        tool.hold(true);
        for path in ["/v1/run", "/v1/runs"] {
            let answer = timed_out(&server, path);
            assert_eq!((&answer["verdict"], &answer["ledger"][0]["status"]), (&json!("timeout"), &json!("unknown")));
            let hint = answer["error"]["hint"].as_str().unwrap_or_default();
            assert!(
                hint.starts_with("tool/pay was in progress; it is unknown whether it was done"),
                "{isolation} {path}: {answer}"
            );
            assert_eq!(hint.matches("in progress").count(), 1, "{isolation} {path}: {hint}");
        }
        tool.hold(false);
    }
    let config = dir.write("asks.toml", &tool.config("ask"));
    let server = Server::start(&["--config", &config]);
    let run = submit(&server, "(tool/pay {:k 3 :n 1})");
    server.state_when(&run, |state| state["calls"][0].is_object());
    server.send("DELETE", &run, &[], b"");
    let answer = &finished(&server, &run)["answer"];
    let call = &answer["ledger"][0];
    assert_eq!((&answer["verdict"], &call["status"]), (&json!("cancelled"), &json!("error")), "{answer}");
    assert!(call["error"].as_str().unwrap().contains("not made"), "{answer}");
    assert!(!answer["error"].to_string().contains("in progress"), "{answer}");
    assert_eq!(tool.count(3, 1), 0);
}
