//! What the commands that serve share: options, logging and shutdown.

use crate::exit::Failure;
use clap::ValueEnum;
use lisp_runtime::request::Isolation;
use lisp_server::config::{Config, ListenAddress, Scrubber};
use lisp_server::runs::{Service, ServiceError};
use lisp_server::store::{Store, StoreLocation};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// Where programs of the service run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// In a locked-down process of its own for each program (Linux)
    Process,
    /// In this process
    InProcess,
}

/// What the commands take.
#[derive(Debug, clap::Args)]
pub(crate) struct ServiceOptions {
    /// Configuration file with tools, tenants and limits; docs/service.md describes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use after restoring the store from a backup: runs that were under way in it ask an approver before each call that writes
    #[arg(long)]
    restored: bool,
    /// Where programs run [default: the configuration's, or process]
    #[arg(long, value_enum, value_name = "WHERE")]
    isolation: Option<Where>,
}

impl ServiceOptions {
    /// Returns the configuration, overridden by the command line.
    pub(crate) fn config(
        &self,
        listen: Option<ListenAddress>,
        store: Option<&StoreLocation>,
    ) -> Result<Config, Failure> {
        let mut config = read_config(self.config.as_deref(), store)?;
        if let Some(listen) = listen {
            config.listen = listen;
        }
        config.restored = self.restored;
        match self.isolation {
            Some(Where::Process) => config.isolation = Isolation::Process,
            Some(Where::InProcess) => config.isolation = Isolation::InProcess,
            None => {}
        }
        Ok(config)
    }
}

/// Returns the configuration, with the store of the command line.
pub(crate) fn read_config(file: Option<&Path>, store: Option<&StoreLocation>) -> Result<Config, Failure> {
    let mut config = match file {
        Some(path) => Config::read(path).map_err(|error| Failure::Usage(error.to_string()))?,
        None => Config::default(),
    };
    if let Some(store) = store {
        config.store.clone_from(store);
        config.names_store = true;
    }
    Ok(config)
}

/// Returns the async runtime of a serving command. Checks first that its threads can be created: otherwise tokio would
/// panic.
pub(crate) fn runtime(name: &str) -> Result<tokio::runtime::Runtime, Failure> {
    /// Threads besides one per core: for the store, signals, tool calls and processes.
    const MORE: usize = 16;
    let wanted = std::thread::available_parallelism().map_or(1, usize::from) + MORE;
    let (go, wait) = channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let mut held = Vec::with_capacity(wanted);
    let refused = loop {
        if held.len() == wanted {
            break None;
        }
        let wait = wait.clone();
        // Ends when the other end of the channel is dropped.
        let idle = move || drop(wait.lock().map(|wait| wait.recv()));
        match std::thread::Builder::new().stack_size(1 << 16).spawn(idle) {
            Ok(thread) => held.push(thread),
            Err(error) => break Some(error),
        }
    };
    let got = held.len();
    drop(go);
    held.into_iter().for_each(|thread| drop(thread.join()));
    match refused {
        Some(error) => Err(Failure::Service(format!(
            "the system gives {got} threads, and the service needs {wanted}: raise ulimit -u, or pids.max of its cgroup ({error})"
        ))),
        None => Ok(tokio::runtime::Builder::new_multi_thread().enable_all().thread_name(name).build()?),
    }
}

/// The interval at which old runs and sessions are deleted.
const SWEEP: Duration = Duration::from_secs(600);

/// Logs to standard error. `PTCL_LOG` sets the level, like `RUST_LOG` elsewhere.
pub(crate) fn log_to_standard_error(config: &Config) -> Result<(), Failure> {
    let filter = log_filter(&std::env::var("PTCL_LOG").unwrap_or_default())?;
    let scrubber = config.scrubber();
    // In tests, a second call has no effect.
    let _ = tracing_subscriber::fmt()
        // Whatever features of that crate others turn on.
        .with_ansi(false)
        .with_env_filter(filter)
        .with_writer(move || Scrubbed(scrubber.clone()))
        .log_internal_errors(false)
        .try_init();
    Ok(())
}

/// Reads the value of `PTCL_LOG`.
fn log_filter(value: &str) -> Result<EnvFilter, Failure> {
    /// The levels of the log if `PTCL_LOG` is not set. The errors of calls already say what rmcp would log about a server, and what h2
    /// warns of is what any client can do.
    const USUAL: &str = "warn,rmcp=off,h2=error";
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    if value.trim().is_empty() {
        return Ok(EnvFilter::new(USUAL));
    }
    let wrong = |part: &str| {
        Failure::Usage(format!(
            "PTCL_LOG: {part:?} is not a level: write {}, or several TARGET=LEVEL with commas between them",
            LEVELS.join(", ")
        ))
    };
    // The filter itself takes a word that is no level for a target.
    let is_level = |part: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
    let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
    if let Some(part) = parts.clone().find(|part| !part.contains(['=', '[']) && !is_level(part)) {
        return Err(wrong(part));
    }
    EnvFilter::try_new(parts.collect::<Vec<_>>().join(",")).map_err(|_| wrong(value))
}

/// Standard error without the secrets of the configuration. Each write is one line.
struct Scrubbed(Scrubber);

impl io::Write for Scrubbed {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.0.is_empty() {
            true => io::stderr().write_all(line)?,
            false => io::stderr().write_all(self.0.scrub(&String::from_utf8_lossy(line)).as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Why a service does not start.
pub(crate) fn not_begun(error: &ServiceError) -> Failure {
    match error {
        ServiceError::Config(_) => Failure::Usage(error.to_string()),
        ServiceError::Tools(wrong) if wrong.position.is_some() => Failure::Usage(error.to_string()),
        _ => Failure::Service(error.to_string()),
    }
}

/// Opens the store.
pub(crate) async fn open_store(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let store = config.store.open(config.service.durability).await;
    store.map_err(|error| Failure::Service(error.to_string()))
}

/// Calls a function at the first termination signal; the second one ends the process at once.
pub(crate) fn at_signal(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    let wait = move || {
        for (count, signal) in signals.forever().enumerate() {
            match count {
                0 => stop(),
                _ => drop(signal_hook::low_level::emulate_default_handler(signal)),
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

/// Deletes old runs and sessions at intervals, while it is polled.
pub(crate) async fn sweep(service: Service) {
    loop {
        match service.sweep().await {
            Ok(0) => {}
            Ok(gone) => tracing::info!(gone, "runs and sessions were deleted"),
            Err(error) => tracing::error!(%error, "old runs and sessions cannot be deleted"),
        }
        tokio::time::sleep(SWEEP).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_none_is_an_error_with_all_levels() {
        for value in ["", " ", "info", "WARN", "off", "warn,hyper=debug", "ptc_lisp_server=info,", "a[b]=trace"] {
            assert!(log_filter(value).is_ok(), "{value:?}");
        }
        assert_eq!(log_filter("").unwrap().to_string(), "rmcp=off,h2=error,warn");
        for value in ["foo", "info,foo", "verbose", "hyper=loud"] {
            let Err(Failure::Usage(error)) = log_filter(value) else { panic!("{value:?}") };
            assert!(error.contains("off, error, warn, info, debug, trace"), "{error}");
        }
    }
}
