//! Request bodies that do not end: one tenant's take a bounded number of bytes, and nothing from other tenants.

use futures_util::stream::{FuturesUnordered, StreamExt};
use lisp_server::config::{Config, ListenAddress};
use lisp_server::http::Server;
use lisp_server::runs::Service;
use lisp_server::store::MemoryStore;
use sha2::{Digest, Sha256};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const MIB: usize = 1 << 20;

fn tenant(name: &str) -> String {
    let digest: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{digest}\"\n")
}

async fn start(bodies: usize, more: &str) -> SocketAddr {
    let text = format!(
        "isolation = \"in-process\"\n[limits]\nresult_bytes = 20000000\nheap_bytes = 200000000\ntimeout_ms = 60000\n\
         [service]\nmax_body_bytes = {MIB}\nmax_bodies_bytes = {bodies}\n{more}\n{}{}",
        tenant("a"),
        tenant("b")
    );
    let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
    let service = Service::open(config, Arc::new(MemoryStore::new())).await.unwrap();
    let server = Server::bind(service, "127.0.0.1:0".parse().unwrap()).unwrap();
    let ListenAddress::Tcp(address) = *server.address() else { panic!("no TCP address") };
    tokio::spawn(server.serve());
    address
}

async fn send(address: SocketAddr, token: &str, length: &str, body: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{length}\r\n\r\n"
    );
    client.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    client
}

/// The answer to a whole request.
async fn asked(address: SocketAddr, token: &str) -> String {
    let body = br#"{"program": "(+ 1 2)"}"#;
    let mut client = send(address, token, &format!("Content-Length: {}", body.len()), body).await;
    let mut answer = String::new();
    timeout(Duration::from_secs(20), client.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

/// The answer to a whole request; empty if the connection was closed.
async fn try_asked(address: SocketAddr, token: &str) -> String {
    let body = br#"{"program": "(+ 1 2)"}"#;
    let mut answer = String::new();
    let Ok(mut client) = TcpStream::connect(address).await else { return answer };
    let head = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    if client.write_all(&[head.as_bytes(), body].concat()).await.is_ok() {
        let _ = timeout(Duration::from_secs(20), client.read_to_string(&mut answer)).await;
    }
    answer
}

/// The answer to a request whose body does not end; `None` if it is still being read after a while.
async fn refused(client: &mut TcpStream) -> Option<String> {
    let mut answer = vec![0; 4_096];
    let read = timeout(Duration::from_secs(4), client.read(&mut answer)).await.ok()?.unwrap();
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_admitted_by_bytes() {
    const CLIENTS: usize = 12;
    let address = start(4 * MIB, "").await;
    // A body without a length counts as the largest.
    let lengths = [format!("Content-Length: {MIB}"), "Transfer-Encoding: chunked".to_owned()];
    for length in &lengths {
        let body = if length.contains("chunked") { &b"5\r\n     \r\n"[..] } else { &[b' '; 1_000] };
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(send(address, "a", length, body).await);
        }
        let answers = futures_util::future::join_all(clients.iter_mut().map(refused)).await;
        let answers: Vec<String> = answers.into_iter().flatten().collect();
        assert_eq!(answers.len(), CLIENTS - 4, "{length}: {answers:?}");
        for answer in &answers {
            assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("max_bodies_bytes"), "{length}: {answer}");
        }
        // Not even a small one.
        let answer = asked(address, "a").await;
        assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("max_bodies_bytes"), "{length}: {answer}");
        let of_other = asked(address, "b").await;
        assert!(of_other.starts_with("HTTP/1.1 200") && of_other.contains("\"value\":3"), "{length}: {of_other}");
        // The room is free once the clients have left.
        drop(clients);
        let end = Instant::now() + Duration::from_secs(20);
        while !asked(address, "a").await.starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < end, "{length}: the room is still taken");
        }
    }
}

/// A body and a response that are larger than all of the room have it to themselves, whatever its size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_body_and_response_find_room() {
    let address = start(MIB + 1, "").await;
    let program = r#"{"program": "(reduce (fn [s _] (str s s)) \"0123456789abcdef\" (range 17))", "omit": ["text"]}"#;
    let body = program.to_owned() + &" ".repeat(MIB - program.len());
    let mut client = send(address, "a", &format!("Content-Length: {}", body.len()), body.as_bytes()).await;
    let mut answer = String::new();
    timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 2 * MIB, "{}", &answer[..answer.len().min(500)]);
}

