//! An HTTP tool of a test that counts its calls, and can hold its answers back.

#![allow(dead_code, reason = "each test uses a part")]

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// It serves on a thread of its own, so it outlives the runtime of a service.
pub(crate) struct ToolServer {
    pub(crate) port: u16,
    counts: Arc<Mutex<HashMap<String, usize>>>,
    is_held: watch::Sender<bool>,
}

type Shared = (Arc<Mutex<HashMap<String, usize>>>, watch::Receiver<bool>);

async fn answer(
    State((counts, mut is_held)): State<Shared>,
    request: Request,
) -> ([(&'static str, &'static str); 1], String) {
    let name = request.uri().path().trim_start_matches('/').to_owned();
    let count = {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(name).or_default();
        *count += 1;
        *count
    };
    is_held.wait_for(|is_held| !is_held).await.unwrap();
    ([("content-type", "application/json")], count.to_string())
}

impl ToolServer {
    pub(crate) fn start() -> Self {
        let (is_held, held) = watch::channel(false);
        let counts = Arc::<Mutex<HashMap<String, usize>>>::default();
        let shared = (counts.clone(), held);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let routes = Router::new().fallback(any(answer)).with_state(shared);
                axum::serve(TcpListener::from_std(listener).unwrap(), routes).await.unwrap();
            });
        };
        std::thread::Builder::new().spawn(serve).unwrap();
        ToolServer { port, counts, is_held }
    }

    /// Holds its answers back until this is called with false. The calls count at once.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.send_replace(is_held);
    }

    /// Returns how often a path was called. The result of a call is its number.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.counts.lock().unwrap().get(path).copied().unwrap_or(0)
    }

    /// Returns the configuration of a tool at the path of its name.
    pub(crate) fn config(&self, name: &str, more: &str) -> String {
        format!(
            "[tools.{name}]\nurl = \"http://127.0.0.1:{}/{name}\"\ninput = {{ type = \"object\" }}\ntimeout_ms = 60000\n{more}\n",
            self.port
        )
    }

    pub(crate) fn network(&self) -> String {
        format!("[network]\nallow_private = [\"127.0.0.1:{}\"]\n", self.port)
    }
}
