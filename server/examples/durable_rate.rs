//! Measures durable runs of two calls a second, submitted and finished, with a number of clients at once.
//!
//! ```sh
//! cargo run --release -p ptc-lisp-server --features postgres --example durable_rate -- [STORE] [CLIENTS] [SECONDS] [WORKERS] [LATENCY]
//! ```
//!
//! STORE is `memory`, a file, or the address of a PostgreSQL database. There, a front submits the runs, and WORKERS (1) with
//! 16 slots each run them; every one of these has connections of its own. The tools are served by this process. With LATENCY
//! a line of latencies is printed instead: from the reply to an open call of a suspended run to its answer.

use axum::Router;
use axum::routing::post;
use lisp_server::config::{Config, Durability};
use lisp_server::runs::{Done, Reply, Service, TenantState};
use lisp_server::store::{MemoryStore, PostgresStore, SqliteStore, Store};
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
    let place = argument(0, "memory");
    let workers: usize = argument(3, "1").parse()?;
    let is_shared = place.starts_with("postgres");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let tool = post(|| async { ([("content-type", "application/json")], "{\"n\": 1}") });
    let serving = async move { axum::serve(listener, Router::new().route("/tool", tool)).await };
    tokio::spawn(serving);
    let tools = ["first", "second"].map(|name| {
        format!("[tools.{name}]\nurl = \"http://{address}/tool\"\ninput = {{ type = \"object\" }}\nconcurrency = 256\n")
    });
    let text = format!(
        "isolation = \"in-process\"\n[network]\nallow_private = [\"{address}\"]\n[service]\nconcurrency = {}\nqueue = 1000\n\
         suspend_after_ms = 0\n{}",
        if is_shared { 16 } else { 32 },
        tools.concat()
    );
    let config = || Config::parse(&text, "rate.toml");
    let mut services = Vec::new();
    let service = match place.as_str() {
        "memory" => Service::open(config()?, Arc::new(MemoryStore::new())).await?,
        address if is_shared => {
            for _ in 0..workers {
                services.push(Service::open(config()?, opened(address).await?).await?);
            }
            Service::open_front(config()?, opened(address).await?).await?
        }
        path => Service::open(config()?, Arc::new(SqliteStore::open(path.as_ref(), Durability::Machine)?)).await?,
    };
    let tenant = service.tenant("anonymous").ok_or("there is no tenant")?;
    services.push(service.clone());
    if arguments.len() > 4 {
        return latencies(&services, &tenant, clients, seconds).await;
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

async fn opened(address: &str) -> Result<Arc<dyn Store>, Box<dyn std::error::Error>> {
    Ok(Arc::new(PostgresStore::open(address).await?))
}

async fn latencies(
    services: &[Service],
    tenant: &Arc<TenantState>,
    clients: usize,
    seconds: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let client = |_| {
        let (services, tenant) = (services.to_vec(), tenant.clone());
        tokio::spawn(async move {
            let service = services.last().ok_or("there is no service")?;
            let mut times = Vec::new();
            while Instant::now() < until {
                let state = match service.submit_and_wait(&tenant, ASKS, None).await {
                    Ok(Done::Waiting(state)) => state,
                    other => return Err(format!("{other:?}")),
                };
                while services.iter().any(|service| service.is_active(&state.run_id)) {
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