/// Clients without a token that ask for much and read nothing: their connections go for those of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_whose_clients_do_not_read_keep_nobody_out() {
    const MAX: usize = 8;
    let address = start(4 * MIB, &format!("max_connections = {MAX}\nbody_seconds = 600\nheader_seconds = 600")).await;
    let ask = format!("GET /openapi.json HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(400);
    let mut clients = Vec::new();
    for _ in 0..20 * MAX {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let Ok(mut client) = socket.connect(address).await else { continue };
        // The service may have closed it.
        let _ = client.write_all(ask.as_bytes()).await;
        clients.push(client);
    }
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        // No new connection is served until a client has not read for some time.
        let answer = try_asked(address, "b").await;
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < end, "the tenant is kept out: {answer}");
    }
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer b\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .await
        .unwrap();
    let mut metrics = String::new();
    timeout(Duration::from_secs(60), client.read_to_string(&mut metrics)).await.unwrap().unwrap();
    let open = metrics.lines().find_map(|line| line.strip_prefix("ptc_connections ")).expect("the figure");
    assert!(open.parse::<usize>().unwrap() <= MAX + 64, "{open}");
    drop(clients);
}

/// A client that reads slowly, but reads, keeps its connection while others come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_keeps_its_connection() {
    const MAX: usize = 4;
    let address = start(32 * MIB, &format!("max_connections = {MAX}")).await;
    let program = r#"{"program": "(reduce (fn [s _] (str s s)) \"0123456789abcdef\" (range 17))", "omit": ["text"]}"#;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(65_536).unwrap();
    let mut reader = socket.connect(address).await.unwrap();
    let head = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{program}",
        program.len()
    );
    reader.write_all(head.as_bytes()).await.unwrap();
    let others = async {
        let mut idle = Vec::new();
        loop {
            idle.push(TcpStream::connect(address).await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let reads = async {
        let (mut length, mut piece) = (0, vec![0; 65_536]);
        loop {
            match reader.read(&mut piece).await.expect("the rest of the answer") {
                0 => return length,
                read => length += read,
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    };
    let length = tokio::select! {
        length = reads => length,
        never = others => never,
    };
    assert!(length > 2 * MIB, "{length}");
}

/// Responses that clients do not read take a bounded number of bytes of their tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_admitted_by_bytes() {
    const CLIENTS: usize = 6;
    let address = start(4 * MIB, "").await;
    // More than the buffers of the system hold.
    let program = r#"{"program": "(reduce (fn [s _] (str s s)) \"0123456789abcdef\" (range 20))", "omit": ["text"]}"#;
    let mut client = TcpStream::connect(address).await.unwrap();
    let length = program.len();
    let head = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\nConnection: close\r\nIdempotency-Key: one\r\n\
         Content-Length: {length}\r\n\r\n{program}"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.len() > 10 << 20, "{}", &answer[answer.len().saturating_sub(1_000)..]);
    let at = answer.find("\"run_id\":\"").expect("an answer") + 10;
    let path = format!("/v1/runs/{}", &answer[at..at + 36]);
    let ask = async |token: &str, path: &str| {
        let socket = TcpSocket::new_v4().unwrap();
        // What it does not read stays at the service.
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut client = socket.connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        client
    };
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(ask("a", &path).await);
    }
    let mut refusals = 0;
    for client in &mut clients {
        let mut start = vec![0; 512];
        let read = timeout(Duration::from_secs(30), client.read(&mut start)).await.unwrap().unwrap();
        let start = String::from_utf8_lossy(&start[..read]).into_owned();
        refusals += usize::from(start.starts_with("HTTP/1.1 429") && start.contains("max_bodies_bytes"));
        assert!(start.starts_with("HTTP/1.1 200") || start.starts_with("HTTP/1.1 429"), "{start}");
    }
    assert_eq!(refusals, CLIENTS - 1);
    // What was done is not reported as if it were not.
    let large = r#"{"program": "(reduce (fn [s _] (str s s)) \"0123456789abcdef\" (range 12))"}"#;
    for (method, path, body, done) in [
        ("POST", "/v1/run", large, "the run has ended"),
        ("POST", "/v1/run?stream", large, "the run has ended"),
        ("DELETE", &*path, "", "the run is cancelled, or was done before"),
    ] {
        let mut client = TcpStream::connect(address).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\nConnection: close\r\n");
        client.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.contains("507") && answer.contains(done), "{method} {path}: {answer}");
        assert!(!answer.to_lowercase().contains("retry-after"), "{answer}");
    }
    let of_other = asked(address, "b").await;
    assert!(of_other.starts_with("HTTP/1.1 200"), "{of_other}");
    drop(clients);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let mut client = ask("a", &path).await;
        let mut start = vec![0; 12];
        timeout(Duration::from_secs(20), client.read_exact(&mut start)).await.unwrap().unwrap();
        if start == b"HTTP/1.1 200" {
            break;
        }
        assert!(Instant::now() < end, "the room is still taken");
    }
}

