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
    let many_pings = PING.repeat(20);
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
        // So many that what they are acknowledged with is as long as a part of a response.
        (&h2, &many_pings),
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

/// A request of HTTP/2 for a path, without a token.
fn get(stream: u8, path: &str) -> Vec<u8> {
    let field = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
    };
    let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    let fields: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    [&[0, 0, u8::try_from(fields.len()).unwrap(), 1, 5, 0, 0, 0, stream], &*fields].concat()
}

/// A client without a token that takes no byte of its response has its connection until another needs it.
#[test]
fn unread_responses_to_clients_without_a_token_keep_nobody_out() {
    /// A window of no bytes.
    const NO_WINDOW: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
    let dir = Dir::new("unread");
    let tenant = format!("[[tenants]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n", service::sha256_hex("token"));
    let text = format!("[service]\nheader_seconds = 600\nbody_seconds = 600\nmax_connections = 4\n{tenant}");
    let server = Server::start(&["--config", &dir.write("service.toml", &text)]);
    // One that is there for all, and one that needs a token.
    for path in ["/page.js", "/v1/runs"] {
        let unread: Vec<TcpStream> = (0..4)
            .map(|_| {
                let mut stream = connect(&server);
                stream.write_all(&[PREFACE, NO_WINDOW, &get(1, path)].concat()).unwrap();
                // The head of the response is not held back by the window.
                let mut head = Vec::new();
                while !head.windows(4).any(|frame| frame[0] == 1 && frame[1] & 4 == 4) {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                stream
            })
            .collect();
        for _ in 0..8 {
            assert_eq!(server.send("GET", "/healthz", &[], b"").0, 200, "{path}");
        }
        drop(unread);
    }
}

/// A connection that was told to close does so in a moment, even if its client goes on sending the head of a request.
#[test]
fn input_does_not_keep_a_connection_that_is_to_close() {
    let dir = Dir::new("trickle");
    let text = "[service]\nheader_seconds = 600\nmax_connections = 1\n";
    let server = Server::start(&["--config", &dir.write("service.toml", text)]);
    let mut trickles = connect(&server);
    trickles.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    let mut sends = trickles.try_clone().unwrap();
    std::thread::scope(|scope| {
        let send = move || {
            // Until it is closed, or the reader has lost its patience.
            for _ in 0..20_000 {
                if sends.write_all(b"x").is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        std::thread::Builder::new().spawn_scoped(scope, send).unwrap();
        // The service may accept the second connection first: then the third tells the other to close.
        for _ in 0..2 {
            assert_eq!(server.send("GET", "/healthz", &[], b"").0, 200);
        }
        assert_eq!(read_to_its_end(trickles), Ok(Vec::new()));
    });
}

/// Where the system allows fewer open files than `max_connections` needs, there are fewer connections, and idle ones make room.
#[test]
fn few_descriptors_are_few_connections() {
    let dir = Dir::new("descriptors");
    let config = dir.write("service.toml", "isolation = \"in-process\"\n[service]\nheader_seconds = 600\n");
    let start = |limit: &str| {
        let store = dir.path(limit);
        let line =
            format!("ulimit {limit}; exec \"$0\" serve --listen 127.0.0.1:0 --config {config} --store '{store}'");
        Server::of(std::process::Command::new("bash").args(["-c", &line]).arg(service::ptcl().get_program()))
    };
    let server = start("-n 150");
    assert!(
        server.logged.contains("max_connections=2048") && server.logged.contains("effective=75"),
        "{}",
        server.logged
    );
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connect(&server));
    }
    let stored = server.send("POST", "/v1/run", &[("Idempotency-Key", "k")], b"{\"program\": \"(+ 1 2)\"}");
    assert_eq!((stored.0, &stored.2["value"]), (200, &json!(3)), "{}", stored.2);
    drop(idle);
    // A soft limit is raised.
    let server = start("-S -n 150");
    assert!(!server.logged.contains("max_connections"), "{}", server.logged);
}
