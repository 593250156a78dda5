//! Measures durable runs of two calls a second, submitted and finished, with a number of clients at once.
//!
//! ```sh
//! cargo run --profile dist -p ptc-lisp-server --example durable_rate -- [STORE] [CLIENTS] [SECONDS] [ISOLATION] [LATENCY]
//! ```
//!
//! STORE is a file, or `memory`. The tools are served by this process. With LATENCY a line of latencies follows: from the
//! reply to an open call of a suspended run to its answer.

use axum::Router;
use axum::routing::post;
use lisp_server::config::{Config, Durability};
use lisp_server::runs::{Done, Reply, Service, TenantState};
use lisp_server::store::{MemoryStore, SqliteStore, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TWO_CALLS: &str = r#"{"program": "(+ (:n (tool/first {:n 1})) (:n (tool/second {:n 2})))"}"#;
const ASKS: &str = r#"{"program": "(inc (tool/ask {:n 1}))", "tools": {"ask": {"client": true}}}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, usual: &str| arguments.get(at).cloned().unwrap_or_else(|| usual.to_owned());
    let clients: usize = argument(1, "64").parse()?;
    let seconds: u64 = argument(2, "10").parse()?;
    let store: Arc<dyn Store> = match argument(0, "memory").as_str() {
        "memory" => Arc::new(MemoryStore::new()),
        path => Arc::new(SqliteStore::open(path.as_ref(), Durability::Machine)?),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let tool = post(|| async { ([("content-type", "application/json")], "{\"n\": 1}") });
    let serving = async move { axum::serve(listener, Router::new().route("/tool", tool)).await };
    tokio::spawn(serving);
    let tools = ["first", "second"].map(|name| {
        format!("[tools.{name}]\nurl = \"http://{address}/tool\"\ninput = {{ type = \"object\" }}\nconcurrency = 256\n")
    });
    let text = format!(
        "isolation = \"{}\"\n[network]\nallow_private = [\"{address}\"]\n[service]\nconcurrency = 32\nsuspend_after_ms = 0\n{}",
        argument(3, "in-process"),
        tools.concat()
    );
    let service = Service::open(Config::parse(&text, "rate.toml")?, store).await?;
    let tenant = service.tenant("anonymous").ok_or("there is no tenant")?;
    if arguments.len() > 4 {
        return latencies(&service, &tenant, clients, seconds).await;
    }
    let (done, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let until = began + Duration::from_secs(seconds);
    let client = |_| {
        let (service, tenant, done) = (service.clone(), tenant.clone(), done.clone());
        tokio::spawn(async move {
            while Instant::now() < until {
                match service.submit_and_wait(&tenant, TWO_CALLS, None).await {
                    Ok(Done::Answer(answer)) if answer.contains("\"value\":2") => {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    other => return Err(format!("{other:?}")),
                }
            }
            Ok(())
        })
    };
    for client in (0..clients).map(client).collect::<Vec<_>>() {
        client.await??;
    }
    let (runs, time) = (done.load(Ordering::Relaxed), began.elapsed().as_secs_f64());
    println!("{clients} clients: {runs} runs in {time:.2} s, {:.0} runs/s", runs as f64 / time);
    Ok(())
}

async fn latencies(
    service: &Service,
    tenant: &Arc<TenantState>,
    clients: usize,
    seconds: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let client = |_| {
        let (service, tenant) = (service.clone(), tenant.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let state = match service.submit_and_wait(&tenant, ASKS, None).await {
                    Ok(Done::Waiting(state)) => state,
                    other => return Err(format!("{other:?}")),
                };
                while service.is_active(&state.run_id) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                let reply: Reply = serde_json::from_str("{\"result\": 41}").map_err(|error| error.to_string())?;
                let began = Instant::now();
                service.reply(&tenant.name, &state.run_id, "1", &reply).await.map_err(|error| error.to_string())?;
                match service.wait(&tenant.name, &state.run_id).await {
                    Ok(Done::Answer(_)) => times.push(began.elapsed()),
                    other => return Err(format!("{other:?}")),
                }
            }
            Ok(times)
        })
    };
    let mut times = Vec::new();
    for client in (0..clients).map(client).collect::<Vec<_>>() {
        times.extend(client.await??);
    }
    times.sort();
    let at =
        |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("{} replies: median {:.1} ms, p99 {:.1} ms, maximum {:.1} ms", times.len(), at(0.5), at(0.99), at(0.9999));
    Ok(())
}