/// Sends a run of a tenant without reading its answer. It has a body of 900 kB, and these headers.
async fn large(address: SocketAddr, path: &str, headers: &str, program: &str) -> TcpStream {
    let tools = r#"{"slow": {"returns": 1, "delay_ms": 600000}}"#;
    let pad = "x".repeat(900_000);
    let body = format!(r#"{{"program": "{program}", "tools": {tools}, "data": {{"pad": "{pad}"}}}}"#);
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.unwrap();
    client
}

/// The beginning of an answer.
async fn begins(client: &mut TcpStream) -> String {
    let mut answer = vec![0; 12];
    timeout(Duration::from_secs(60), client.read_exact(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

/// Waits until a run has the only slot.
async fn until_slot_is_taken(address: SocketAddr) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let mut client = TcpStream::connect(address).await.unwrap();
        let head =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer b\r\nConnection: close\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let mut metrics = String::new();
        client.read_to_string(&mut metrics).await.unwrap();
        if metrics.lines().any(|line| line == "ptc_slots_taken 1") {
            return;
        }
        assert!(Instant::now() < end, "no run has the slot: {metrics}");
    }
}

/// The bodies of runs that wait for a slot take room until they have run; those of durable runs, until they are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_take_room_as_long_as_they_are_kept() {
    const CLIENTS: usize = 8;
    for path in ["/v1/run", "/v1/run?stream", "/v1/check"] {
        let address = start(4 * MIB, "concurrency = 1\nqueue_seconds = 3600").await;
        let mut slow = Some(large(address, "/v1/run", "", "(tool/slow {})").await);
        until_slot_is_taken(address).await;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(large(address, path, "", "1").await);
        }
        let mut answers: FuturesUnordered<_> = clients.iter_mut().map(begins).collect();
        let mut counts = [0, 0];
        while let Some(answer) = answers.next().await {
            match &*answer {
                "HTTP/1.1 200" => counts[0] += 1,
                "HTTP/1.1 429" => counts[1] += 1,
                other => panic!("{path}: {other}"),
            }
            // There is room for four, and the one that has the slot is one of them. It ends with its client.
            if counts[1] == CLIENTS - 3 {
                slow = None;
            }
        }
        assert!(counts == [3, CLIENTS - 3] && slow.is_none(), "{path}: {counts:?}");
    }
    let address = start(MIB, "concurrency = 1").await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(large(address, "/v1/run", "Idempotency-Key: k\r\n", "(tool/slow {})").await);
        until_slot_is_taken(address).await;
        let end = Instant::now() + Duration::from_secs(60);
        // There is room for one body, and those that wait have none.
        while begins(&mut large(address, "/v1/runs/none/calls/1", "", "1").await).await == "HTTP/1.1 429" {
            assert!(Instant::now() < end, "the room is still taken");
        }
    }
}

/// A body of unknown length takes room for the largest while it arrives, and then for what it is.
#[tokio::test]
async fn a_short_body_of_unknown_length_keeps_little_room() {
    let address = start(MIB, "concurrency = 1").await;
    let body = r#"{"program": "(tool/slow {})", "tools": {"slow": {"returns": 1, "delay_ms": 600000}}}"#;
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    until_slot_is_taken(address).await;
    let answer = begins(&mut large(address, "/v1/runs/none/calls/1", "", "1").await).await;
    assert_ne!(answer, "HTTP/1.1 429");
}

/// A response counts in `max_requests` until it is written, not only until the connection has taken it on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unwritten_responses_count_as_requests() {
    // Half of the connections are for the requests of one tenant.
    let address = start(64 * MIB, "max_connections = 8\nheader_seconds = 600").await;
    // More than the buffers of a socket, and no more than the connection takes on.
    let body = r#"{"program": "(str/join (repeat 380000 \"x\"))", "omit": ["text"]}"#;
    let request = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut clients, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut client = socket.connect(address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        answers.push(begins(&mut client).await);
        // The connection takes on all of the response that it can.
        tokio::time::sleep(Duration::from_millis(100)).await;
        clients.push(client);
    }
    let served = answers.iter().take_while(|answer| *answer == "HTTP/1.1 200").count();
    assert!(served == 4 && answers[4..].iter().all(|answer| answer == "HTTP/1.1 429"), "{answers:?}");
    let of_other = asked(address, "b").await;
    assert!(of_other.starts_with("HTTP/1.1 200"), "{of_other}");
    // What is read is written, and no request any more.
    let mut first = clients.swap_remove(0);
    let end = Instant::now() + Duration::from_secs(20);
    let mut rest = vec![0; 65_536];
    while !asked(address, "a").await.starts_with("HTTP/1.1 200") {
        let _ = timeout(Duration::from_millis(10), first.read(&mut rest)).await;
        assert!(Instant::now() < end, "the share is still taken");
    }
}

