//! `ptcl worker`: runs the durable runs of a store that others fill.

use crate::exit::{Exit, Failure};
use crate::service::{ServiceOptions, at_signal, log_to_standard_error, not_begun, open_store, runtime, sweep};
use lisp_server::config::{Config, ListenAddress};
use lisp_server::http::{Listener, Server, operation};
use lisp_server::runs::Service;
use lisp_server::store::StoreLocation;
use std::net::{Ipv4Addr, SocketAddr};

/// The port of health and metrics.
const PORT: u16 = 7118;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Store that the runs are taken from: postgres://USER@HOST/DATABASE [default: the configuration's]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreLocation>,
    /// Runs in progress at once [default: the configuration's, or 4 for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    slots: Option<u32>,
    /// Address of /healthz, /readyz and /metrics, or unix:PATH; port 0 picks a free port [default: 127.0.0.1:7118]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
    #[command(flatten)]
    options: ServiceOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // The address of the configuration is that of fronts.
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let listen = arguments.listen.clone().unwrap_or(usual.into());
    let mut config = arguments.options.config(Some(listen), arguments.store.as_ref())?;
    if let Some(slots) = arguments.slots.and_then(|slots| usize::try_from(slots).ok()) {
        config.service.concurrency = slots;
    }
    log_to_standard_error(&config)?;
    let runtime = runtime("worker")?;
    runtime.block_on(work(config))
}

async fn work(config: Config) -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Service(error.to_string());
    if !config.store.is_shared() {
        return Err(Failure::Usage(format!(
            "a worker needs a PostgreSQL store, and {} is a file: name a database with \
             --store postgres://USER@HOST/DATABASE, or use `ptcl serve`",
            config.store
        )));
    }
    let listen = config.listen.clone();
    config.check_exposure(&listen).map_err(|error| Failure::Usage(error.to_string()))?;
    let listener = Listener::bind(&config, listen).map_err(|error| failed(&error))?;
    let store = open_store(&config).await?;
    let service = Service::open(config, store).await.map_err(|error| not_begun(&error))?;
    let server = Server::with_router(service.clone(), listener, operation(service.clone()));
    tell_line!("working; metrics at {}", server.url());
    at_signal(server.stop_handle())?;
    let sweeper = tokio::spawn(sweep(service));
    let served = server.serve().await;
    sweeper.abort();
    served.map(|()| Exit::Ok).map_err(|error| failed(&error))
}
