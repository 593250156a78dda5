//! What outlives the process of a service: runs, sessions and the store.

use crate::service::{self, Dir, Server, ToolServer, finished};
use crate::{SECOND, asks};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn sessions_outlive_the_service() {
    for isolation in ["process", "in-process"] {
        let dir = Dir::new(isolation);
        let store = dir.path("ptc.db");
        let options = ["--store", &store, "--isolation", isolation];
        let server = Server::start(&options);
        let (status, session) =
            server.post("/v1/sessions", &json!({ "data": {"rate": 2}, "setup": ["(def base 100)"] }));
        assert_eq!(status, 201, "{session}");
        let id = session["session_id"].as_str().unwrap();
        let turn = |server: &Server, id: &str, program: &str| {
            let (status, answer) = server.post(&format!("/v1/sessions/{id}/turns"), &json!({ "program": program }));
            assert_eq!(status, 200, "{answer}");
            answer["text"].as_str().unwrap_or(answer["error"]["reason"].as_str().unwrap_or_default()).to_owned()
        };
        assert_eq!(turn(&server, id, "(def x (+ base data/rate)) (defn twice [n] (* 2 n)) x"), "102");
        assert_eq!(turn(&server, id, "(def x 0) (fail :no)"), ":no");
        assert_eq!(turn(&server, id, "(def x 0) (/ 1 0)"), "arithmetic_error");
        assert_eq!(turn(&server, id, "(twice x)"), "204");
        drop(server);
        let server = Server::start(&options);
        assert_eq!(turn(&server, id, "(def y (+ *1 (twice x)))"), "#'y");
        let (status, forked) = server.post(&format!("/v1/sessions/{id}/fork"), &json!({}));
        let fork = forked["session_id"].as_str().unwrap();
        assert_eq!(status, 201);
        assert_eq!(turn(&server, fork, "(def x 5) y"), "408");
        assert_eq!(turn(&server, id, "x"), "102");
        let undo = |times: usize| {
            (0..times).map(|_| server.post(&format!("/v1/sessions/{id}/undo"), &json!({})).0).collect::<Vec<_>>()
        };
        assert_eq!(undo(2), [200, 200]);
        assert_eq!(turn(&server, id, "y"), "unbound_var");
        assert_eq!(undo(3), [200, 200, 409]);
        assert_eq!(server.send("DELETE", &format!("/v1/sessions/{id}"), &[], b"").0, 204);
        assert_eq!(server.send("GET", &format!("/v1/sessions/{id}"), &[], b"").0, 404);
    }
}

#[test]
fn it_ends_in_good_order() {
    let dir = Dir::new("drain");
    let store = dir.path("ptc.db");
    let config = dir.write("service.toml", "[service]\ndrain_seconds = 5\n");
    let options = ["--store", &store, "--config", &config];
    let mut server = Server::start(&options);
    let slow = json!({ "program": "(tool/wait {})", "tools": {"wait": {"returns": 7, "delay_ms": 700}} });
    let (_, state) = server.post("/v1/runs", &asks());
    let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    let (address, body) = (server.address.clone(), slow.to_string());
    let waits = std::thread::Builder::new()
        .spawn(move || service::request(&address, "POST", "/v1/run", &[], body.as_bytes()))
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.terminate();
    let (status, _, answer) = waits.join().unwrap();
    assert_eq!((status, &answer["value"]), (200, &json!(7)), "who waited has the answer");
    assert_eq!(server.exit_code(), Some(0));
    // The durable run waits on, in a file that is whole by itself.
    let copy = dir.path("copy.db");
    std::fs::copy(&store, &copy).unwrap();
    let server = Server::start(&["--store", &copy, "--config", &config]);
    let state = server.state_when(&run, |state| state["calls"].as_array().is_some_and(|calls| calls.len() == 3));
    assert_eq!(state["status"], "waiting");
}

/// The service is killed at random moments while clients answer calls. No run that it has acknowledged is lost, every answer
/// that it has acknowledged holds, and each run ends as it would have.
#[test]
fn a_killed_service_loses_nothing() {
    let kills: usize = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let dir = Dir::new("killed");
    let store = dir.path("ptc.db");
    let options = ["--store", &*store];
    let mut server = Server::start(&options);
    let program = "(println data/k) (reduce (fn [sum n] (+ sum (tool/ask {:n n}))) 0 (range 4))";
    let mut runs = Vec::new();
    let mut random = service::Random(7);
    let mut said = 0;
    for round in 0..kills {
        let until = Instant::now() + Duration::from_millis(20 + random.below(150));
        while Instant::now() < until {
            if runs.len() < 4 * (round + 1) {
                let request =
                    json!({ "program": program, "data": {"k": runs.len()}, "tools": {"ask": {"client": true}} });
                let (status, state) = server.post("/v1/runs", &request);
                assert_eq!(status, 202);
                runs.push(state["run_id"].as_str().unwrap().to_owned());
            }
            let run = &runs[usize::try_from(random.below(runs.len() as u64)).unwrap()];
            let (status, _, state) = server.send("GET", &format!("/v1/runs/{run}"), &[], b"");
            assert_eq!(status, 200, "a run that was acknowledged: {state}");
            let Some(call) = state["calls"][0]["call"].as_str() else { continue };
            let n = state["calls"][0]["arguments"]["n"].as_u64().unwrap();
            let (status, _) = server.post(&format!("/v1/runs/{run}/calls/{call}"), &json!({ "result": n + 1 }));
            assert!(status == 200 || status == 409, "{status}");
            said += u64::from(status == 200);
        }
        server.kill();
        server = Server::start(&options);
    }
    for (k, run) in runs.iter().enumerate() {
        let path = format!("/v1/runs/{run}");
        let state = loop {
            let state = server.state_when(&path, |state| state["calls"][0].is_object() || state["answer"].is_object());
            let Some(call) = state["calls"][0]["call"].as_str() else { break state };
            let n = state["calls"][0]["arguments"]["n"].as_u64().unwrap();
            said += u64::from(server.post(&format!("{path}/calls/{call}"), &json!({ "result": n + 1 })).0 == 200);
        };
        let answer = &state["answer"];
        assert_eq!((&answer["value"], &answer["prints"]), (&json!(10), &json!([k.to_string()])), "{state}");
    }
    assert_eq!(said, 4 * runs.len() as u64, "each call was answered once");
    println!("{kills} kills, {} runs, {said} answers", runs.len());
}

