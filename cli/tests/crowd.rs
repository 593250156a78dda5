//! A crowd at `ptcl serve`, a third of it hostile. `CLIENTS` and `CROWD_SECONDS` say how many, and for how long.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Random, Server, request};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// What came of the good ones.
#[derive(Default)]
struct Tally {
    good: AtomicU64,
    busy: AtomicU64,
    hostile: AtomicU64,
    micros: Mutex<Vec<u64>>,
}

/// A run whose value is known: with a program, with a tool, as a durable run.
fn behave(address: &str, random: &mut Random, tally: &Tally) {
    let n = random.below(1_000);
    let (path, body) = match random.below(10) {
        0 => ("/v1/runs", json!({ "program": "(+ data/n 1)", "data": {"n": n} })),
        1..4 => {
            let tools = json!({ "more": {"echo": true} });
            (
                "/v1/run",
                json!({ "program": "(inc (get (tool/more {:n data/n}) \"n\"))", "data": {"n": n}, "tools": tools }),
            )
        }
        _ => ("/v1/run", json!({ "program": "(println data/n) (+ data/n 1)", "data": {"n": n} })),
    };
    let begun = Instant::now();
    let (mut status, _, mut answer) = request(address, "POST", path, &[], body.to_string().as_bytes());
    if status == 202 {
        let run = format!("/v1/runs/{}", answer["run_id"].as_str().unwrap());
        loop {
            let state = request(address, "GET", &run, &[], b"");
            assert_eq!(state.0, 200, "{:?}", state.2);
            if state.2["answer"].is_object() {
                (status, answer) = (200, state.2["answer"].clone());
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", state.2);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    match status {
        200 => {
            assert_eq!(answer["value"], n + 1, "{answer}");
            tally.good.fetch_add(1, Relaxed);
            tally.micros.lock().unwrap().push(u64::try_from(begun.elapsed().as_micros()).unwrap());
        }
        429 => {
            tally.busy.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(50));
        }
        other => panic!("{other}: {answer}"),
    }
}

fn misbehave(address: &str, random: &mut Random, tally: &Tally) {
    let endless = json!({ "program": "(loop [] (recur))", "limits": {"loop_iterations": 0, "timeout_ms": 300} });
    let greedy = json!({ "program": "(reduce (fn [a i] (conj a (str a i))) [] (range 100))" });
    let ask = json!({ "program": "(tool/t {})", "tools": {"t": {"client": true}} });
    let post = |body: &Value| {
        let (status, _, answer) = request(address, "POST", "/v1/run", &[], body.to_string().as_bytes());
        assert!(matches!(status, 200 | 202 | 429), "{status}: {answer}");
    };
    let connect = || TcpStream::connect(address).ok();
    match random.below(8) {
        0 => post(&endless),
        1 => post(&greedy),
        2 => post(&ask),
        // Leaves in the middle.
        3 => {
            let body = endless.to_string();
            let head = format!("POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
            if let Some(mut stream) = connect() {
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
                std::thread::sleep(Duration::from_millis(random.below(30)));
            }
        }
        // Sends a head byte by byte, and a body that does not end.
        4 | 5 => {
            if let Some(mut stream) = connect() {
                let head = b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";
                for byte in head.iter().take(usize::try_from(random.below(80)).unwrap()) {
                    if stream.write_all(&[*byte]).is_err() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
        }
        // Asks for much and does not read.
        6 => {
            if let Some(mut stream) = connect() {
                let one = b"GET /v1/functions HTTP/1.1\r\nHost: localhost\r\n\r\n";
                let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
                let _ = stream.write_all(&one.repeat(200));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        _ => {
            if let Some(mut stream) = connect() {
                let garbage: Vec<u8> = (0..2_000).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
                let _ = stream.write_all(&garbage);
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                let _ = stream.read(&mut [0; 100]);
            }
        }
    }
    tally.hostile.fetch_add(1, Relaxed);
}

#[test]
fn a_crowd_of_which_a_third_is_hostile() {
    let (clients, seconds) = (setting("CLIENTS", 60), setting("CROWD_SECONDS", 5));
    let dir = Dir::new("crowd");
    let text = "[service]\nheader_seconds = 5\nbody_seconds = 5\nmax_connections = 4096\n\
                [limits]\ntimeout_ms = 60000\n[ceiling]\nloop_iterations = 0\n";
    let config = dir.write("service.toml", text);
    let server = Server::start(&["--config", &config, "--store", &dir.path("ptc.db")]);
    let tally = Tally::default();
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut memory = Vec::new();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (address, tally) = (&server.address, &tally);
            let live = move || {
                let mut random = Random(client.wrapping_mul(7_919) + 1);
                while Instant::now() < until {
                    match client % 3 {
                        0 => misbehave(address, &mut random, tally),
                        _ => behave(address, &mut random, tally),
                    }
                }
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, live).unwrap();
        }
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1_000 * seconds / 10));
            memory.push(server.memory_kb());
        }
    });
    let mut micros = tally.micros.into_inner().unwrap();
    micros.sort_unstable();
    let at = |part: usize| micros[(micros.len() - 1) * part / 100];
    let (good, busy, hostile) = (tally.good.into_inner(), tally.busy.into_inner(), tally.hostile.into_inner());
    println!(
        "{clients} clients, {seconds} s: {good} good runs, {busy} turned away, {hostile} hostile requests; p50 {} ms, p99 {} ms; \
         memory in kB: {memory:?}",
        at(50) / 1_000,
        at(99) / 1_000
    );
    assert!(good > 0);
    // It is as good as new.
    assert_eq!(server.post("/v1/run", &json!({ "program": "(+ 1 2)" })).1["value"], 3);
    let faults = server.text("/metrics");
    let faults: Vec<&str> =
        faults.lines().filter(|line| line.contains("status=\"5") || line.contains("host_fault")).collect();
    assert!(faults.is_empty(), "{faults:?}");
    // What grew at first does not go on growing.
    let (early, late) = (memory[memory.len() / 2], memory[memory.len() - 1]);
    assert!(late < 2 * early + 50_000, "{memory:?}");
}
