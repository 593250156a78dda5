//! Requests of every kind to `ptcl serve`, again and again, well and badly ended: whatever a request takes is given back. Figures
//! of the service count it, and the kernel its descriptors. `SOAK` says how many of each kind.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, finished};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Far longer than anything takes to end.
const LONG: Duration = Duration::from_secs(60);
/// What is printed is kept as events for as long as somebody may read them: 400 kB a run.
const PRINTS: &str = "(doseq [n (range 200)] (println (apply str (repeat 100 \"0123456789abcdefghij\")))) :done";
/// What all runs of one kind would leave behind is far more.
const MORE_MEMORY_KB: u64 = 48 << 10;

/// What requests hold until they are over.
const HELD: [&str; 6] = [
    "ptc_runs_in_progress",
    "ptc_runs_queued",
    "ptc_slots_taken",
    "ptc_durable_runs",
    "ptc_session_turns",
    "ptc_event_logs",
];

fn head(method: &str, path: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn post(path: &str, body: &Value) -> String {
    head("POST", path, &body.to_string())
}

/// When a client leaves.
#[derive(Clone, Copy)]
enum Leaves {
    /// It says so many bytes less than it should.
    Saying(usize),
    /// It waits for nothing.
    AtOnce,
    /// It has read something.
    Reading,
}

/// Sends a request, and leaves.
fn leave(server: &Server, request: &str, when: Leaves) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let said = match when {
        Leaves::Saying(less) => request.len() - less,
        _ => request.len(),
    };
    stream.write_all(&request.as_bytes()[..said]).unwrap();
    if matches!(when, Leaves::Reading) {
        stream.read_exact(&mut [0; 60]).unwrap();
    }
}

fn wait_tool(ms: u64) -> Value {
    json!({ "program": "(tool/wait {})", "tools": {"wait": {"returns": 1, "delay_ms": ms}} })
}

fn asks() -> Value {
    // On a busy machine the process alone takes more than the default time.
    json!({ "program": "(println 1) (inc (tool/ask {}))", "tools": {"ask": {"client": true}},
            "limits": {"timeout_ms": 60_000} })
}

fn prints() -> Value {
    json!({ "program": PRINTS })
}

fn submit(server: &Server, request: &Value) -> String {
    let (status, state) = server.post("/v1/runs", request);
    assert_eq!(status, 202, "{state}");
    format!("/v1/runs/{}", state["run_id"].as_str().unwrap())
}

fn suspended(server: &Server) -> String {
    let run = submit(server, &asks());
    server.state_when(&run, |state| state["calls"][0].is_object());
    run
}

fn cancel(server: &Server, run: &str) {
    assert_eq!(server.send("DELETE", run, &[], b"").0, 200);
    finished(server, run);
}

fn session(server: &Server) -> String {
    let opening = json!({ "tools": {"wait": {"returns": 1, "delay_ms": 50}} });
    let (status, session) = server.post("/v1/sessions", &opening);
    assert_eq!(status, 201, "{session}");
    format!("/v1/sessions/{}", session["session_id"].as_str().unwrap())
}

fn turn(server: &Server, session: &str, program: &str) -> u16 {
    server.post(&format!("{session}/turns"), &json!({ "program": program })).0
}

fn read_events(server: &Server, run: &str) {
    server.get_stream(&format!("{run}/events"), |_, _| true);
}

