//! A service on a Unix socket: who can connect, and what happens to the file.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, parse, ptcl, refused};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// A service on a socket.
struct OnSocket {
    server: Server,
    path: String,
}

fn command(dir: &Dir, path: &str, more: &[&str]) -> Command {
    let mut command = ptcl();
    command.args(["serve", "--isolation", "in-process", "--listen", &format!("unix:{path}")]);
    command.args(["--store", &dir.path("ptc.db")]).args(more);
    command
}

impl OnSocket {
    fn start(dir: &Dir, path: &str, more: &[&str]) -> OnSocket {
        OnSocket::of(&mut command(dir, path, more), path)
    }

    /// The service that a command starts at a path.
    fn of(command: &mut Command, path: &str) -> OnSocket {
        let server = Server::of(command);
        assert_eq!((&*server.address, &*server.logged), (&*format!("unix:{path}"), ""));
        OnSocket { server, path: path.to_owned() }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = self.connect();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let (status, _, body) = parse(&answer);
        (status, body)
    }

    fn mode(&self) -> u32 {
        std::fs::metadata(&self.path).unwrap().permissions().mode() & 0o777
    }
}

#[test]
fn its_owner_runs_programs_over_it() {
    let dir = Dir::new("socket");
    let path = dir.path("ptc.sock");
    let mut service = OnSocket::start(&dir, &path, &[]);
    assert_eq!(service.mode(), 0o600);
    let program = json!({ "program": "(+ 1 2)" }).to_string();
    // The name of the host says nothing here.
    for host in ["localhost", "ptc", "example.com", "127.0.0.1:80"] {
        let (status, answer) = service.ask("POST", "/v1/run", &format!("Host: {host}\r\n"), &program);
        assert_eq!((status, &answer["value"]), (200, &json!(3)), "{host}: {answer}");
    }
    assert_eq!(service.ask("GET", "/readyz", "Host: localhost\r\n", "").0, 200);
    // What a proxy passes on from a page.
    for headers in ["Host: localhost\r\nOrigin: http://evil.example\r\n", "Host: ptc\r\nOrigin: null\r\n"] {
        assert_eq!(service.ask("POST", "/v1/run", headers, &program).0, 403, "{headers}");
    }
    assert_eq!(service.ask("GET", "/healthz", "", "").0, 400, "one Host header is needed");
    service.server.terminate();
    assert_eq!(service.server.exit_code(), Some(0));
    assert!(!std::fs::exists(&path).unwrap(), "the file is gone after a clean end");
}

#[test]
fn a_socket_that_a_killed_service_left_is_replaced() {
    let dir = Dir::new("socket-stale");
    let path = dir.path("ptc.sock");
    OnSocket::start(&dir, &path, &[]).server.kill();
    assert!(std::fs::exists(&path).unwrap());
    let service = OnSocket::start(&dir, &path, &[]);
    assert_eq!(service.ask("GET", "/readyz", "Host: localhost\r\n", "").0, 200);
    assert_eq!(service.mode(), 0o600);
}

#[test]
fn what_is_not_its_own_is_left_alone() {
    let dir = Dir::new("socket-live");
    let path = dir.path("ptc.sock");
    let service = OnSocket::start(&dir, &path, &[]);
    // With a store of its own, so that only the socket is in the way.
    let other = Dir::new("socket-other");
    let (code, said) = refused(&mut command(&other, &path, &[]));
    assert!(code == Some(74) && said.contains("another process listens there"), "{code:?} {said}");
    assert_eq!(service.ask("GET", "/readyz", "Host: localhost\r\n", "").0, 200);
    // A socket of another program, which has no lock.
    let foreign = dir.path("foreign.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&foreign).unwrap();
    let (code, said) = refused(&mut command(&other, &foreign, &[]));
    assert!(code == Some(74) && said.contains("another process listens there"), "{code:?} {said}");
    let file = dir.write("notes.txt", "keep me");
    let (code, said) = refused(&mut command(&other, &file, &[]));
    assert!(code == Some(74) && said.contains("is not a socket"), "{code:?} {said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "keep me");
    let (code, said) = refused(&mut command(&other, &dir.path("no/such/folder/ptc.sock"), &[]));
    assert!(code == Some(74) && said.contains("cannot listen on unix:"), "{code:?} {said}");
    // The store of the first: the second binds its socket, and takes it away again.
    let second = dir.path("second.sock");
    let (code, said) = refused(&mut command(&dir, &second, &[]));
    assert!(code == Some(74) && said.contains("ptc.db"), "{code:?} {said}");
    assert!(!std::fs::exists(&second).unwrap());
}

#[test]
fn the_configuration_says_where_and_for_whom() {
    let dir = Dir::new("socket-config");
    let config = dir
        .write("service.toml", "listen = \"unix:group.sock\"\nstore = \"ptc.db\"\n[service]\nsocket_mode = \"0660\"\n");
    let mut command = ptcl();
    command.args(["serve", "--isolation", "in-process", "--config", &config]);
    let service = OnSocket::of(&mut command, &dir.path("group.sock"));
    assert_eq!(service.mode(), 0o660);
    for name in ["c.pem", "k.pem"] {
        dir.write(name, "nothing");
    }
    for (text, wanted) in [
        ("listen = \"unix:\"", "is not an address"),
        ("[service]\nsocket_mode = \"rw\"", "three octal digits"),
        ("[service]\nsocket_mode = \"888\"", "three octal digits"),
        ("[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"", "without TLS"),
    ] {
        let config = dir.write("wrong.toml", text);
        let mut command = ptcl();
        command.args(["serve", "--config", &config]);
        if text.starts_with("[tls]") {
            command.args(["--listen", &format!("unix:{}", dir.path("tls.sock"))]);
        }
        let (code, said) = refused(&mut command);
        assert!(code == Some(2) && said.contains(wanted), "{text}: {said}");
    }
}

/// The limits of connections are those of TCP.
#[test]
fn idle_connections_are_closed() {
    let dir = Dir::new("socket-idle");
    let config = dir.write("service.toml", "[service]\nheader_seconds = 1\nmax_connections = 2\n");
    let service = OnSocket::start(&dir, &dir.path("ptc.sock"), &["--config", &config]);
    let silent: Vec<UnixStream> = (0..2).map(|_| service.connect()).collect();
    let begun = Instant::now();
    for mut stream in silent {
        let mut nothing = Vec::new();
        // It is closed without a word.
        let _ = stream.read_to_end(&mut nothing);
        assert_eq!(nothing, b"");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    // A third connection takes the place of an idle one at once.
    let idle: Vec<UnixStream> = (0..2).map(|_| service.connect()).collect();
    assert_eq!(service.ask("GET", "/readyz", "Host: localhost\r\n", "").0, 200);
    drop(idle);
}

/// `curl` as the documentation has it.
#[test]
fn curl_asks_for_its_health() {
    let dir = Dir::new("socket-curl");
    let path = dir.path("ptc.sock");
    let _service = OnSocket::start(&dir, &path, &[]);
    let output = Command::new("curl").args(["-fsS", "--unix-socket", &path, "http://localhost/readyz"]).output();
    // A machine may have no curl.
    if let Ok(output) = output {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ready\n", "{output:?}");
    }
}
