//! Answers the open calls of a durable run one after another, in every order, and kills the service or its processes in
//! between. Each answer is accepted once, and the open calls are always those without an answer.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Random, Server, ToolServer, finished};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Limits of runs that are waited for: their time does not depend on how busy the machine is.
fn patient() -> Value {
    json!({ "timeout_ms": 60_000, "parallel_timeout_ms": 60_000 })
}

const ORDERS: [[u64; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// The process that is killed between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Nobody,
    Process,
    Service,
}

/// A run that waits for three calls at once.
struct Waiting {
    run: String,
    /// The names of the calls, by the argument `n`.
    calls: Vec<String>,
}

fn names(state: &Value) -> BTreeSet<String> {
    state["calls"].as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap().to_owned()).collect()
}

impl Waiting {
    fn of(server: &Server, run_id: &str) -> Waiting {
        let run = format!("/v1/runs/{run_id}");
        let state = server.state_when(&run, |state| names(state).len() == 3);
        let call = |n: u64| {
            let calls = state["calls"].as_array().unwrap();
            let call = calls.iter().find(|call| call["arguments"]["n"] == n).unwrap();
            call["call"].as_str().unwrap().to_owned()
        };
        Waiting { calls: (0..3).map(call).collect(), run }
    }

    /// Sends a reply, whatever the service is doing at that moment.
    fn answer(&self, server: &Server, n: u64, reply: &Value) -> u16 {
        let call = &self.calls[usize::try_from(n).unwrap()];
        server.post(&format!("{}/calls/{call}", self.run), reply).0
    }
}

/// The replies so far. A call is certainly open until a reply to it is sent, and certainly closed once the reply is
/// acknowledged.
#[derive(Default)]
struct Said {
    begun: Mutex<BTreeSet<String>>,
    taken: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

impl Said {
    fn copy(of: &Mutex<BTreeSet<String>>) -> BTreeSet<String> {
        of.lock().unwrap().clone()
    }

    /// Checks once that the open calls are those without an answer.
    fn look(&self, server: &Server, waiting: &Waiting) {
        let taken = Said::copy(&self.taken);
        let state = server.send("GET", &waiting.run, &[], b"").2;
        let begun = Said::copy(&self.begun);
        let (open, all) = (names(&state), waiting.calls.iter().cloned().collect::<BTreeSet<_>>());
        let (max, least) = (&all - &taken, &all - &begun);
        assert!(open.is_subset(&max) && open.is_superset(&least), "of {all:?}, {taken:?} are answered: {state}");
        assert!(open.is_empty() || state["status"] == "waiting", "{state}");
    }
}

/// Answers all three calls in this order.
fn answer_all(
    server: &mut Server,
    start: &dyn Fn() -> Server,
    waiting: &Waiting,
    order: [u64; 3],
    reply: &dyn Fn(u64) -> Value,
    killed: Killed,
) {
    let said = Said::default();
    let mut random = Random(order[0] * 3 + order[1] + 1);
    for n in order {
        match killed {
            Killed::Nobody => {}
            Killed::Process => server.kill_a_process(&mut random),
            Killed::Service => {
                server.kill();
                *server = start();
            }
        }
        said.look(server, waiting);
        let here: &Server = server;
        said.is_over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let look = || {
                while !said.is_over.load(Ordering::Relaxed) {
                    said.look(here, waiting);
                }
            };
            let looks = std::thread::Builder::new().spawn_scoped(scope, look).unwrap();
            let call = waiting.calls[usize::try_from(n).unwrap()].clone();
            said.begun.lock().unwrap().insert(call.clone());
            let context = format!("{killed:?} killed, {order:?}, call {n}");
            assert_eq!(waiting.answer(here, n, &reply(n)), 200, "{context}");
            said.taken.lock().unwrap().insert(call);
            assert_eq!(waiting.answer(here, n, &reply(n)), 409, "{context}");
            assert_eq!(here.post(&format!("{}/calls/99", waiting.run), &reply(n)).0, 404, "{context}");
            said.is_over.store(true, Ordering::Relaxed);
            looks.join().unwrap();
        });
    }
    let state = finished(server, &waiting.run);
    assert_eq!(state["answer"]["value"], 321, "{killed:?} killed, {order:?}: {state}");
    for n in order {
        assert_eq!(waiting.answer(server, n, &reply(n)), 409, "already answered: {state}");
    }
}

const KILLED: [Killed; 3] = [Killed::Nobody, Killed::Process, Killed::Service];

fn value_of(n: u64) -> u64 {
    [1, 20, 300][usize::try_from(n).unwrap()]
}

