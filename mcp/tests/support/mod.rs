//! A service with a tool that has to be approved, and a client that speaks lines of JSON-RPC.

#![allow(dead_code, unreachable_pub, reason = "each test takes a part of it")]

use axum::Json;
use axum::Router;
use axum::routing::post;
use lisp_mcp::Mcp;
use lisp_server::config::Config;
use lisp_server::runs::Service;
use lisp_server::store::{MemoryStore, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

/// No step of a test takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The token of the approver of a service without tenants.
pub const APPROVER: &str = "the-approver";

/// A service of a test.
pub struct Bench {
    pub mcp: Mcp,
    /// How often the tool `pay` has been called.
    pub paid: Arc<AtomicUsize>,
}

impl Bench {
    /// One with a tool `pay` that somebody is asked about, and `slow`, which takes a minute.
    pub async fn open() -> Self {
        Bench::with("", Arc::new(MemoryStore::new())).await
    }

    /// One with more tables of configuration, and a store.
    pub async fn with(more: &str, store: Arc<dyn Store>) -> Self {
        let paid = Arc::new(AtomicUsize::new(0));
        let its = paid.clone();
        let pay = move |Json(arguments): Json<Value>| async move {
            its.fetch_add(1, Ordering::SeqCst);
            Json(json!({ "paid": arguments["amount"] }))
        };
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Json(json!(1))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().route("/pay", post(pay)).route("/slow", post(slow));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let text = format!(
            "isolation = \"in-process\"\n\n\
             [service]\nmax_body_bytes = 100_000\n\n\
             [limits]\ntimeout_ms = 30_000\n\n\
             [network]\nallow_private = [\"{address}\"]\n\n\
             [tools.pay]\nurl = \"http://{address}/pay\"\neffect = \"write\"\npolicy = \"ask\"\n\
             description = \"Pays an amount to a customer.\"\nquestion = \"Pay {{amount}}?\"\n\
             input = {{type = \"object\", properties = {{amount = {{type = \"integer\"}}}}, required = [\"amount\"]}}\n\n\
             [tools.slow]\nurl = \"http://{address}/slow\"\neffect = \"read\"\n\n{more}"
        );
        let mut config = Config::parse(&text, "service.toml").unwrap();
        config.add_approver("anonymous", APPROVER);
        let service = Service::open(config, store).await.unwrap();
        Bench { mcp: Mcp::new(service).await.unwrap(), paid }
    }

    pub fn paid(&self) -> usize {
        self.paid.load(Ordering::SeqCst)
    }

    /// An approver says something of a call of a paused run: of the first, unless it is named. Returns when the run has heard it.
    pub async fn decide(&self, paused: &Value, call: Option<&str>, said: Value) {
        let state = &paused["structuredContent"];
        let (run, first) = (state["run_id"].as_str().unwrap(), state["calls"][0]["call"].as_str().unwrap());
        let service = self.mcp.service();
        let reply = serde_json::from_value(said).unwrap();
        let tenant = service.config().anonymous().map_or("a", |tenant| &tenant.name);
        service.reply(tenant, run, call.unwrap_or(first), &reply).await.unwrap();
    }

    /// Returns when no durable run holds a place any more.
    pub async fn suspended(&self) {
        for _ in 0..3000 {
            if self.mcp.service().active_count() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("a run is still under way");
    }

    /// A client on a pair of streams.
    pub fn client(&self) -> Client {
        self.client_of(None)
    }

    pub fn client_of(&self, tenant: Option<&str>) -> Client {
        let (near, far) = duplex(1 << 16);
        let (read, write) = split(far);
        let (mcp, tenant) = (self.mcp.clone(), tenant.map(str::to_owned));
        let served = tokio::spawn(async move { mcp.serve_stdio(tenant.as_deref(), read, write).await });
        let (read, write) = split(near);
        Client {
            write: Some(write),
            lines: BufReader::new(read).lines(),
            next: 0,
            notes: Vec::new(),
            meta: None,
            served,
        }
    }
}

/// A client on a pair of streams.
pub struct Client {
    pub write: Option<WriteHalf<DuplexStream>>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    /// Notifications that came.
    pub notes: Vec<Value>,
    /// What every request carries.
    pub meta: Option<Value>,
    pub served: JoinHandle<Result<(), lisp_mcp::OpenError>>,
}

impl Client {
    pub async fn line(&mut self, line: &[u8]) {
        let write = self.write.as_mut().unwrap();
        write.write_all(line).await.unwrap();
        write.write_all(b"\n").await.unwrap();
    }

    pub async fn send(&mut self, message: &Value) {
        self.line(message.to_string().as_bytes()).await;
    }

    /// No more comes.
    pub fn leave(&mut self) {
        // The halves are one stream: it ends when both have gone.
        let mut write = self.write.take().unwrap();
        tokio::spawn(async move { write.shutdown().await });
    }

    /// What comes next.
    pub async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("nothing came").unwrap();
        serde_json::from_str(&line.expect("the server has gone")).unwrap()
    }

    /// Sends a request; returns its id.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            let own = params.get("_meta").cloned().unwrap_or_else(|| json!({}));
            let mut all = meta.clone();
            all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            params["_meta"] = all;
        }
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.send(&request).await;
        self.next
    }

    /// What comes next that is no notification.
    pub async fn message(&mut self) -> Value {
        loop {
            let message = self.read().await;
            match message.get("id").is_none() && message.get("method").is_some() {
                true => self.notes.push(message),
                false => return message,
            }
        }
    }

    /// Sends a request while another waits, and takes its response.
    pub async fn request_while_waiting(&mut self, method: &str) {
        let id = self.ask(method, json!({})).await;
        let response = self.message().await;
        assert_eq!(response["id"], id, "{response}");
    }

    /// The response to a request.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        let response = self.message().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Begins a session of revision 2025-11-25.
    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": about });
        let response = self.request("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        response["result"].clone()
    }

    /// Requests from now on are of revision 2026-07-28.
    pub fn modern(&mut self, capabilities: Value) {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
    }

    /// The result of a call of a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let response = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// The result of a program.
    pub async fn run(&mut self, program: &str) -> Value {
        self.call("run", json!({ "program": program })).await
    }
}

/// The first text of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}
