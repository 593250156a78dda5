//! What responses cost that wait for room: nothing of theirs is kept. Counts what is allocated, so it is a binary of its own.

use lisp_server::config::{Config, ListenAddress};
use lisp_server::http::Server;
use lisp_server::runs::Service;
use lisp_server::store::{Batch, End, MemoryStore, NewRun, Room, Store, StoredCall};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Counts the bytes of all allocations, of all threads.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bytes of one response, and the clients that ask for it.
const BYTES: usize = 4_000_000;
const CLIENTS: usize = 40;

fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

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
async fn responses_that_wait_for_room_keep_no_texts() {
    let (store, [done, waits]) = store().await;
    let text = "isolation = \"in-process\"\n[service]\nmax_bodies_bytes = 4500000\n";
    let config = Config::parse_with(text, "test.toml", &|_| None).unwrap();
    let service = Service::open_front(config, store).await.unwrap();
    let server = Server::bind(service, "127.0.0.1:0".parse().unwrap()).unwrap();
    let ListenAddress::Tcp(address) = *server.address() else { panic!("no TCP address") };
    tokio::spawn(server.serve());
    // It does not read on, and has all of the room.
    let mut first = ask(address, &format!("/v1/runs/{done}")).await;
    assert_eq!(status(&mut first).await, "200");
    for path in [format!("/v1/runs/{done}"), format!("/v1/runs/{waits}"), "/v1/runs".to_owned()] {
        let before = in_use();
        let all = async {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                clients.push(ask(address, &path).await);
            }
            for client in &mut clients {
                assert_eq!(status(client).await, "429", "{path}");
            }
        };
        let mut peak = 0;
        let sample = async {
            loop {
                peak = peak.max(in_use().saturating_sub(before));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = all => {}
            () = sample => {}
        }
        println!("{path}: {CLIENTS} responses of {BYTES} bytes take {peak} bytes while they wait");
        // Two are read and written down at once.
        assert!(peak < CLIENTS * BYTES / 2, "{path}: {peak}");
    }
}
