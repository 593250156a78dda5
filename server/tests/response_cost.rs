//! What responses and streams cost that wait for room, or whose clients do not read: little of theirs is kept. Counts what is
//! allocated, so it is a binary of its own, with one test.

#[path = "support/allocations.rs"]
mod allocations;

use allocations::{in_use, peak};
use lisp_server::config::{Config, ListenAddress};
use lisp_server::http::Server;
use lisp_server::runs::Service;
use lisp_server::store::{Batch, End, MemoryStore, NewRun, Room, Store, StoredCall};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// The bytes of one response, and the clients that ask for it.
const BYTES: usize = 4_000_000;
const CLIENTS: usize = 40;

/// A store with a run whose answer is large, and one whose open calls are.
async fn store() -> (Arc<dyn Store>, [String; 2]) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let [done, waits] = [1, 2].map(|run| format!("01900000-0000-7000-8000-{run:012}"));
    let room = || Room { slots: 1, tenants: vec![("anonymous".to_owned(), 1)] };
    for run_id in [&done, &waits] {
        let (tenant, request) = ("anonymous".to_owned(), "{\"program\": \"1\"}".to_owned());
        store.submit(NewRun { run_id: run_id.clone(), tenant, request }, None).await.unwrap();
        let claim = store.claim("test", Duration::from_secs(60), &room()).await.unwrap().remove(0);
        let mut batch = Batch { first_line: 1, first_event: 1, ..Batch::default() };
        let end = if run_id == &done {
            End::Done(format!("\"{}\"", "a".repeat(BYTES)).into())
        } else {
            batch.opened = (0..4)
                .map(|n| StoredCall {
                    call: n.to_string(),
                    phase: "result".to_owned(),
                    number: 0,
                    tool: "ask".to_owned(),
                    arguments: format!("{{\"x\":\"{}\"}}", "y".repeat(BYTES / 4)),
                    question: None,
                })
                .collect();
            End::Suspended(0)
        };
        store.end(&claim.lease, batch, end).await.unwrap();
    }
    (store, [done, waits])
}

async fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // What it does not read stays at the service.
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    client.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await.unwrap();
    client
}

async fn status(client: &mut TcpStream) -> String {
    let mut start = vec![0; 12];
    timeout(Duration::from_secs(60), client.read_exact(&mut start)).await.unwrap().unwrap();
    String::from_utf8_lossy(&start[9..]).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_room_keeps_no_texts() {
    let (store, [done, waits]) = store().await;
    let text = "isolation = \"in-process\"\n[limits]\nresult_bytes = 20000000\nheap_bytes = 200000000\ntimeout_ms = 60000\n\
        [service]\nmax_bodies_bytes = 4500000\nconcurrency = 1\n";
    let config = Config::parse_with(text, "test.toml", &|_| None).unwrap();
    let service = Service::open_front(config, store).await.unwrap();
    let server = Server::bind(service, "127.0.0.1:0".parse().unwrap()).unwrap();
    let ListenAddress::Tcp(address) = *server.address() else { panic!("no TCP address") };
    tokio::spawn(server.serve());
    // It does not read on, and has all of the room.
    let mut first = ask(address, &format!("/v1/runs/{done}")).await;
    assert_eq!(status(&mut first).await, "200");
    for path in [format!("/v1/runs/{done}"), format!("/v1/runs/{waits}"), "/v1/runs".to_owned()] {
        let all = async {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                clients.push(ask(address, &path).await);
            }
            for client in &mut clients {
                assert_eq!(status(client).await, "429", "{path}");
            }
        };
        let peak = peak(in_use(), all).await;
        println!("{path}: {CLIENTS} responses of {BYTES} bytes take {peak} bytes while they wait");
        // Two are read and written down at once.
        assert!(peak < CLIENTS * BYTES / 2, "{path}: {peak}");
    }
    streams(address, &done, first).await;
    streams_of_new_runs(address).await;
}

