//! Services one after the other on one store, each in a runtime of its own.

#![allow(dead_code, reason = "each test uses a part")]

use lisp_server::config::{Config, Durability};
use lisp_server::runs::{Reply, RunState, Service};
use lisp_server::store::{MemoryStore, RunStatus, SqliteStore, Store};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A store in memory, and one in a file, which goes with this.
pub(crate) struct Stores([Arc<dyn Store>; 2], PathBuf);

pub(crate) fn stores(name: &str) -> Stores {
    let path = std::env::temp_dir().join(format!("ptc-{}-{name}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let file = SqliteStore::open(&path, Durability::Process).unwrap();
    Stores([Arc::new(MemoryStore::new()), Arc::new(file)], path)
}

impl Stores {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Store>> {
        self.0.iter()
    }

    /// The write-ahead log of the store in a file.
    pub(crate) fn log(&self) -> PathBuf {
        self.1.with_extension("db-wal")
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.1.display()));
        }
    }
}

/// A service, from its start to its end.
pub(crate) struct Life {
    runtime: Runtime,
    pub(crate) service: Service,
    tenant: String,
}

impl Life {
    /// Opens a service. Its first tenant submits the runs.
    pub(crate) fn open(store: &Arc<dyn Store>, config: &str) -> Self {
        let limits = if config.contains("[limits]") { "" } else { "[limits]" };
        let config = format!("{config}\n{limits}").replace("[limits]", "[limits]\ntimeout_ms = 60000");
        let service = if config.contains("[service]") { "" } else { "[service]" };
        let config = format!("{config}\n{service}")
            .replace("[service]", "[service]\nsuspend_after_ms = 0\nlease_seconds = 1\nconcurrency = 16");
        let text = format!("isolation = \"in-process\"\n{config}\n");
        let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
        let tenant = config.tenants.first().map_or("anonymous", |tenant| &tenant.name).to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let service = runtime.block_on(Service::open(config, store.clone())).unwrap();
        Life { runtime, service, tenant }
    }

    /// Ends it like a process that is killed: nothing more is written.
    pub(crate) fn crash(self) {
        self.runtime.shutdown_background();
    }

    /// Ends it in order.
    pub(crate) fn stop(self) {
        self.service.drain();
        self.runtime.block_on(self.service.ended_without_closing());
        self.runtime.shutdown_background();
    }

    pub(crate) fn submit(&self, request: &Value) -> String {
        let tenant = self.service.tenant(&self.tenant).unwrap();
        self.runtime.block_on(self.service.submit(&tenant, &request.to_string(), None)).unwrap().run_id
    }

    pub(crate) fn state(&self, run_id: &str) -> RunState {
        self.runtime.block_on(self.service.state(&self.tenant, run_id)).unwrap()
    }

    /// The state of a run once it is so.
    pub(crate) fn state_when(&self, run_id: &str, is_so: impl Fn(&RunState) -> bool) -> RunState {
        let end = Instant::now() + LONG;
        loop {
            let state = self.state(run_id);
            if is_so(&state) {
                return state;
            }
            assert!(Instant::now() < end, "waited for {state:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a run asks about its call, or waits for it.
    pub(crate) fn asked(&self, run_id: &str) -> String {
        self.state_when(run_id, |state| !state.calls.is_empty()).calls[0].asked()
    }

    pub(crate) fn reply(&self, run_id: &str, call: &str, reply: Value) {
        let reply: Reply = serde_json::from_value(reply).unwrap();
        self.runtime.block_on(self.service.reply(&self.tenant, run_id, call, &reply)).unwrap();
    }

    /// The answer of a run.
    pub(crate) fn done(&self, run_id: &str) -> Value {
        let state = self.state_when(run_id, |state| state.status == RunStatus::Done);
        serde_json::from_str(state.answer.unwrap().get()).unwrap()
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// A figure of its metrics.
    pub(crate) fn figure(&self, name: &str) -> u64 {
        let metrics = self.runtime.block_on(self.service.metrics());
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
    }
}