type Kind = (&'static str, fn(&Server));

const KINDS: &[Kind] = &[
    ("a run", |server| {
        for program in ["(+ 1 2)", "(", "(/ 1 0)", "(reduce (fn [a i] (conj a (str a i))) [] (range 100))"] {
            assert_eq!(server.post("/v1/run", &json!({ "program": program })).0, 200);
        }
    }),
    ("a run whose client leaves", |server| {
        for when in [Leaves::Saying(1), Leaves::Saying(50), Leaves::AtOnce] {
            leave(server, &post("/v1/run", &wait_tool(30)), when);
            leave(server, &post("/v1/run", &json!({ "program": "(loop [] (recur))" })), when);
        }
    }),
    ("a stream", |server| server.stream("/v1/run?stream", &prints(), |_, _| true)),
    ("a stream that ends with a problem", |server| {
        let request = json!({ "program": "1", "isolation": "process", "data": [] });
        let _ = server.post("/v1/run?stream", &request);
    }),
    ("a stream that is left half-read", |server| {
        server.stream("/v1/run?stream", &prints(), |kind, _| kind != "print");
        leave(server, &post("/v1/run?stream", &prints()), Leaves::Reading);
    }),
    ("a stream whose client leaves before it begins", |server| {
        leave(server, &post("/v1/run?stream", &prints()), Leaves::AtOnce);
        leave(server, &post("/v1/run?stream", &prints()), Leaves::Saying(1));
    }),
    ("a stream of a run at a tool", |server| {
        server.stream("/v1/run?stream", &wait_tool(5_000), |kind, _| kind != "call");
    }),
    ("a durable run", |server| {
        let run = submit(server, &prints());
        finished(server, &run);
        read_events(server, &run);
    }),
    ("a durable run whose client leaves", |server| {
        for path in ["/v1/runs", "/v1/run"] {
            leave(server, &post(path, &asks()), Leaves::AtOnce);
            leave(server, &post(path, &asks()), Leaves::Saying(3));
        }
        cancel_all(server);
    }),
    ("a durable run that is streamed and left", |server| {
        server.stream("/v1/run?stream", &asks(), |kind, _| kind != "waiting");
        leave(server, &post("/v1/run?stream", &asks()), Leaves::Reading);
        leave(server, &post("/v1/run?stream", &asks()), Leaves::AtOnce);
        cancel_all(server);
    }),
    ("events of a run that is over", |server| {
        let run = submit(server, &prints());
        finished(server, &run);
        for when in [Leaves::Reading, Leaves::AtOnce] {
            leave(server, &head("GET", &format!("{run}/events"), ""), when);
        }
        server.get_stream(&format!("{run}/events"), |kind, _| kind != "print");
    }),
    ("events of a run that waits", |server| {
        let run = suspended(server);
        server.get_stream(&format!("{run}/events"), |kind, _| kind != "waiting");
        for when in [Leaves::Reading, Leaves::AtOnce] {
            leave(server, &head("GET", &format!("{run}/events"), ""), when);
        }
        cancel(server, &run);
    }),
    ("an answer", |server| {
        let run = suspended(server);
        assert_eq!(server.post(&format!("{run}/calls/9"), &json!({ "result": 1 })).0, 404);
        leave(server, &post(&format!("{run}/calls/1"), &json!({ "result": 1 })), Leaves::Saying(1));
        assert_eq!(server.post(&format!("{run}/calls/1"), &json!({ "result": 1 })).0, 200);
        assert_eq!(finished(server, &run)["answer"]["value"], 2);
        assert_eq!(server.post(&format!("{run}/calls/1"), &json!({ "result": 1 })).0, 409);
    }),
    ("a run that somebody waits for, and is told that it waits", |server| {
        let (status, state) = server.post("/v1/run", &asks());
        assert_eq!(status, 202, "{state}");
        cancel(server, &format!("/v1/runs/{}", state["run_id"].as_str().unwrap()));
    }),
    ("a request that comes again", |server| {
        let key = uuid();
        let body = json!({ "program": "(+ 1 2)" }).to_string();
        for _ in 0..2 {
            assert_eq!(server.send("POST", "/v1/run", &[("Idempotency-Key", &key)], body.as_bytes()).0, 200);
        }
        assert_eq!(server.send("POST", "/v1/run?stream", &[("Idempotency-Key", &key)], b"{\"program\":\"2\"}").0, 422);
    }),
    ("a session", |server| {
        let session = session(server);
        assert_eq!(turn(server, &session, "(def x 1)"), 200);
        assert_eq!(turn(server, &session, "(/ 1 0)"), 200);
        let (status, fork) = server.post(&format!("{session}/fork"), &json!({}));
        assert_eq!(status, 201, "{fork}");
        assert_eq!(server.post(&format!("{session}/undo"), &json!({})).0, 200);
        assert_eq!(server.post(&format!("{session}/undo"), &json!({})).0, 409);
        let fork = format!("/v1/sessions/{}", fork["session_id"].as_str().unwrap());
        for session in [&session, &fork] {
            assert_eq!(server.send("DELETE", session, &[], b"").0, 204);
        }
    }),
    ("a turn whose client leaves", |server| {
        let session = session(server);
        for program in ["(tool/wait {})", "(loop [] (recur))", "(def x 1)"] {
            leave(server, &post(&format!("{session}/turns"), &json!({ "program": program })), Leaves::AtOnce);
        }
        server.until(LONG, "the turn to end", || server.send("DELETE", &session, &[], b"").0 == 204);
    }),
    ("what there is not", |server| {
        for path in ["/v1/runs/x", "/v1/runs/x/events", "/v1/sessions/x", "/v1/nope", "/v1/functions/nope"] {
            assert_eq!(server.send("GET", path, &[], b"").0, 404);
            leave(server, &head("GET", path, ""), Leaves::AtOnce);
        }
        for path in ["/v1/runs/x/calls/1", "/v1/sessions/x/turns", "/v1/run", "/v1/runs", "/v1/sessions", "/healthz"] {
            assert!(server.send("POST", path, &[], b"{\"nonsense\": 1}").0 >= 400);
        }
    }),
    ("pages", |server| {
        for path in
            ["/", "/v1/functions?q=map", "/v1/prompt", "/metrics", "/openapi.json", "/readyz", "/v1/runs?limit=3"]
        {
            assert_eq!(server.send("GET", path, &[], b"").0, 200, "{path}");
            leave(server, &head("GET", path, ""), Leaves::AtOnce);
            leave(server, &head("GET", path, ""), Leaves::Reading);
        }
    }),
    ("connections without a request", |server| {
        for said in ["", "P", "GET / HT", "nonsense\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}"] {
            leave(server, said, Leaves::AtOnce);
        }
        leave(server, &head("GET", "/healthz", "").repeat(50), Leaves::Reading);
    }),
];

fn uuid() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("key-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Cancels runs whose names nobody has.
fn cancel_all(server: &Server) {
    server.until(LONG, "all runs to end", || {
        let runs = server.send("GET", "/v1/runs?limit=50", &[], b"").2;
        let is_open = |run: &&Value| run["status"] != "done";
        let open: Vec<&Value> = runs["runs"].as_array().unwrap().iter().filter(is_open).collect();
        for run in &open {
            server.send("DELETE", &format!("/v1/runs/{}", run["run_id"].as_str().unwrap()), &[], b"");
        }
        open.is_empty()
    });
}

/// Waits until nothing is held.
fn settle(server: &Server, kind: &str) {
    let mut last = Vec::new();
    let mut is_settled = || {
        last = HELD.map(|name| (name, server.figure(name))).to_vec();
        last.push(("ptc_connections", server.figure("ptc_connections") - 1));
        last.iter().all(|(_, figure)| *figure == 0)
    };
    let begun = std::time::Instant::now();
    while !is_settled() {
        std::thread::sleep(Duration::from_millis(5));
        assert!(
            begun.elapsed() < LONG,
            "after {kind} there is left: {:?}",
            HELD.map(|name| (name, server.figure(name)))
        );
    }
}

/// How many connections a store has for reading, and the files that SQLite opens for one.
const READERS: usize = 4;
const FILES_OF_A_READER: usize = 3;

#[test]
fn whatever_a_request_takes_is_given_back() {
    let count: usize = std::env::var("SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(6);
    for isolation in ["in-process", "process"] {
        let dir = Dir::new(isolation);
        let config = dir.write(
            "service.toml",
            "[service]\nsuspend_after_ms = 10\nqueue = 100000\n[ceiling]\nloop_iterations = 0\ntimeout_ms = 60000\n",
        );
        let mut server =
            Server::start(&["--isolation", isolation, "--config", &config, "--store", &dir.path("ptc.db")]);
        let round = |times: usize| {
            for (kind, make) in KINDS {
                (0..times).for_each(|_| make(&server));
                settle(&server, kind);
            }
        };
        // What is made once and kept: threads, processes and the sockets to them, caches.
        round(2);
        let (tasks, descriptors, memory) = (server.figure("ptc_tasks"), server.descriptors(), server.memory_kb());
        round(count);
        // Templates, and the store's connections for reading, are made when they are first needed at once.
        let templates =
            if isolation == "process" { 4 * std::thread::available_parallelism().unwrap().get() } else { 0 };
        let spare = templates + READERS * FILES_OF_A_READER;
        server.until(LONG, "the tasks to end", || server.figure("ptc_tasks") <= tasks);
        server.until(LONG, &format!("{descriptors} descriptors"), || server.descriptors() <= descriptors + spare);
        let after = server.memory_kb();
        println!("{isolation}: {tasks} tasks, {descriptors} descriptors, {memory} kB, then {after} kB");
        assert!(after < memory + MORE_MEMORY_KB, "{isolation}: {memory} kB, then {after} kB");
        server.terminate();
        assert_eq!(server.exit_code(), Some(0));
    }
}