/// Streams whose clients do not read have the room of one between them, and each is sent in whole once its client reads.
async fn streams(address: SocketAddr, done: &str, first: TcpStream) {
    let path = format!("/v1/runs/{done}/events");
    let before = in_use();
    let mut clients = Vec::new();
    let all = async {
        for _ in 0..CLIENTS {
            clients.push(ask(address, &path).await);
        }
        for client in &mut clients {
            assert_eq!(status(client).await, "200");
        }
        // The first one has its event once there is room. Its client reads only the start.
        drop(first);
        let mut starts = clients.iter_mut().map(|client| Box::pin(until_event(client))).collect::<Vec<_>>();
        futures_util::future::select_all(&mut starts).await;
        // Long enough for the others to look for room, too.
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let mut peak = peak(before, all).await;
    println!("{path}: {CLIENTS} streams of {BYTES} bytes take {peak} bytes while nobody reads");
    assert!(peak < CLIENTS * BYTES / 4, "{peak}");
    let all = async {
        let rest = clients.into_iter().map(|client| tokio::spawn(rest_of(client)));
        for read in futures_util::future::join_all(rest).await {
            // One has read the start before, and the head has a few.
            assert!((BYTES - 2_000..BYTES + 2_000).contains(&read.unwrap()));
        }
    };
    peak = self::peak(before, all).await;
    println!("{path}: and {peak} bytes while all read");
    assert!(peak < CLIENTS * BYTES / 4, "{peak}");
}

/// Streams of runs that are not durable. Runs whose answers find no room end in a problem, and nothing of them is kept.
async fn streams_of_new_runs(address: SocketAddr) {
    let program = format!("(apply str (repeat {BYTES} \\\"a\\\"))");
    let body = format!("{{\"program\": \"{program}\", \"omit\": [\"text\"]}}");
    let ask = async || {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut client = socket.connect(address).await.unwrap();
        let head =
            format!("POST /v1/run?stream HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        client.write_all(head.as_bytes()).await.unwrap();
        client
    };
    let before = in_use();
    let (mut clients, mut answers) = (Vec::new(), 0);
    for _ in 0..CLIENTS / 5 {
        clients.push(ask().await);
    }
    for client in &mut clients {
        let seen = until_event(client).await;
        answers += usize::from(seen.contains("event: answer"));
    }
    let kept = in_use().saturating_sub(before);
    println!("{} streams of new runs, {answers} with answers of {BYTES} bytes, keep {kept} bytes", clients.len());
    assert!(answers >= 1 && kept < CLIENTS * BYTES / 8, "{answers} {kept}");
    drop(clients);
    let mut client = ask().await;
    // The room is free once the service has seen that the clients have left.
    while until_event(&mut client).await.contains("event: problem") {
        client = ask().await;
    }
    assert!((BYTES - 2_000..BYTES + 2_000).contains(&rest_of(client).await));
}

/// Reads the head of a stream and the start of its last event.
async fn until_event(client: &mut TcpStream) -> String {
    let (mut read, mut seen) = (String::new(), [0; 256]);
    while !read.contains("event: answer") && !read.contains("event: problem") {
        let length = timeout(Duration::from_secs(60), client.read(&mut seen)).await.unwrap().unwrap();
        read.push_str(&String::from_utf8_lossy(&seen[..length]));
    }
    read
}

/// Reads a stream to its end. Returns the number of the answer's letters.
async fn rest_of(mut client: TcpStream) -> usize {
    let (mut letters, mut read, mut last) = (0, vec![0; 65_536], Vec::new());
    while !last.ends_with(b"0\r\n\r\n") {
        let length = timeout(Duration::from_secs(60), client.read(&mut read)).await.unwrap().unwrap();
        assert!(length > 0, "the stream ends early, after {letters}");
        letters += read[..length].iter().filter(|&&byte| byte == b'a').count();
        last.extend_from_slice(&read[..length]);
        last.drain(..last.len().saturating_sub(8));
    }
    letters
}