/// Calls of a tool that writes, under kills of the service, and of its templates: whoever is asked what came of a call that had begun looks it up by its key. In the
/// end each effect is there once.
#[test]
fn no_effect_comes_twice() {
    let kills: usize = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let tool = ToolServer::start();
    let dir = Dir::new("effects");
    let (store, config) = (dir.path("ptc.db"), dir.write("service.toml", &tool.config("allow")));
    let options = ["--store", &store, "--config", &config];
    let mut server = Server::start(&options);
    let program = "(reduce + (pmap (fn [n] (get (tool/pay {:k data/k :n n}) \"n\")) (range 3)))";
    let (mut runs, mut random, mut unknown) = (Vec::new(), service::Random(11), 0);
    for round in 0..kills {
        let until = Instant::now() + Duration::from_millis(20 + random.below(100));
        while Instant::now() < until {
            if runs.len() < 3 * (round + 1) {
                let limits = json!({ "timeout_ms": 60_000, "parallel_timeout_ms": 60_000 });
                let request = json!({ "program": program, "data": {"k": runs.len()}, "limits": limits });
                let (status, state) = server.post("/v1/runs", &request);
                assert_eq!(status, 202, "{state}");
                runs.push(state["run_id"].as_str().unwrap().to_owned());
            }
            std::thread::sleep(Duration::from_millis(3));
            if random.below(8) == 0 {
                server.kill_a_process(&mut random);
            }
        }
        server.kill();
        server = Server::start(&options);
    }
    for (k, run) in runs.iter().enumerate() {
        let path = format!("/v1/runs/{run}");
        let state = loop {
            let state = server.state_when(&path, |state| state["calls"][0].is_object() || state["answer"].is_object());
            let Some(call) = state["calls"][0]["call"].as_str() else { break state };
            unknown += 1;
            assert!(
                state["calls"][0]["question"].as_str().unwrap().contains("Look for the Idempotency-Key"),
                "{state}"
            );
            let reply = match tool.made(&format!("{run}/{call}")) {
                Some(made) => json!({ "result": {"n": made.n} }),
                None => json!({ "approve": true, "phase": state["calls"][0]["phase"] }),
            };
            let (status, answer) = server.post(&format!("{path}/calls/{call}"), &reply);
            assert_eq!(status, 200, "{answer}");
        };
        assert_eq!(state["answer"]["value"], 3, "{state}");
        for n in 0..3 {
            assert_eq!(tool.count(k as u64, n), 1, "the effect of run {k}, call {n}");
        }
    }
    println!("{kills} kills, {} runs, {} effects, {unknown} calls that nobody knew of", runs.len(), 3 * runs.len());
}

/// A store has one owner. Whoever comes second is told who has it, and does the first no harm; when the first dies, however it
/// dies, the store is free at once.
#[test]
fn a_store_has_one_owner_at_a_time() {
    let dir = Dir::new("taken");
    let store = dir.path("ptc.db");
    let mut first = Server::start(&["--store", &store]);
    let refused = |command: &[&str], wanted: &str| {
        let (code, said) = service::refused(service::ptcl().args(command));
        assert_eq!(code, Some(74), "{command:?}: {said}");
        assert!(said.contains(wanted), "{command:?}: {said}");
        said
    };
    let owner = format!("in use by process {}", first.id());
    let link = dir.path("link.db");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    for store in [&store, &link] {
        let said = refused(&["serve", "--listen", "127.0.0.1:0", "--store", store], &owner);
        assert!(said.contains(&*dir.path("ptc.db")), "it names the store: {said}");
        refused(&["mcp", "--listen", "127.0.0.1:0", "--store", store], &owner);
        refused(&["mcp", "--store", store], &owner);
        // Who cannot listen does not come to the store.
        refused(&["serve", "--listen", &first.address, "--store", store], "cannot listen");
        refused(&["mcp", "--listen", &first.address, "--store", store], "cannot listen");
    }
    for path in ["/readyz", "/healthz"] {
        assert_eq!(first.send("GET", path, &[], b"").0, 200, "{path}");
    }
    let (status, run) = first.post("/v1/runs", &json!({ "program": "(+ 1 2)" }));
    assert_eq!(status, 202, "{run}");
    first.kill();
    let second = Server::start(&["--store", &store]);
    let run = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(finished(&second, &run)["answer"]["value"], 3);
    // That of whoever asks; those before may be on their way out still.
    second.until(100 * SECOND, "the connections to end", || second.figure("ptc_connections") == 1);
}
