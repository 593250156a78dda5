//! Prints what a store costs: `cargo run --release -p ptc-lisp-server --features postgres --example store_figures [WHERE]`.
//! WHERE is a directory for a file, or the address of an empty PostgreSQL database.
//!
//! Fills a store with 100,000 suspended runs and measures opening it, claims, lists and counts. Then it measures runs of two
//! calls, from submission to answer, by 1, 16 and 64 clients on an empty store.

use lisp_server::config::Durability;
use lisp_server::store::{
    Batch, End, NewRun, Query, Room, RunStatus, Store, StoreError, StoreLocation, StoredCall, StoredReply,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SUSPENDED: u64 = 100_000;
const TENANTS: u64 = 4;
const LONG: Duration = Duration::from_secs(3_600);

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result {
    let place = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let location = match place.parse()? {
        StoreLocation::File(directory) => {
            StoreLocation::File(directory.join(format!("store-figures-{}.db", std::process::id())))
        }
        database => database,
    };
    let measured = measure(&location).await;
    if let StoreLocation::File(path) = &location {
        for end in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }
    measured
}

async fn measure(location: &StoreLocation) -> Result {
    let store = location.open(Durability::Process).await?;
    let start = Instant::now();
    by_clients(64, SUSPENDED, async |n| suspend(&store, n).await).await?;
    println!("{SUSPENDED} runs suspended in {:.1} s", start.elapsed().as_secs_f64());
    store.close().await?;
    if let StoreLocation::File(path) = location {
        println!("the file has {:.0} MB", std::fs::metadata(path)?.len() as f64 / 1e6);
    }
    let start = Instant::now();
    let store = location.open(Durability::Machine).await?;
    println!("it is opened in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    read(&store).await?;
    print_memory();
    // Runs beside the suspended ones.
    for clients in [1, 16, 64] {
        serve(&store, clients).await?;
    }
    store.close().await?;
    Ok(())
}

/// Does something `times` times, by clients at once.
async fn by_clients(
    clients: u64,
    times: u64,
    work: impl AsyncFn(u64) -> std::result::Result<(), StoreError>,
) -> std::result::Result<(), StoreError> {
    let (next, work) = (AtomicU64::new(0), &work);
    let client = async || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= times {
                return Ok(());
            }
            work(n).await?;
        }
    };
    let all = (0..clients).map(|_| client());
    futures_util::future::try_join_all(all).await.map(drop)
}

fn run(n: u64, tenant: &str) -> NewRun {
    let request = format!("{{\"program\": \"(tool/call {{:n {n}}})\", \"data\": \"{}\"}}", "x".repeat(400));
    NewRun { run_id: uuid::Uuid::now_v7().to_string(), tenant: tenant.to_owned(), request }
}

fn lines(first_line: u64, count: u64) -> Batch {
    let line = |n| {
        format!("{{\"call\": \"1:{n}\", \"tool\": \"tool\", \"arguments\": {{\"text\": \"{}\"}}}}\n", "y".repeat(200))
    };
    Batch { first_line, lines: (0..count).map(line).collect(), ..Batch::default() }
}

fn room(tenant: &str) -> Room {
    Room { slots: 1, tenants: vec![(tenant.to_owned(), 1)] }
}

async fn suspend(store: &Arc<dyn Store>, n: u64) -> std::result::Result<(), StoreError> {
    let tenant = format!("tenant{}", n % TENANTS);
    store.submit(run(n, &tenant), None).await?;
    let claims = store.claim("worker", LONG, &room(&tenant)).await?;
    for claim in claims {
        let call = StoredCall {
            call: "1:1".to_owned(),
            phase: "gate".to_owned(),
            number: 0,
            tool: "pay".to_owned(),
            arguments: format!("{{\"amount\": {n}}}"),
            question: Some("May it?".to_owned()),
        };
        store.end(&claim.lease, Batch { opened: vec![call], ..lines(1, 2) }, End::Suspended(0)).await?;
    }
    Ok(())
}

async fn read(store: &Arc<dyn Store>) -> Result {
    for n in 0..10 {
        store.submit(run(n, "tenant0"), None).await?;
    }
    let claim = time("claim of one of 10 queued runs", 10, async || {
        store.claim("worker", LONG, &room("tenant0")).await.map(drop)
    });
    claim.await?;
    time("claim with nothing queued", 200, async || store.claim("worker", LONG, &room("tenant0")).await.map(drop))
        .await?;
    for (what, tenant, status) in [
        ("page of 100 of a tenant", Some("tenant1"), None),
        ("page of 100 that wait, of a tenant", Some("tenant1"), Some(RunStatus::Waiting)),
        ("page of 100 that wait, of all", None, Some(RunStatus::Waiting)),
        ("page of none that is done", Some("tenant1"), Some(RunStatus::Done)),
    ] {
        let query = Query { tenant: tenant.map(str::to_owned), status, after: None, max: 100 };
        time(what, 100, async || store.list(&query).await.map(drop)).await?;
    }
    let middle = store.list(&Query { max: 50_000, ..Query::default() }).await?;
    let after = middle.runs.last().map(|run| (run.created_ms, run.run_id.clone()));
    let query = Query { after, max: 100, ..Query::default() };
    time("page of 100 in the middle of all", 100, async || store.list(&query).await.map(drop)).await?;
    time("usage of a tenant", 100, async || store.usage("tenant1").await.map(drop)).await?;
    time("counts by status", 100, async || store.unfinished().await.map(drop)).await?;
    let run_id = middle.runs.first().map(|run| run.run_id.clone()).unwrap_or_default();
    time("journal of a run", 100, async || store.journal(&run_id).await.map(drop)).await?;
    let waiting: Vec<_> = middle.runs.iter().filter(|run| run.status == RunStatus::Waiting).take(100).collect();
    let reply = |call: &str| StoredReply { call: call.to_owned(), phase: "gate".to_owned(), body: "{}".to_owned() };
    let mut waiting = waiting.into_iter();
    let answer = time("reply to a suspended run, and its claim", 100, async || {
        let Some(run) = waiting.next() else { return Ok(()) };
        store.reply(&run.run_id, reply("1:1")).await?;
        store.claim("worker", LONG, &room(&run.tenant)).await.map(drop)
    });
    answer.await?;
    Ok(())
}

/// Prints the median and the largest time.
async fn time(
    what: &str,
    times: usize,
    mut work: impl AsyncFnMut() -> std::result::Result<(), StoreError>,
) -> std::result::Result<(), StoreError> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        work().await?;
        taken.push(start.elapsed().as_secs_f64() * 1e3);
    }
    taken.sort_by(f64::total_cmp);
    println!("{what}: {:.2} ms, at most {:.2} ms", taken[taken.len() / 2], taken[taken.len() - 1]);
    Ok(())
}

fn print_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmRSS")) {
        println!("memory: {}", line.trim_start_matches("VmRSS:").trim());
    }
}

async fn serve(store: &Arc<dyn Store>, clients: u64) -> Result {
    let runs = if clients == 1 { 200 } else { 3_000 };
    let start = Instant::now();
    by_clients(clients, runs, async |n| {
        store.submit(run(n, "served"), None).await?;
        let claims = store.claim("worker", LONG, &room("served")).await?;
        for claim in claims {
            // Each call: its start is written before it is made, its result after.
            for n in 0..4 {
                store.write(&claim.lease, lines(n + 1, 1)).await?;
            }
            store.end(&claim.lease, lines(5, 1), End::Done("{\"value\": 1}".into())).await?;
        }
        Ok(())
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{clients} clients, power loss safe: {:.0} runs of two calls a second", runs as f64 / seconds);
    Ok(())
}
