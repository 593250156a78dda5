//! Clients over HTTP: sessions, requests that stand for themselves, and who may ask.

mod support;

use lisp_server::http::{Listener, Server};
use lisp_server::runs::ListQuery;
use lisp_server::store::MemoryStore;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use support::{APPROVER, Bench, text};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A server of a test.
async fn listen(bench: &Bench) -> SocketAddr {
    let mcp = &bench.mcp;
    let listener = Listener::bind(mcp.service().config(), "127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server::with_router(mcp.service().clone(), listener, mcp.router());
    let address = server.address().tcp().unwrap();
    tokio::spawn(async move { server.serve().await });
    address
}

/// A response: its status, its head, and what comes as its body, as it comes.
struct Response {
    status: u16,
    head: String,
    rest: BufReader<TcpStream>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim())
    }

    /// All of the body.
    async fn body(mut self) -> String {
        let mut body = String::new();
        self.rest.read_to_string(&mut body).await.unwrap();
        body
    }

    /// The next message of a stream of events, or the body.
    async fn message(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let read =
                tokio::time::timeout(Duration::from_secs(60), self.rest.read_line(&mut line)).await.unwrap().unwrap();
            assert!(read > 0, "the stream has ended");
            let data = line.strip_prefix("data:").unwrap_or(&line).trim();
            if data.starts_with('{') {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

/// Sends a request to the endpoint.
async fn send(address: SocketAddr, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
    send_to(address, method, "/mcp", headers, body).await
}

/// Sends a request of HTTP/1.0, whose response ends with the connection. A header without a value is left out.
async fn send_to(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!("{method} {path} HTTP/1.0\r\ncontent-length: {}\r\n", body.len());
    let usual = [
        ("host", address.to_string()),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ];
    for (name, value) in &usual {
        if !headers.iter().any(|(given, _)| given == name) {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    // A server that refuses the request need not read it.
    let _ = stream.write_all(body.as_bytes()).await;
    let mut rest = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && rest.read_line(&mut head).await.unwrap() > 0 {}
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Response { status, head, rest }
}

fn initialize(capabilities: Value) -> String {
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": about });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

fn run(program: &str) -> String {
    let params = json!({ "name": "run", "arguments": { "program": program } });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_programs_and_asks() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let mut opened = send(address, "POST", &[], &initialize(json!({ "elicitation": {} }))).await;
    assert_eq!(opened.status, 200, "{}", opened.head);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(opened.message().await["result"]["protocolVersion"], "2025-11-25");
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(send(address, "POST", &headers, &begun).await.status, 202);
    let mut ran = send(address, "POST", &headers, &run("(+ 1 2)")).await;
    assert_eq!(text(&ran.message().await["result"]), "3");
    let mut asks = send(address, "POST", &headers, &run("(:paid (tool/pay {:amount 7}))")).await;
    let question = asks.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let said = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "approve": true } } });
    assert_eq!(send(address, "POST", &headers, &said.to_string()).await.status, 202);
    assert_eq!(text(&asks.message().await["result"]), "7");
    assert_eq!(send(address, "DELETE", &headers, "").await.status, 204);
    assert_eq!(send(address, "POST", &headers, &run("1")).await.status, 404);
    assert_eq!(send(address, "DELETE", &headers, "").await.status, 404);
}

/// Begins a session without forms; returns its headers.
async fn open(address: SocketAddr) -> [(&'static str, String); 2] {
    let mut opened = send(address, "POST", &[], &initialize(json!({}))).await;
    opened.message().await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25".to_owned())]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_ends_its_runs() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let session = open(address).await;
    let headers = [(session[0].0, session[0].1.as_str()), (session[1].0, session[1].1.as_str())];
    let other = open(address).await;
    let others = [(other[0].0, other[0].1.as_str()), (other[1].0, other[1].1.as_str())];
    // What may ask is a durable run, which the service can list.
    let slow = "(do (tool/slow {}) (tool/pay {:amount 1}))";
    let mut waits = send(address, "POST", &others, &run(slow)).await;
    let _slow = send(address, "POST", &headers, &run(slow)).await;
    let service = bench.mcp.service();
    let query = ListQuery { max: 9, ..ListQuery::default() };
    let runs = async || service.runs("anonymous", query).await.unwrap().runs;
    let done = async || runs().await.iter().filter(|run| run.status.name() == "done").count();
    while runs().await.len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(send(address, "DELETE", &headers, "").await.status, 204);
    while service.active_count() > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((done().await, runs().await.len()), (1, 2));
    // That of the other session goes on.
    assert_eq!(send(address, "DELETE", &others, "").await.status, 204);
    let mut rest = Vec::new();
    waits.rest.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_of_the_kind_that_the_client_takes() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    for (accept, status, kind) in [
        ("", 200, Some("text/event-stream")),
        ("*/*", 200, Some("text/event-stream")),
        ("text/event-stream", 200, Some("text/event-stream")),
        ("application/json", 200, Some("application/json")),
        ("application/*;q=0.2", 200, Some("application/json")),
        ("text/html", 406, None),
    ] {
        let mut response =
            send(address, "POST", &[("accept", accept)], &initialize(json!({ "elicitation": {} }))).await;
        assert_eq!(response.status, status, "{accept}: {}", response.head);
        let Some(kind) = kind else { continue };
        assert_eq!(response.header("content-type"), Some(kind), "{accept}");
        let session = response.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(response.message().await["result"]["protocolVersion"], "2025-11-25");
        let headers = [("accept", accept), ("mcp-session-id", session.as_str())];
        let mut ran = send(address, "POST", &headers, &run("(println 1) (+ 1 2)")).await;
        assert_eq!(ran.header("content-type"), Some(kind));
        assert_eq!(text(&ran.message().await["result"]), "3");
        if kind == "application/json" {
            // It cannot be asked on the way.
            let mut paused = send(address, "POST", &headers, &run("(tool/pay {:amount 7})")).await;
            assert_eq!(paused.message().await["result"]["structuredContent"]["status"], "paused");
        }
    }
    for headers in [vec![("accept", "")], vec![], vec![("accept", "*/*")], vec![("accept", "text/event-stream")]] {
        let response = send(address, "GET", &headers, "").await;
        assert_eq!((response.status, response.header("allow")), (405, Some("POST, DELETE")), "{headers:?}");
    }
    let session = open(address).await;
    for (accept, status) in [("", 200), ("*/*", 200), ("text/event-stream", 200), ("application/json", 405)] {
        let headers = [("accept", accept), (session[0].0, session[0].1.as_str())];
        assert_eq!(send(address, "GET", &headers, "").await.status, status, "{accept}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn approvers_decide_over_http() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let token = format!("Bearer {APPROVER}");
    let own = [("authorization", token.as_str())];
    let session = open(address).await;
    let headers = [(session[0].0, session[0].1.as_str()), (session[1].0, session[1].1.as_str())];
    let paused = send(address, "POST", &headers, &run("(:paid (tool/pay {:amount 7}))")).await.message().await;
    let paused = &paused["result"]["structuredContent"];
    let one = format!("/v1/runs/{}", paused["run_id"].as_str().unwrap());
    let call = format!("{one}/calls/{}", paused["calls"][0]["call"].as_str().unwrap());
    let yes = r#"{"approve": true}"#;
    bench.suspended().await;
    // Nobody without a token learns of runs, or decides.
    for (method, path) in [("GET", "/v1/runs"), ("GET", &*one), ("DELETE", &*one), ("POST", &*call)] {
        for headers in [vec![], vec![("authorization", "Bearer guess")]] {
            assert_eq!(send_to(address, method, path, &headers, yes).await.status, 401, "{method} {path}");
        }
    }
    let page = send_to(address, "GET", "/", &[], "").await;
    assert!(page.status == 200 && page.body().await.contains("<body class=\"approvals\">"));
    let foreign = [own[0], ("origin", "http://evil.example")];
    assert_eq!(send_to(address, "POST", &call, &foreign, yes).await.status, 403);
    // Programs go another way.
    for path in ["/v1/run", "/v1/sessions", "/v1/prompt", "/nope"] {
        assert_eq!(send_to(address, "POST", path, &own, r#"{"program": "1"}"#).await.status, 404, "{path}");
    }
    let waiting = send_to(address, "GET", "/v1/runs?status=waiting", &own, "").await.body().await;
    assert!(waiting.contains("Pay 7?"), "{waiting}");
    assert_eq!(bench.paid(), 0);
    assert_eq!(send_to(address, "POST", &call, &own, yes).await.status, 200);
    let params = json!({ "name": "resume", "arguments": { "token": paused["token"], "wait_seconds": 50 } });
    let resume = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }).to_string();
    let answer = send(address, "POST", &headers, &resume).await.message().await;
    assert_eq!((text(&answer["result"]), bench.paid()), ("7", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_stands_for_itself_goes_in_rounds() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "run")];
    let mut params =
        json!({ "name": "run", "arguments": { "program": "(:paid (tool/pay {:amount 7}))" }, "_meta": meta });
    let message =
        |params: &Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let asked = send(address, "POST", &headers, &message(&params)).await.message().await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ name: { "action": "accept", "content": { "approve": true } } });
    let answer = send(address, "POST", &headers, &message(&params)).await.message().await;
    assert_eq!(text(&answer["result"]), "7", "{answer}");
    // What only sessions have is not there.
    for method in ["initialize", "logging/setLevel", "ping"] {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta } }).to_string();
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        let response = send(address, "POST", &headers, &request).await;
        assert_eq!(response.status, 404, "{method}");
        assert!(response.body().await.contains("-32601"), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_others_are_refused_and_so_is_what_is_too_large() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let own = format!("http://{address}");
    for (headers, status) in [
        (vec![("host", "evil.example")], 403),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("origin", own.as_str())], 200),
        (vec![("accept", "text/html")], 406),
        (vec![("content-type", "text/plain")], 415),
        (vec![("content-encoding", "gzip")], 415),
        (vec![("mcp-session-id", "nope")], 404),
    ] {
        let response = send(address, "POST", &headers, &initialize(json!({}))).await;
        assert_eq!(response.status, status, "{headers:?}: {}", response.head);
    }
    let large = send(address, "POST", &[], &run(&"x".repeat(200_000))).await;
    assert_eq!(large.status, 413);
    assert!(large.body().await.contains("max_body_bytes"));
    for garbage in ["", "garbage", "[]", "7", "{\"jsonrpc\":\"2.0\"}", &"[".repeat(90_000)] {
        let response = send(address, "POST", &[], garbage).await;
        assert_eq!(response.status, 400, "{garbage:.20}: {}", response.head);
        assert!(response.body().await.contains("\"error\":{\"code\":-32"), "{garbage:.20}");
    }
    assert_eq!(send(address, "PUT", &[], "").await.status, 405);
    assert_eq!(send(address, "POST", &[], &initialize(json!({}))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tenants_a_token_says_who_asks() {
    // printf %s open | sha256sum, and shut
    let more = "[[tenants]]\nname = \"a\"\ntoken_sha256 = \"2348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"\n\n\
                [[tenants]]\nname = \"b\"\ntoken_sha256 = \"2a1db49adbe0e8281c0615f68e6829ddf9de3c315b8329481181ac65bea47e3b\"\n";
    let bench = Bench::with(more, Arc::new(MemoryStore::new())).await;
    let address = listen(&bench).await;
    let refused = send(address, "POST", &[], &initialize(json!({}))).await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    let wrong = send(address, "POST", &[("authorization", "Bearer nope")], &initialize(json!({}))).await;
    assert_eq!(wrong.status, 401);
    let mut opened = send(address, "POST", &[("authorization", "Bearer open")], &initialize(json!({}))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    opened.message().await;
    let headers = [("mcp-session-id", session.as_str()), ("authorization", "Bearer open")];
    let mut ran = send(address, "POST", &headers, &run("(+ 1 2)")).await;
    assert_eq!(text(&ran.message().await["result"]), "3");
    // The session is nobody else's.
    let other = [("mcp-session-id", session.as_str()), ("authorization", "Bearer shut")];
    assert_eq!(send(address, "POST", &other, &run("1")).await.status, 404);
    let without = send(address, "POST", &[("mcp-session-id", &session)], &run("1")).await;
    assert_eq!(without.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_closes_its_sessions() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let opened = send(address, "POST", &[], &initialize(json!({}))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut listening =
        send(address, "GET", &[("mcp-session-id", &session), ("accept", "text/event-stream")], "").await;
    assert_eq!(listening.status, 200, "{}", listening.head);
    bench.mcp.end().await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(30), listening.rest.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the stream stays open");
}

/// Sessions, and requests of them, that end well and badly: whatever they take is given back.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_session_takes_is_given_back() {
    let bench = Bench::open().await;
    let address = listen(&bench).await;
    let service = bench.mcp.service();
    let figure = |name: &str| {
        let figures = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(service.metrics()));
        let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    let held = ["ptc_runs_in_progress", "ptc_slots_taken", "ptc_durable_runs", "ptc_event_logs", "ptc_connections"];
    let mut tasks = 0;
    // In the first round what is made once is made.
    for (round, count) in [2, 12].into_iter().enumerate() {
        for _ in 0..count {
            let session = open(address).await;
            let headers = [(session[0].0, session[0].1.as_str()), (session[1].0, session[1].1.as_str())];
            for program in ["(+ 1 2)", "(", "(dotimes [n 100] (println n))", "(tool/pay {:amount 7})"] {
                send(address, "POST", &headers, &run(program)).await.message().await;
            }
            // Clients that do not wait.
            for program in ["(+ 1 2)", "(tool/pay {:amount 7})", "(tool/slow {})"] {
                drop(send(address, "POST", &headers, &run(program)).await);
            }
            drop(send(address, "GET", &headers, "").await);
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{").await.unwrap();
            assert_eq!(send(address, "DELETE", &headers, "").await.status, 204);
        }
        for run in service.runs("anonymous", ListQuery { max: 1_000, ..ListQuery::default() }).await.unwrap().runs {
            service.cancel("anonymous", &run.run_id).await.unwrap();
        }
        let until = tokio::time::Instant::now() + Duration::from_secs(100);
        while held.iter().any(|name| figure(name) > 0) || (round > 0 && figure("ptc_tasks") > tasks) {
            let left: Vec<_> = held.iter().chain(&["ptc_tasks"]).map(|name| (name, figure(name))).collect();
            assert!(tokio::time::Instant::now() < until, "round {round}, {tasks} tasks before: {left:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tasks = figure("ptc_tasks");
    }
}
