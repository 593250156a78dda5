//! Connections to `ptcl serve` that do nothing, or not enough: they are closed, and keep nobody out.

#![cfg(target_os = "linux")]

mod service;

use serde_json::json;
use service::{Dir, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Far longer than any of them may last.
const LONG: Duration = Duration::from_secs(60);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Frames of HTTP/2: their length, kind, flags and stream.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const SETTINGS_SEEN: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0ptc-lisp";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Reads until the service closes the connection.
fn read_to_its_end(mut stream: TcpStream) -> Result<Vec<u8>, String> {
    let mut came = Vec::new();
    match stream.read_to_end(&mut came) {
        Ok(_) => Ok(came),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(came),
        Err(error) => Err(format!("it is not closed: {error}; {:?} came", String::from_utf8_lossy(&came))),
    }
}

#[test]
fn a_connection_that_asks_for_nothing_is_closed() {
    let dir = Dir::new("idle");
    let server = Server::start(&[
        "--config",
        &dir.write("service.toml", "[service]\nheader_seconds = 1\n[limits]\ntimeout_ms = 60000\n"),
    ]);
    let h2 = [PREFACE, SETTINGS, SETTINGS_SEEN].concat();
    let one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // What is sent at once, and what is sent again and again.
    let rows: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (b"P", b""),
        (b"PR", b""),
        (b"PRI * HT", b""),
        (&PREFACE[..23], b""),
        (PREFACE, b""),
        (&h2, b""),
        (&h2, PING),
        (&[&h2, PING].concat(), b""),
        (b"GET / HTTP/1.1\r\nHost: local", b""),
        (b"GET / HTTP/1.1\r\nX: ", b"x"),
        (b"", b"\r\n"),
        // One that is kept for the next request, which does not come, or not in whole.
        (one, b""),
        (one, b"\n"),
        (&one.repeat(3), b""),
        (&[one, &one[..20]].concat(), b""),
        // Those of TLS.
        (b"\x16\x03\x01", b""),
    ];
    std::thread::scope(|scope| {
        for (first, then) in rows {
            let mut stream = connect(&server);
            stream.write_all(first).unwrap();
            let mut sends = stream.try_clone().unwrap();
            if !then.is_empty() {
                // Until the other side is closed.
                let send = move || {
                    while sends.write_all(then).is_ok() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, send).unwrap();
            }
            let read = move || {
                let came = read_to_its_end(stream).unwrap_or_else(|why| panic!("{first:?}: {why}"));
                let answers = String::from_utf8_lossy(&came).matches("HTTP/1.1 200").count();
                assert_eq!(
                    answers,
                    String::from_utf8_lossy(first).matches("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").count()
                );
            };
            std::thread::Builder::new().spawn_scoped(scope, read).unwrap();
        }
    });
    // A run that takes longer than a head may take is not idle.
    let slow = json!({ "program": "(tool/wait {})", "tools": {"wait": {"returns": 7, "delay_ms": 2500}} });
    let (_, answer) = server.post("/v1/run", &slow);
    assert_eq!(answer["value"], 7, "{answer}");
    server.stream("/v1/run?stream", &slow, |kind, answer| {
        assert!(kind != "answer" || answer["value"] == 7, "{answer}");
        true
    });
    server.until(LONG, "all but the one that asks to end", || server.figure("ptc_connections") == 1);
}

/// Idle connections make room for others, those at work do not.
#[test]
fn idle_connections_keep_nobody_out() {
    let dir = Dir::new("full");
    let text = "[service]\nheader_seconds = 600\nmax_connections = 4\n";
    let server = Server::start(&["--config", &dir.write("service.toml", text)]);
    let one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let h2 = [PREFACE, SETTINGS].concat();
    let mut idle = Vec::new();
    for n in 0..40 {
        let mut stream = connect(&server);
        stream.write_all([&b""[..], b"P", one, &h2][n % 4]).unwrap();
        idle.push(stream);
        assert_eq!(server.send("GET", "/healthz", &[], b"").0, 200);
    }
    // Those at work keep their places: the fifth is turned away, and they are served.
    let (_, state) =
        server.post("/v1/runs", &json!({ "program": "(tool/ask {})", "tools": {"ask": {"client": true}} }));
    let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    server.state_when(&run, |state| state["status"] == "waiting");
    let mut at_work: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(format!("GET {run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
            let mut head = [0; 15];
            stream.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    assert_eq!(read_to_its_end(connect(&server)).unwrap(), b"");
    // One of them leaves, and there is room again.
    drop(at_work.pop());
    server.until(LONG, "room", || {
        service::status(&server.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")) == 200
    });
    assert_eq!(server.post(&format!("{run}/calls/1"), &json!({ "result": 1 })).0, 200);
    for stream in at_work {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut events = String::new();
        let mut stream = stream;
        while !events.contains("event: answer") {
            let mut part = [0; 1_000];
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "{events}");
            events.push_str(&String::from_utf8_lossy(&part[..read]));
        }
    }
    drop(idle);
}