#[test]
fn results_of_the_client_are_taken_in_any_order() {
    for isolation in ["process", "in-process"] {
        let dir = Dir::new(isolation);
        let store = dir.path("ptc.db");
        let start = || Server::start(&["--store", &store, "--isolation", isolation]);
        let mut server = start();
        let request = json!({
            "program": "(reduce + (pmap (fn [n] (tool/ask {:n n})) (range 3)))",
            "tools": {"ask": {"client": true, "signature": "(n :int) -> :int"}},
            "limits": patient(),
        });
        for killed in KILLED {
            for order in ORDERS {
                let run_id = server.post("/v1/runs", &request).1["run_id"].as_str().unwrap().to_owned();
                let waiting = Waiting::of(&server, &run_id);
                answer_all(&mut server, &start, &waiting, order, &|n| json!({ "result": value_of(n) }), killed);
            }
        }
    }
}

/// A client that waits for a run sees all the calls that its workers make at about the same time.
#[test]
fn those_who_wait_see_all_open_calls() {
    for isolation in ["process", "in-process"] {
        let server = Server::start(&["--isolation", isolation]);
        let request = json!({
            "program": "(reduce + (pmap (fn [n] (tool/ask {:n n})) (range 4)))",
            "tools": {"ask": {"client": true}},
            "limits": patient(),
        });
        for _ in 0..10 {
            let (status, state) = server.post("/v1/run", &request);
            assert_eq!((status, names(&state).len()), (202, 4), "{isolation}: {state}");
        }
    }
}

/// A program that calls the tool `pay` three times and adds a different number for each call.
const PAYS: &str = "(reduce + (pmap (fn [n] (nth [1 20 300] (get (tool/pay {:k data/k :n n}) \"n\"))) (range 3)))";

#[test]
fn approvals_are_taken_in_any_order() {
    let tool = ToolServer::start();
    for isolation in ["process", "in-process"] {
        let dir = Dir::new(isolation);
        let (store, config) = (dir.path("ptc.db"), dir.write("service.toml", &tool.config("ask")));
        let start = || Server::start(&["--store", &store, "--isolation", isolation, "--config", &config]);
        let mut server = start();
        for killed in KILLED {
            for order in ORDERS {
                let request = json!({ "program": PAYS, "data": {"k": 0}, "limits": patient() });
                let run_id = server.post("/v1/runs", &request).1["run_id"].as_str().unwrap().to_owned();
                let waiting = Waiting::of(&server, &run_id);
                // A call that was in progress when its process died is asked about again. Another test covers that.
                let killed = if killed == Killed::Process { Killed::Nobody } else { killed };
                let reply = |_| json!({ "approve": true });
                answer_approvals(&mut server, &start, &waiting, order, &reply, killed);
            }
        }
    }
}

/// Like [`answer_all`], for calls that are made when they are approved.
fn answer_approvals(
    server: &mut Server,
    start: &dyn Fn() -> Server,
    waiting: &Waiting,
    order: [u64; 3],
    reply: &dyn Fn(u64) -> Value,
    killed: Killed,
) {
    for n in order {
        if killed == Killed::Service {
            server.kill();
            *server = start();
        }
        assert_eq!(waiting.answer(server, n, &reply(n)), 200, "{killed:?} killed, {order:?}, call {n}");
        assert_eq!(waiting.answer(server, n, &reply(n)), 409, "{killed:?} killed, {order:?}, call {n}");
    }
    // A service that was killed during a call asks for its result.
    let state = loop {
        let state =
            server.state_when(&waiting.run, |state| state["calls"][0].is_object() || state["answer"].is_object());
        let Some(call) = state["calls"][0]["call"].as_str() else { break state };
        let n = state["calls"][0]["arguments"]["n"].clone();
        let made = server.post(&format!("{}/calls/{call}", waiting.run), &json!({ "result": {"n": n} }));
        assert_eq!(made.0, 200, "{}", made.1);
    };
    assert_eq!(state["answer"]["value"], 321, "{killed:?} killed, {order:?}: {state}");
}

#[test]
fn what_came_of_unknown_calls_is_taken_in_any_order() {
    // Accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let config = ToolServer::config_of(port, "allow");
    for isolation in ["process", "in-process"] {
        let dir = Dir::new(isolation);
        let (store, config) = (dir.path("ptc.db"), dir.write("service.toml", &config));
        let start = || Server::start(&["--store", &store, "--isolation", isolation, "--config", &config]);
        let mut server = start();
        for killed in [Killed::Nobody, Killed::Service] {
            for order in ORDERS {
                let request = json!({ "program": PAYS, "data": {"k": 0} });
                let run_id = server.post("/v1/runs", &request).1["run_id"].as_str().unwrap().to_owned();
                // The service dies while all three calls are in progress.
                let held: Vec<_> = (0..3).map(|_| silent.accept().unwrap()).collect();
                server.kill();
                server = start();
                drop(held);
                let waiting = Waiting::of(&server, &run_id);
                let reply = |n| json!({ "result": {"n": n} });
                answer_all(&mut server, &start, &waiting, order, &reply, killed);
            }
        }
    }
}