/// A stream that is no longer read once it is told so.
struct Deaf(TcpStream, Arc<AtomicBool>);

impl AsyncRead for Deaf {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.1.load(Ordering::SeqCst) { Poll::Pending } else { Pin::new(&mut self.0).poll_read(cx, buffer) }
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Starts requests of a tenant on one connection of HTTP/2, with windows for all that they can bring, and reads no response.
async fn unread(address: SocketAddr, count: usize) -> tokio::task::JoinHandle<()> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let is_deaf = Arc::new(AtomicBool::new(false));
    let stream = Deaf(socket.connect(address).await.unwrap(), is_deaf.clone());
    let mut builder = h2::client::Builder::new();
    let window = i32::MAX.unsigned_abs();
    builder.initial_window_size(window).initial_connection_window_size(window);
    let (mut client, connection) = builder.handshake::<_, axum::body::Bytes>(stream).await.unwrap();
    let task = tokio::spawn(async move { drop(connection.await) });
    // The service knows the windows once it has answered.
    let uri = format!("http://{address}/healthz");
    let (response, _) = client.send_request(http::Request::get(&uri).body(()).unwrap(), true).unwrap();
    assert_eq!(timeout(Duration::from_secs(20), response).await.unwrap().unwrap().status(), 200);
    is_deaf.store(true, Ordering::SeqCst);
    let body = r#"{"program": "(str/join (repeat 300000 \"x\"))", "omit": ["text"]}"#;
    let mut responses = Vec::new();
    for _ in 0..count {
        client = client.ready().await.unwrap();
        let request = http::Request::post(format!("http://{address}/v1/run")).header("Authorization", "Bearer a");
        let (response, mut sends) = client.send_request(request.body(()).unwrap(), false).unwrap();
        sends.send_data(body.into(), true).unwrap();
        responses.push(response);
    }
    tokio::spawn(async move {
        let _kept = (client, responses);
        drop(task.await);
    })
}

/// What an HTTP/2 connection has taken on and not written has its room, and its share of `max_requests`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_have_room_and_share() {
    for (bodies, more, why) in [(2 * MIB, "", "max_bodies_bytes"), (64 * MIB, "max_connections = 60", "max_requests")] {
        let address = start(bodies, more).await;
        let mut tasks = Vec::new();
        let large = async || {
            let body = r#"{"program": "(str/join (repeat 300000 \"x\"))", "omit": ["text"]}"#;
            let mut client = send(address, "a", &format!("Content-Length: {}", body.len()), body.as_bytes()).await;
            let mut answer = String::new();
            timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await.unwrap().unwrap();
            answer
        };
        // The buffers of each socket hold some responses; the others stay.
        let mut in_a_row = 0;
        while in_a_row < 3 {
            if in_a_row == 0 {
                tasks.push(unread(address, 30).await);
            }
            let answer = large().await;
            // A busy machine runs them slowly.
            if answer.contains("no slot within") {
                continue;
            }
            in_a_row = if answer.starts_with("HTTP/1.1 200") { 0 } else { in_a_row + 1 };
            assert!(in_a_row == 0 || answer.contains(why), "{answer:.1000}");
            assert!(tasks.len() < 25, "{why} was never reached");
        }
        let of_other = asked(address, "b").await;
        assert!(of_other.starts_with("HTTP/1.1 200"), "{of_other}");
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let end = Instant::now() + Duration::from_secs(60);
        while !large().await.starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < end, "{why}: still taken");
        }
    }
}

/// What a client sends comes back in an error only as far as it is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_short() {
    let address = start(4 * MIB, "").await;
    let long = "x".repeat(900_000);
    for body in [
        format!(r#"{{"{long}": 1}}"#),
        format!(r#"{{"program": "1", "limits": {{"{long}": 1}}}}"#),
        format!(r#"{{"program": "1", "json_keys": "{long}"}}"#),
        format!(r#"{{"program": "1", "omit": ["{long}"]}}"#),
        format!(r#"{{"program": "1", "tools": {{"{long}": {{"client": 1}}}}}}"#),
    ] {
        let mut client = send(address, "a", &format!("Content-Length: {}", body.len()), body.as_bytes()).await;
        let mut answer = String::new();
        timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 400") && answer.len() < 4_000, "{} bytes: {answer:.300}", answer.len());
    }
}
